"""Splits a sample into fields, each an array or a text, for anything a dataset can return."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from clew.labs.snapshot.sample_fields import sample_fields
from clew.records.data_names import LABEL_NAMES
from clew.records.dataset_survey import INPUT, LABEL, OTHER

PLANE = 8  # rows and columns from which a matrix counts as an image
WAVE = 1024  # values in a row from which it counts as a waveform
TOKENS = 4
OTHER_NAMES = {
    "id", "ids", "idx", "index", "indices", "path", "file", "filename", "file_name", "name", "key", "uid",
    "uuid", "url", "weight", "weights", "sample_weight", "meta", "metadata", "length", "lengths",
}  # fmt: skip

SAMPLED = (np.uint8, np.int8, np.int16)  # whole numbers that are measurements: pixels, sound
NUMPY_FLOATS = (torch.float16, torch.float32, torch.float64)  # numpy has no others

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Leaf:
    """One field of one sample."""

    kind: str  # as FieldSurvey.kind
    dtype: str  # "float32", "str", "NoneType"
    shape: tuple[int, ...]
    array: Array | None = None  # real numbers
    text: str | bytes | None = None

    @property
    def is_single(self) -> bool:
        """One answer: a number, a text, or a one-hot vector."""
        return self.kind in ("number", "text") or self.is_one_hot

    @property
    def is_one_hot(self) -> bool:
        values = self.array
        if values is None or values.ndim != 1 or len(values) < 2:
            return False
        return bool(((values == 0) | (values == 1)).all()) and float(values.sum()) == 1.0


def split_fields(sample: Any) -> dict[str, Leaf]:
    """The fields of a sample by key or position."""
    return {name: leaf(value) for name, value in sample_fields(sample).items()}


def leaf(value: Any) -> Leaf:
    """A value that is not split any further."""
    if isinstance(value, (str, bytes)):
        return Leaf("text", type(value).__name__, (len(value),), text=value)
    array, dtype = _array(value)
    if array is None:
        return Leaf("object", dtype, ())
    return Leaf(_kind(array), dtype, array.shape, array)


def _array(value: Any) -> tuple[Array | None, str]:
    """The numbers in a value, and the type they were stored as."""
    name = type(value).__name__
    if isinstance(value, Tensor):
        return _of_tensor(value), str(value.dtype).removeprefix("torch.")
    if isinstance(value, (bool, int, float)):
        return np.asarray(value if abs(value) < 2**63 or isinstance(value, float) else math.inf), name
    if isinstance(value, (np.ndarray, np.generic)):
        made = np.asarray(value)
        return (made if made.dtype.kind in "buif" else None), str(made.dtype)
    if isinstance(value, (list, tuple)) and value:
        try:
            made = np.asarray(value)
        except ValueError:  # ragged
            return None, f"{name} of lists"
        return (made if made.dtype.kind in "buif" else None), f"{name} of {made.dtype.name}"
    if hasattr(value, "getbands") and hasattr(value, "size"):  # a PIL image
        return np.asarray(value), f"PIL {getattr(value, 'mode', '')}".strip()
    return None, name


def _of_tensor(value: Tensor) -> Array | None:
    if value.layout is not torch.strided or getattr(value, "is_nested", False) or value.is_quantized:
        return None
    plain = value.detach().cpu()
    if plain.is_complex():
        plain = torch.view_as_real(plain)
    if plain.is_floating_point() and plain.dtype not in NUMPY_FLOATS:
        plain = plain.float()
    array: Array = plain.resolve_conj().resolve_neg().numpy()
    return array


def _kind(array: Array) -> str:
    shape = array.shape
    if array.ndim == 0 or array.size == 1:
        return "number"
    if array.ndim == 1 or (array.ndim == 2 and 1 in shape):
        if array.dtype.kind in "iu" and array.dtype not in SAMPLED and array.size >= TOKENS:
            return "tokens"
        return "wave" if array.size >= WAVE and array.dtype.kind in "fi" else "vector"
    planes = array.dtype.kind == "f" or array.dtype == np.uint8
    if array.ndim == 2:
        return "image" if planes and min(shape) >= PLANE else "array"
    if array.ndim == 3 and planes and (shape[0] in (1, 3, 4) or shape[2] in (1, 3, 4)):
        sides = shape[1:] if shape[0] in (1, 3, 4) else shape[:2]
        return "image" if min(sides) >= PLANE else "array"
    return "array"


def roles(probed: Iterable[tuple[int, Mapping[str, Leaf]]]) -> dict[str, str]:
    """The role of each field, from a few samples with their indices."""
    samples = list(probed)
    names = list(dict.fromkeys(name for _, sample in samples for name in sample))
    found = {name: OTHER if _is_aside(name, samples) else INPUT for name in names}
    label = _label(names, found)
    for name in names:
        last = name.rpartition(".")[2].lower()
        if name == label or (label is None and last in LABEL_NAMES):
            found[name] = LABEL
    numbers = [n for n in names if found[n] == INPUT and _kinds(n, samples) - {"text", "object"}]
    for name in names:
        if numbers and found[name] == INPUT and name not in numbers:
            found[name] = OTHER  # a text next to numbers is what they were made from
    return found


def _label(names: list[str], found: Mapping[str, str]) -> str | None:
    """The field with the answer: by its name, or the last of a tuple."""
    called = [n for n in names if n.rpartition(".")[2].lower() in LABEL_NAMES]
    if called:
        return called[0]
    rest = [n for n in names if found[n] == INPUT]
    by_place = all(n.partition(".")[0].isdigit() for n in names)
    if not by_place or len({n.partition(".")[0] for n in rest}) < 2:
        return None
    last = rest[-1]
    return last if "." not in last or len(names) == 1 else None


def _is_aside(name: str, samples: Sequence[tuple[int, Mapping[str, Leaf]]]) -> bool:
    """An identifier or similar: by its name, or because it is the index of the sample."""
    if name.rpartition(".")[2].lower() in OTHER_NAMES:
        return True
    values = [(i, s[name].array) for i, s in samples if name in s and s[name].kind == "number"]
    return len(values) >= 3 and all(a is not None and float(a.reshape(-1)[0]) == i for i, a in values)


def main_input(leaves: Mapping[str, Leaf], role: Mapping[str, str]) -> Leaf | None:
    """The largest input of a sample."""
    inputs = [
        leaf for name, leaf in leaves.items() if role.get(name, INPUT) == INPUT and leaf.kind != "object"
    ]
    return max(inputs, key=lambda leaf: math.prod(leaf.shape), default=None)


def _kinds(name: str, samples: Sequence[tuple[int, Mapping[str, Leaf]]]) -> set[str]:
    return {sample[name].kind for _, sample in samples if name in sample}
