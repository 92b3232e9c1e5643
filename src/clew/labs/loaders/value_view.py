"""Describes any value for display: its type and range, and an image, text or waveform."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clew.labs.loaders.token_decoder import TokenDecoder
from clew.labs.snapshot.sample_exhibits import MOST_POINTS, WAVE, pixels, planes_of, shown
from clew.labs.snapshot.sample_fields import is_container, is_one_field, sample_fields
from clew.measure.nested_tensors import named_parts
from clew.records.data_names import LABEL_NAMES
from clew.records.sample_views import FieldView, ValueView

LARGEST = 96  # largest side of an image in pixels
MOST_PARTS = 12  # fields of a sample that are described
MOST_ELEMENTS = 1 << 24  # elements of a value above which a part of it is used
MOST_TEXT = 400
DARK = 128.0  # of 255: an image whose maximum is lower is on another scale
RATES = ("sample_rate", "sampling_rate", "sr", "samplerate", "fs")


def part_of(name: str, value: Any) -> FieldView:
    """One value in numbers."""
    tensor = tensor_of(value)
    if tensor is None:
        return FieldView(name, type_of(value), text=_short(value), shape=_length(value))
    low, high, mean, std, bad = _range(tensor)
    text = _number(tensor) if tensor.numel() == 1 else ""
    size = None if isinstance(value, (bool, int, float)) else tuple(tensor.shape)
    dtype = str(tensor.dtype).removeprefix("torch.") if size is not None else ""
    return FieldView(name, type_of(value), dtype, size, low, high, mean, std, bad, text)


def parts_of(value: Any) -> tuple[FieldView, ...]:
    """All fields of a sample or batch."""
    return tuple(part_of(name, item) for name, item in sample_fields(value, most=MOST_PARTS).items())


def tensor_of(value: Any) -> Tensor | None:
    """Numbers of any kind, and images, as a tensor; None for anything else."""
    if isinstance(value, Tensor):
        return value.detach().to_dense().cpu() if value.layout is not torch.strided else value.detach().cpu()
    if isinstance(value, (bool, int, float)):
        return torch.tensor(value) if not isinstance(value, int) or abs(value) < 2**63 else None
    if is_picture(value):
        value = np.asarray(value)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "buif":
        return _from_numpy(np.asarray(value))
    if isinstance(value, list) and value and all(isinstance(v, (int, float)) for v in value[:MOST_ELEMENTS]):
        return torch.tensor(value)
    return None


def _from_numpy(array: Any) -> Tensor:
    try:
        return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("=")))
    except TypeError:  # a dtype that torch lacks, such as uint16 in old versions
        return torch.from_numpy(np.array(array, dtype=np.float64))


def is_picture(value: Any) -> bool:
    """Whether it is a PIL image."""
    return hasattr(value, "mode") and hasattr(value, "getpixel") and hasattr(value, "size")


def type_of(value: Any) -> str:
    if isinstance(value, Tensor):
        return "tensor" if type(value) is Tensor else type(value).__name__
    if is_picture(value):
        return f"image {value.mode}"
    if isinstance(value, np.ndarray):
        return "array"
    return "None" if value is None else type(value).__name__


def _length(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, (list, tuple, dict, str, bytes)):
        return (len(value),)
    return None


def _short(value: Any) -> str:
    if isinstance(value, str):
        return value[:MOST_TEXT]
    return "" if isinstance(value, (list, tuple, dict)) or value is None else repr(value)[:80]


def _number(tensor: Tensor) -> str:
    value = tensor.reshape(()).item()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _range(tensor: Tensor) -> tuple[float | None, float | None, float | None, float | None, int]:
    if not tensor.numel() or tensor.is_complex():
        return None, None, None, None, 0
    flat = tensor.reshape(-1)[:MOST_ELEMENTS].double()
    finite = flat[torch.isfinite(flat)]
    bad = len(flat) - len(finite)
    if not len(finite):
        return None, None, None, None, bad
    std = float(finite.std(correction=0))
    return float(finite.min()), float(finite.max()), float(finite.mean()), std, bad


# -- for display --


def view_value(
    sample: Any, title: str, decoder: TokenDecoder, *, index: int | None = None, label: str | None = None
) -> ValueView:
    """A sample with its label and its most informative field."""
    fields = sample_fields(sample, most=MOST_PARTS)
    target = label_field(fields)
    answer = label if label is not None else label_text(fields.get(target) if target else None, decoder)
    name = main_field(fields, target)
    kind, data = exhibit_of(fields[name], decoder) if name is not None else ("text", "")
    rate = rate_in(fields, decoder) if kind == "wave" else None
    parts = tuple(part_of(key, value) for key, value in fields.items())
    return ValueView(title, index, answer, kind, data, rate, parts)


def main_field(fields: Mapping[str, Any], target: str | None) -> str | None:
    """The largest field that is not the label."""
    others = [key for key in fields if key != target] or list(fields)
    return max(others, key=lambda key: _weight(fields[key]), default=None)


def _weight(value: Any) -> tuple[int, int]:
    tensor = tensor_of(value)
    if tensor is not None:
        words = not tensor.is_floating_point() and tensor.dim() == 1
        return (2 if planes_of(tensor) is not None or words else 1), tensor.numel()
    return (1, len(value)) if isinstance(value, str) else (0, 0)


def label_field(fields: Mapping[str, Any]) -> str | None:
    """By its name; else the last of several fields, if it is one answer."""
    for key in fields:
        if key.lower().rsplit(".", 1)[-1] in LABEL_NAMES:
            return key
    keys = list(fields)
    last = fields[keys[-1]] if len(keys) > 1 else None
    by_position = len(keys) > 1 and keys[-1].isdigit()
    return keys[-1] if by_position and _is_answer(last) else None


def _is_answer(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) < 40
    tensor = tensor_of(value)
    return tensor is not None and (tensor.numel() == 1 or (tensor.dim() == 1 and _is_one_hot(tensor)))


def _is_one_hot(tensor: Tensor) -> bool:
    values = tensor.double()
    return tensor.numel() <= 1000 and bool(((values == 0) | (values == 1)).all()) and float(values.sum()) == 1


def label_text(value: Any, decoder: TokenDecoder) -> str:
    """`3 (cat)`, `0.53`; empty for an answer of many numbers."""
    if isinstance(value, str):
        return value[:40]
    tensor = tensor_of(value) if value is not None else None
    if tensor is None or not tensor.numel():
        return ""
    if tensor.dim() == 1 and tensor.numel() > 1 and _is_one_hot(tensor):
        tensor = tensor.argmax()
    if tensor.numel() != 1:
        return ""
    number = tensor.reshape(()).item()
    name = decoder.class_name(number)
    return f"{_number(tensor)} ({name})" if name else _number(tensor)


def exhibit_of(value: Any, decoder: TokenDecoder) -> tuple[str, Any]:
    """The kind of exhibit that fits, and its data."""
    if isinstance(value, str):
        return "text", value[:MOST_TEXT]
    tensor = tensor_of(value)
    if tensor is None:
        listed = isinstance(value, (list, tuple)) and value and all(isinstance(v, str) for v in value)
        return "text", " ".join(value)[:MOST_TEXT] if listed else _short(value) or type_of(value)
    if not tensor.is_floating_point() and tensor.dim() == 1:
        text = decoder.text([int(t) for t in tensor[:MOST_TEXT]])
        if text is not None:
            return "text", text[:MOST_TEXT]
    planes = planes_of(tensor)
    if planes is not None and tensor.numel():
        return "image", pixels(_brightened(planes), LARGEST)
    wave = _wave(tensor)
    return ("wave", wave) if wave is not None else shown(tensor)


def _brightened(planes: Tensor) -> Tensor:
    """For numbers that are not bytes, such as 0 to 16, the maximum is white."""
    if not planes.is_floating_point() or not planes.numel():
        return planes
    values = torch.nan_to_num(planes.double(), 0.0, 0.0, 0.0)
    low, high = float(values.min()), float(values.max())
    return values * (255 / high) if low >= 0 and 1 < high < DARK else planes


def _wave(tensor: Tensor) -> list[float] | None:
    """A long row of numbers, or a few channels of it: the extremes of every stretch, so that peaks remain."""
    flat = tensor.squeeze()
    if flat.dim() == 2 and flat.shape[0] <= 8 and flat.shape[1] >= WAVE:
        flat = flat.double().mean(0)
    if flat.dim() != 1 or len(flat) < WAVE or not flat.is_floating_point():
        return None
    values = torch.nan_to_num(flat.double(), 0.0, 0.0, 0.0)
    stride = -(-len(values) // (MOST_POINTS // 2))
    if stride <= 2:
        return [float(f"{v:.4g}") for v in values.tolist()]
    lots = values[: len(values) // stride * stride].reshape(-1, stride)
    pairs = torch.stack([lots.min(1).values, lots.max(1).values], 1).reshape(-1)
    return [float(f"{v:.4g}") for v in pairs.tolist()]


def rate_in(fields: Mapping[str, Any], decoder: TokenDecoder) -> int | None:
    """The sample rate, if the sample or its dataset states it."""
    named = (fields[key] for key in fields if key.lower().rsplit(".", 1)[-1] in RATES)
    for value in itertools.chain(named, decoder.attributes(RATES)):
        if isinstance(value, (int, float)) and 1000 <= value <= 400_000:
            return int(value)
    return None


def rows_of(batch: Any, number: int) -> list[Any]:
    """The first samples of a batch, in the same containers; empty where it can't be split."""
    size = size_of(batch)
    return [_row(batch, n, size) for n in range(min(number, size or 0))]


def size_of(batch: Any) -> int | None:
    """Samples in a batch: the common length of its tensors' first dimension."""
    lengths = [len(t) for t in _leaves(batch) if t.dim() > 0]
    return max(set(lengths), key=lambda n: (lengths.count(n), -lengths.index(n))) if lengths else None


def _leaves(batch: Any) -> Iterator[Tensor]:
    """Tensors with a row for each sample; not those of nested lists, which may have an item for each."""
    split = is_container(batch) and not is_one_field(batch, top=True)
    for part in [part for _, part in named_parts(batch)] if split else [batch]:
        fields = {} if isinstance(part, list) and not is_one_field(part) else sample_fields(part)
        for value in fields.values():
            tensor = value if isinstance(value, Tensor) else tensor_of(value)
            if tensor is not None:
                yield tensor


def _row(value: Any, n: int, size: int | None) -> Any:
    if is_container(value) and (not isinstance(value, (list, tuple)) or hasattr(value, "_fields")):
        return {key: _row(item, n, size) for key, item in named_parts(value)}
    if isinstance(value, (list, tuple)) and len(value) == size and not _holds_batches(value, size):
        return value[n]
    if isinstance(value, (list, tuple)):
        return tuple(_row(item, n, size) for item in value)
    if isinstance(value, (Tensor, np.ndarray)) and value.ndim > 0 and len(value) == size:
        return value[n]
    return value


def _holds_batches(value: Sequence[Any], size: int | None) -> bool:
    return any(isinstance(v, Tensor) and v.dim() > 0 and len(v) == size for v in value)
