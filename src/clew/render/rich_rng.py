"""Keeps rich away from Python's random generator: rich draws style names from it, which changes the run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undrawn() -> Iterator[None]:
    """Around a drawing: the generator goes on from where it was."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)
