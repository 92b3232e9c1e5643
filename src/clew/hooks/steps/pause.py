"""Looking away for a while: what runs then is not the user's training."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from clew.hooks.steps.watcher import Watcher


def unwatched(watcher: Watcher) -> AbstractContextManager[None]:
    """The seams look away: what runs now is not the user's step."""
    return watcher.machine.unwatched()


def distributed() -> bool:
    """Running a step again on one of several processes could leave the others waiting."""
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return there and torch.distributed.get_world_size() > 1
