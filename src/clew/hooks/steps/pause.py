"""Pause recording while Clew itself runs the user's code."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from clew.hooks.steps.watcher import Watcher


def unwatched(watcher: Watcher) -> AbstractContextManager[None]:
    """Record nothing: what runs now is not the user's training."""
    return watcher.machine.unwatched()


def distributed() -> bool:
    """Whether training is distributed: replaying a step on one process could leave the others waiting."""
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return there and torch.distributed.get_world_size() > 1
