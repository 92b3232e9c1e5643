"""Looking away for a while: what runs then is not the user's training."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.hooks.steps.watcher import Watcher

NOBODY = -1  # no thread has this number


@contextmanager
def unwatched(watcher: Watcher) -> Iterator[None]:
    """The seams look away: what runs now is not the user's step."""
    watcher.plain.settle()
    thread, inside = watcher.thread, watcher.in_backward
    watcher.thread, watcher.in_backward = NOBODY, True
    try:
        yield
    finally:
        watcher.thread, watcher.in_backward = thread, inside


def distributed() -> bool:
    """Running a step again on one of several processes could leave the others waiting."""
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return there and torch.distributed.get_world_size() > 1
