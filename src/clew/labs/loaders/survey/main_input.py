"""Finds the main input of a sample, its size, and whether it is rich enough that a copy is no coincidence."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence

import numpy as np

from clew.hooks.entry.user_line import USER, kind_of
from clew.labs.loaders.field_values import Leaf
from clew.records.dataset_survey import INPUT, Count, FieldSurvey

RICH_VALUES = 16  # values of a picture or wave
RICH_TOKENS = 8
RICH_TEXT = 20  # characters


def main_input(leaves: Mapping[str, Leaf], role: Mapping[str, str]) -> Leaf | None:
    inputs = [
        leaf for name, leaf in leaves.items() if role.get(name, INPUT) == INPUT and leaf.kind != "object"
    ]
    return max(inputs, key=lambda leaf: int(np.prod(leaf.shape)), default=None)


def scale_of(leaf: Leaf | None) -> float:
    """Root mean square of the finite values."""
    if leaf is None or leaf.array is None or not leaf.array.size or leaf.kind == "tokens":
        return 0.0
    values = leaf.array.astype(np.float64, copy=False)
    values = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(values * values))) if values.size else 0.0


def is_sequence(leaf: Leaf) -> bool:
    return leaf.kind in ("tokens", "text", "wave") or (
        leaf.kind in ("vector", "array") and len(leaf.shape) > 0
    )


def is_rich(leaf: Leaf) -> bool:
    """Contains enough that a copy is no coincidence."""
    if leaf.text is not None:
        return len(leaf.text) >= RICH_TEXT
    array = leaf.array
    if array is None or array.size < 2:
        return False
    if leaf.kind == "tokens":
        return array.size >= RICH_TOKENS and len(np.unique(array)) >= RICH_TOKENS // 2
    if leaf.kind != "vector" and array.size < RICH_VALUES:
        return False
    return bool((array != array.reshape(-1)[0]).any())


def place_of(error: Exception | None) -> tuple[str | None, int | None]:
    """The innermost line of the user's own code."""
    if error is None:
        return None, None
    frames = [f for f in traceback.extract_tb(error.__traceback__) if kind_of(f.filename) == USER]
    return (frames[-1].filename, frames[-1].lineno) if frames else (None, None)


def lacking(found: Sequence[FieldSurvey], looked: int) -> tuple[Count, ...]:
    return tuple(Count(f.name, looked - f.samples) for f in found if f.samples < looked)
