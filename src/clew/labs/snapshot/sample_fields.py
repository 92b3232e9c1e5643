"""The fields of a sample or batch, by key, field name or position: `image`, `meta.size`, `0`, `1.2`.

All that shows, measures, surveys or compares samples names their fields here, so that a field has one name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from itertools import islice
from typing import Any

import numpy as np

from clew.measure.nested_tensors import DEEPEST, named_parts

WHOLE = "sample"  # the name of a sample that is one field
MOST_FIELDS = 64
MOST_ITEMS = 16  # a longer list is one field: boxes, words
FEW = 4  # numbers that are a sample of several fields, if the sample is a tuple of only these


def sample_fields(sample: Any, *, rows: bool = True, most: int | None = MOST_FIELDS) -> dict[str, Any]:
    """The fields of a sample or batch.

    A list of numbers is one field, and so is a long list of anything. Without `rows` these are taken apart,
    too: collate creates one tensor for each number in them.
    """
    return dict(islice(_fields(sample, "", DEEPEST, rows), most))


def _fields(value: Any, name: str, depth: int, rows: bool) -> Iterator[tuple[str, Any]]:
    if not depth or not is_container(value) or (rows and is_one_field(value, top=not name)):
        yield name or WHOLE, value
        return
    for key, part in named_parts(value):
        yield from _fields(part, f"{name}.{key}" if name else str(key), depth - 1, rows)


def is_container(value: Any) -> bool:
    """Whether a value has named parts or items."""
    return isinstance(value, (Mapping, list, tuple)) or (is_dataclass(value) and not isinstance(value, type))


def is_one_field(value: Any, top: bool = False) -> bool:
    """Whether a list or tuple is a row of numbers, or too long; at the top, (0.5, 3) is input and label."""
    if not isinstance(value, (list, tuple)) or hasattr(value, "_fields"):
        return False
    short = top and isinstance(value, tuple) and len(value) <= FEW
    return not value or (_is_row(value) and not short)


def _is_row(value: Sequence[Any]) -> bool:
    """A list of numbers, or of such lists; or too many things of any other kind."""
    if isinstance(value[0], (list, tuple)):
        return all(isinstance(row, (list, tuple)) and row and _is_row(row) for row in value)
    return len(value) > MOST_ITEMS or all(isinstance(v, (bool, int, float, np.generic)) for v in value)
