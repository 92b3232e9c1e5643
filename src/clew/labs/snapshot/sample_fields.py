"""The fields of a sample, and the field of a batch that each one ends up in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

# How a field of a batch relates to the field that the dataset returned.
SAME = "same"  # except for dtype and shape
MADE = "made of it"  # other values: padded, scaled, encoded, random; not a fault in itself
LOST = "cut off"  # values lost in a cast
MOVED = "moved"  # the rows of the samples are in another order
REPEATED = "repeated"  # the rows of different samples are all equal
MIXED = "mixed"  # the values of the samples, but in the rows of others
SWAPPED = "swapped"  # the values of another field
MISSING = "missing"  # fewer rows than samples
ROUNDING = 1e-2  # of the largest value: the rounding of half precision


@dataclass(frozen=True)
class Field:
    """One field of all samples of a batch: as the dataset returned them, and as they were delivered."""

    name: str
    relation: str
    detail: str = ""


def parts(sample: Any, prefix: str = "") -> dict[str, Any]:
    """The fields of a sample or batch, by key or position."""
    if isinstance(sample, Mapping):
        pairs = [(str(key), value) for key, value in sample.items()]
    elif isinstance(sample, (list, tuple)):
        pairs = [(str(n), value) for n, value in enumerate(sample)]
    else:
        return {prefix or "sample": sample}
    return {
        k: v for name, part in pairs for k, v in parts(part, f"{prefix}.{name}" if prefix else name).items()
    }


def column(samples: Sequence[Any]) -> Tensor | None:
    """One field of all samples as a tensor; None if they can't be stacked."""
    tensors = [_tensor(s) for s in samples]
    known = [t for t in tensors if t is not None]
    if len(known) != len(tensors) or len({t.shape for t in known}) != 1:
        return None
    return torch.stack(known)


def _tensor(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        made = value.detach().cpu()
    elif isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "buif":
        made = torch.from_numpy(np.array(value))
    elif isinstance(value, (bool, int, float)):
        made = torch.tensor(value)
    else:
        return None
    return None if made.is_complex() or made.is_sparse else made.double()


def relation(name: str, wanted: Tensor, delivered: Any, others: Mapping[str, Tensor]) -> Field:
    """How the column of one field changed; `others` are the columns of all fields."""
    found = _tensor(delivered)
    if found is None or found.dim() == 0:
        return Field(name, MADE)
    if len(found) != len(wanted):
        return Field(name, MISSING if len(found) < len(wanted) else MADE, detail=f"{len(found)}")
    if found[0].numel() != wanted[0].numel():
        return _other_size(name, wanted, found)
    rows, given = wanted.reshape(len(wanted), -1), found.reshape(len(found), -1)
    if _near(rows, given):
        return Field(name, SAME)
    if _moved(rows, given):
        return Field(name, MOVED)
    for other, values in others.items():
        if other != name and values.shape == wanted.shape and _near(values.reshape(rows.shape), given):
            return Field(name, SWAPPED, detail=other)
    return _values(name, rows, given, delivered)


def _other_size(name: str, wanted: Tensor, found: Tensor) -> Field:
    alike = len(found) > 1 and bool((found == found[:1]).all()) and not bool((wanted == wanted[:1]).all())
    return Field(name, REPEATED if alike else MADE)


def _values(name: str, rows: Tensor, given: Tensor, delivered: Any) -> Field:
    if len(rows) > 1 and bool((given == given[:1]).all()) and not bool((rows == rows[:1]).all()):
        which = next((n for n, row in enumerate(rows) if _near(row, given[0])), None)
        if not _cut_off(rows, given):
            return Field(name, REPEATED, detail="" if which is None else str(which))
    if _cut_off(rows, given):
        return Field(name, LOST, detail=str(getattr(delivered, "dtype", "")).removeprefix("torch."))
    each = _near(rows.sort(1).values, given.sort(1).values)  # an image with its channels first
    if not each and _near(rows.flatten().sort().values, given.flatten().sort().values):
        return Field(name, MIXED)
    return Field(name, MADE)


def _near(a: Tensor, b: Tensor) -> bool:
    """Equal except for the rounding of a cast to lower precision."""
    if not bool((torch.isfinite(a) == torch.isfinite(b)).all()):
        return False
    ok = torch.isfinite(a)
    largest = float(a[ok].abs().max()) if bool(ok.any()) else 0.0
    return bool(((a[ok] - b[ok]).abs() <= ROUNDING * a[ok].abs() + 1e-3 * ROUNDING * largest).all())


def _moved(rows: Tensor, given: Tensor) -> bool:
    """All samples are present, in another order; for labels, each as often as before."""
    if rows.shape[1] == 1:
        return _near(rows.flatten().sort().values, given.flatten().sort().values)
    near = torch.cdist(given.nan_to_num(), rows.nan_to_num()).argmin(1)
    everyone = len(set(near.tolist())) == len(torch.unique(rows, dim=0))
    return everyone and _near(rows[near], given)


def _cut_off(rows: Tensor, given: Tensor) -> bool:
    """Whole numbers where there were fractions, or the remainder of large numbers in a small dtype."""
    whole = bool((given == given.round()).all())
    fractions = bool((rows != rows.round()).any())
    truncated = bool((rows.trunc() == given).all()) or bool((rows.round() == given).all())
    if not whole or (fractions and truncated):
        return whole
    # The remainder of a large or negative number in a small dtype; torch drops the fraction first.
    return any(bool((rows.trunc().remainder(m) == given.remainder(m)).all()) for m in (2**8, 2**16, 2**32))
