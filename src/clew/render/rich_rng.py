"""Rich draws names for its styles from Python's generator; the program's random numbers are not ours."""

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
