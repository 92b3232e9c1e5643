"""The recorder interface: the events of a training step that seams report.

A seam reports to `StepMachine.recorder` and does not know which recorder that is:

    FullRecorder   measures sampled steps, and handles every program
    LightRecorder  notes light steps, those between samples, and writes them later
    SILENT         ignores everything: nothing is attached, or Clew itself runs the user's code

The recorder changes at the boundary of a step (`StepMachine`). A seam that reports the beginning of a call
reports its end to the same recorder, even if the recorder changed in between.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import nn
from torch.optim import Optimizer


class Recorder(ABC):
    """The events of a step, in the order of most programs. They may be reported on any thread."""

    @abstractmethod
    def batch_delivered(self, seconds: float, batch: Any) -> None:
        """A loader delivered a batch that the program was waiting for."""

    @abstractmethod
    def gradients_zeroed(self) -> None:
        """`zero_grad()` returned."""

    @abstractmethod
    def forward_entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """A model is about to run. Returns whether `forward_left` or `forward_raised` must follow."""

    @abstractmethod
    def forward_left(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> None:
        """The model returned."""

    @abstractmethod
    def forward_raised(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """The model raised."""

    @abstractmethod
    def loss_entered(self) -> bool:
        """One of torch's loss functions is about to run. Returns whether `loss_called` must follow."""

    @abstractmethod
    def loss_called(self, kind: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """The loss function returned."""

    @abstractmethod
    def loss_raised(self, kind: str, function: Any, args: Any, kwargs: Any, error: BaseException) -> None:
        """The loss function raised; always reported."""

    @abstractmethod
    def backward_entered(self, tensors: Any) -> bool:
        """`backward()` is about to run. Returns whether `backward_left` or `backward_raised` must follow."""

    @abstractmethod
    def backward_left(self) -> None:
        """`backward()` returned."""

    @abstractmethod
    def backward_raised(self) -> None:
        """`backward()` raised."""

    @abstractmethod
    def update_entered(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`optimizer.step()` is about to run: parameters are not yet updated."""

    @abstractmethod
    def update_left(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`optimizer.step()` returned, which ends the training step or one of its several parts."""

    @abstractmethod
    def scheduler_stepped(self, scheduler: Any) -> None:
        """`scheduler.step()` returned."""


class SilentRecorder(Recorder):
    """Ignores all events."""

    def batch_delivered(self, seconds: float, batch: Any) -> None:
        """Not recorded."""

    def gradients_zeroed(self) -> None:
        """Not recorded."""

    def forward_entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Not recorded."""
        return False

    def forward_left(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> None:
        """Not recorded."""

    def forward_raised(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Not recorded."""

    def loss_entered(self) -> bool:
        """Not recorded."""
        return False

    def loss_called(self, kind: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Not recorded."""

    def loss_raised(self, kind: str, function: Any, args: Any, kwargs: Any, error: BaseException) -> None:
        """Not recorded."""

    def backward_entered(self, tensors: Any) -> bool:
        """Not recorded."""
        return False

    def backward_left(self) -> None:
        """Not recorded."""

    def backward_raised(self) -> None:
        """Not recorded."""

    def update_entered(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Not recorded."""

    def update_left(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Not recorded."""

    def scheduler_stepped(self, scheduler: Any) -> None:
        """Not recorded."""


SILENT = SilentRecorder()
