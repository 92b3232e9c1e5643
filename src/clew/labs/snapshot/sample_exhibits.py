"""Samples of a batch in a form people can look at: images, text, waveforms or rows of numbers."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from clew.labs.snapshot.step_batch import BOTH, INPUT, TARGET, StepBatch
from clew.labs.snapshot.subject import Subject
from clew.records.codec import json_float
from clew.records.finding import Exhibit

LARGEST = 48  # pixels across or down
SMALLEST = 4  # below this an image shows nothing
PLANE = 8  # rows and columns from which a plain matrix is drawn as an image
WAVE = 128  # values in a row from which a line shows more than the numbers
MOST_POINTS = 400  # of a wave
MOST_NUMBERS = 64
MOST_ROWS = 8
MOST_TOKENS = 200
FLAT_PICTURES = {784: (1, 28, 28), 3072: (3, 32, 32)}  # MNIST's and CIFAR's, as they go into a Linear


def exhibits(
    batch: StepBatch, rows: Iterable[int], subject: Subject | None = None, notes: Sequence[str] = ()
) -> list[Exhibit]:
    """These samples for `Result.exhibits`; `notes` go into their captions ("looks like 8")."""
    captions = itertools.chain(notes, itertools.repeat(""))
    made = [exhibit(batch, row, subject, note) for row, note in zip(rows, captions, strict=False)]
    return [one for one in made if one is not None]


def exhibit(batch: StepBatch, row: int, subject: Subject | None = None, note: str = "") -> Exhibit | None:
    """One sample with its label; None where the batch has no input per sample."""
    given = _row(batch, row, INPUT, BOTH)
    if given is None:
        return None
    target = _row(batch, row, TARGET)
    name = f"sample {batch.indices[row]}" if batch.indices is not None else f"row {row} of the batch"
    parts = [name, label(target, subject), note]
    kind, data = shown(given, subject)
    return Exhibit(kind, ", ".join(part for part in parts if part), data)


def _row(batch: StepBatch, row: int, *roles: str) -> Tensor | None:
    """The sample's part of the first tensor with one of these roles that has a batch dimension."""
    for tensor, role, dim in batch.entries():
        if role in roles and dim is not None:
            return tensor.detach().select(dim, row).cpu()
    return None


def label(target: Tensor | None, subject: Subject | None = None) -> str:
    """`labelled 3 (cat)`, `target 0.53`; empty for a target that is not a single answer."""
    if target is None:
        return ""
    if target.dim() == 1 and target.numel() > 1 and _is_one_hot(target):
        target = target.argmax()
    if target.numel() != 1:
        return ""
    value = target.reshape(()).item()
    if target.is_floating_point() and not float(value).is_integer():
        return f"target {value:.4g}"
    return f"labelled {int(value)}{_class_name(int(value), subject)}" if math.isfinite(value) else ""


def _is_one_hot(target: Tensor) -> bool:
    values = target.double()
    return bool(((values == 0) | (values == 1)).all()) and float(values.sum()) == 1.0


def _class_name(number: int, subject: Subject | None) -> str:
    names = next(
        (c for d in _datasets(subject) if isinstance(c := getattr(d, "classes", None), (list, tuple))), ()
    )
    return f" ({names[number]})" if 0 <= number < len(names) else ""


def shown(sample: Tensor, subject: Subject | None = None) -> tuple[str, Any]:
    """The kind of exhibit that fits, and its data."""
    sample = sample.squeeze(0) if sample.dim() > 3 and sample.shape[0] == 1 else sample
    picture = planes_of(sample)
    if picture is not None:
        return "image", pixels(picture)
    if not sample.is_floating_point() and sample.dim() == 1:
        text = _decoded(sample, subject)
        if text is not None:
            return "text", text
    flat = sample.reshape(-1) if sample.dim() != 2 else sample
    if flat.dim() == 1 and flat.is_floating_point() and len(flat) >= WAVE:
        stride = -(-len(flat) // MOST_POINTS)
        return "wave", _plain(flat[::stride])
    if flat.dim() == 2:
        return "numbers", [_plain(row[:MOST_NUMBERS]) for row in flat[:MOST_ROWS]]
    return "numbers", _plain(flat[:MOST_NUMBERS])


def _plain(values: Tensor) -> list[Any]:
    if not values.is_floating_point():
        return [int(v) for v in values]
    return [json_float(float(f"{v:.6g}")) for v in values.double().tolist()]


def planes_of(sample: Tensor) -> Tensor | None:
    """Channels, rows, columns; None if it is not an image."""
    if sample.is_complex() or not (sample.is_floating_point() or sample.dtype == torch.uint8):
        return None
    if sample.dim() == 1 and len(sample) in FLAT_PICTURES:
        return sample.reshape(FLAT_PICTURES[len(sample)])
    if sample.dim() == 2:
        return sample.unsqueeze(0) if min(sample.shape) >= PLANE else None
    if sample.dim() != 3:
        return None
    channels_first = sample.shape[0] in (1, 3, 4) or sample.shape[-1] not in (1, 3, 4)
    planes = sample if channels_first else sample.permute(2, 0, 1)
    if min(planes.shape[1:]) < SMALLEST:
        return None
    if planes.shape[0] == 4:
        return planes[:3]
    return planes if planes.shape[0] in (1, 3) else planes.double().mean(0, keepdim=True)


def pixels(planes: Tensor, most: int = LARGEST) -> list[Any]:
    """Rows of 0–255, or of [r, g, b]."""
    values = torch.nan_to_num(planes.double(), 0.0, 0.0, 0.0)
    values = _levels(values, planes.dtype == torch.uint8)
    high, wide = values.shape[1:]
    largest = max(high, wide) / most
    if largest > 1:
        size = (max(round(high / largest), 1), max(round(wide / largest), 1))
        values = F.adaptive_avg_pool2d(values, size)
    whole = values.round().clamp(0, 255).to(torch.int64).permute(1, 2, 0)
    rows: list[Any] = (whole.squeeze(-1) if whole.shape[-1] == 1 else whole).tolist()
    return rows


def _levels(values: Tensor, whole: bool) -> Tensor:
    """To 0–255, based on the usual ranges of images; normalised ones are stretched to the full range."""
    low, high = float(values.min()), float(values.max())
    if whole or (low >= 0 and 2 < high <= 255):
        return values
    if low >= 0 and high <= 1:
        return values * 255
    if low >= -1 and high <= 1:
        return (values + 1) * 127.5
    return (values - low) * (255 / max(high - low, 1e-12))


def _decoded(tokens: Tensor, subject: Subject | None) -> str | None:
    decode = _decoder(subject)
    if decode is None:
        return None
    try:
        return str(decode([int(t) for t in tokens[:MOST_TOKENS]]))
    except Exception:  # noqa: BLE001 - the user's tokenizer: numbers are shown instead
        return None


def _decoder(subject: Subject | None) -> Callable[[list[int]], Any] | None:
    """`decode` of a tokenizer that the dataset or the loader's collate function references."""
    for owner in _owners(subject):
        for candidate in (
            owner,
            *(getattr(owner, n, None) for n in ("tokenizer", "processor", "vocab", "encoder")),
        ):
            decode = getattr(candidate, "decode", None)
            if callable(decode) and not isinstance(candidate, (str, bytes, type)):
                found: Callable[[list[int]], Any] = decode
                return found
    return None


def _datasets(subject: Subject | None) -> list[Any]:
    """The dataset, and those nested in it."""
    found: list[Any] = []
    inner = None if subject is None else subject.dataset
    while inner is not None and len(found) < 4:
        found.append(inner)
        inner = getattr(inner, "dataset", None)
    return found


def _owners(subject: Subject | None) -> list[Any]:
    collate = getattr(getattr(subject, "loader", None), "collate_fn", None)
    found = [*_datasets(subject), collate, getattr(collate, "__self__", None)]
    if isinstance(collate, functools.partial):
        found += [*collate.args, *collate.keywords.values()]
    found += [cell.cell_contents for cell in getattr(collate, "__closure__", None) or () if _is_filled(cell)]
    return [owner for owner in found if owner is not None]


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
