"""The recorder interface: the events of a training step that seams report.

A seam reports to `StepMachine.recorder` and does not know which recorder that is:

    FullRecorder   measures sampled steps, and handles every program
    LightRecorder  notes light steps, those between samples, and writes them later
    SILENT         ignores everything: nothing is attached, or Clew itself runs the user's code

The recorder changes at the boundary of a step (`StepMachine`). A seam that reports the beginning of a call
reports its end to the same recorder, even if the recorder changed in between. The hooks on modules and
optimizers are called by torch before and after a call, and share nothing: they report to the recorder of the
moment.

If a recorder raises, `StepMachine.failed` names another, which gets the event again. Seams that every step
passes through have this `try` in place, since a function around it would cost one more call per event; the
others use `report` (`hooks/seams/probes.py`).
"""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.optim import Optimizer


class Recorder:
    """The events of a step, in the order of most programs. They may be reported on any thread.

    Ignores all events: a recorder overrides every method.
    """

    def batch_delivered(self, seconds: float, batch: Any) -> None:
        """A loader delivered a batch that the program was waiting for."""

    def gradients_zeroed(self) -> None:
        """`zero_grad()` returned."""

    def module_entered(self, module: nn.Module, args: Any) -> None:
        """A module is about to run, a model or one inside it: reported while hooks are installed."""

    def module_left(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """The module returned, or raised (then the output is None)."""

    def forward_entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """A followed model is about to run. Returns whether its end must be reported, too."""
        return False

    def forward_left(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> None:
        """The model returned."""

    def forward_raised(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """The model raised."""

    def loss_entered(self) -> bool:
        """One of torch's loss functions is about to run. Returns whether `loss_called` must follow."""
        return False

    def loss_called(self, kind: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """The loss function returned."""

    def loss_raised(self, kind: str, function: Any, args: Any, kwargs: Any, error: BaseException) -> None:
        """The loss function raised; always reported."""

    def backward_entered(self, tensors: Any) -> bool:
        """`backward()` is about to run. Returns whether `backward_left` or `backward_raised` must follow."""
        return False

    def backward_left(self) -> None:
        """`backward()` returned."""

    def backward_raised(self) -> None:
        """`backward()` raised."""

    def update_entered(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`optimizer.step()` is about to run: parameters are not yet updated."""

    def update_left(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`optimizer.step()` returned, which ends the training step or one of its several parts."""

    def scheduler_stepped(self, scheduler: Any) -> None:
        """`scheduler.step()` returned."""


SILENT = Recorder()
