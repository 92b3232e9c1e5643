"""The course of the training loss: falling, flat, or diverging."""

from __future__ import annotations

from collections.abc import Sequence

from clew.checks.run_view import RunView
from clew.checks.series import Series


def train_losses(run: RunView) -> Sequence[Series]:
    """The loss at every `backward()` call."""
    return [series for _, series in run.series("loss", "train")]


def lead_loss(run: RunView) -> Series | None:
    """The loss with most values; in doubt the one seen first."""
    return max(train_losses(run), key=len, default=None)
