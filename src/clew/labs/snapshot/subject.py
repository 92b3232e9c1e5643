"""The subject of an experiment: the user's models, step, optimizer and data, in their initial state.

Everything in it belongs to the program. Experiments run inside `snapshot()` (see `step_snapshot.py`), which
sets the initial state and restores the current state afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from clew.labs.snapshot.snapshot import Autocast
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot, TrainingState
from clew.labs.snapshot.time_limit import CannotJudge
from clew.records.site import Line

STEP_HINT = "pass the step as a function: clew.examine(model, step=lambda batch: loss, batch_or_loader=batch)"


@dataclass
class Subject:
    """The program as the experiments see it; a part that is not available is None, with why in `reasons`."""

    models: dict[str, nn.Module]  # outermost ones, by name
    batches: list[StepBatch] = field(default_factory=list)  # in the order in which training saw them
    step: Callable[[StepBatch], Tensor] | None = None  # the user's own code from model to loss
    optimizers: list[Optimizer] = field(default_factory=list)
    initial: TrainingState | None = None  # before the first step; None: as it is now
    autocast: Autocast = field(default_factory=Autocast)
    clip: float | None = None  # the program's gradient-clipping norm
    loader: Any = None  # the torch DataLoader that the batches came from
    dataset: Any = None
    line: Line = (None, None)  # of backward(), or of the call of examine
    source: str = ""  # the step as text
    reasons: dict[str, str] = field(default_factory=dict)  # what is missing ("step", "loader", …) and why
    hints: dict[str, str] = field(default_factory=dict)  # the line of code that would help
    losses: list[float] = field(default_factory=list)  # the program's own losses, batch by batch
    owners: list[Any] = field(default_factory=list)  # further objects whose attributes are restored
    cache: dict[str, Any] = field(default_factory=dict)  # results of experiments that others can use

    def snapshot(self, *, seed: int = 0, fresh: bool = False) -> StepSnapshot:
        """A context to try something in; `fresh`: with newly drawn weights where modules support it."""
        return StepSnapshot(self, seed, fresh=fresh)

    @property
    def model(self) -> nn.Module:
        """The one model; raises where there are several."""
        if len(self.models) != 1:
            what = "no model was found" if not self.models else f"{len(self.models)} models are trained"
            raise CannotJudge(what)
        return next(iter(self.models.values()))

    @property
    def optimizer(self) -> Optimizer:
        if len(self.optimizers) != 1:
            what = "no optimizer was found" if not self.optimizers else "several optimizers alternate"
            raise CannotJudge(what)
        return self.optimizers[0]

    def batch(self) -> StepBatch:
        """The first batch; raises without one."""
        if not self.batches:
            raise CannotJudge(
                self.reasons.get("batches", "no batch was found"), self.hints.get("batches", "")
            )
        return self.batches[0]

    def need_step(self) -> None:
        """Raise unless the user's own loss can be recomputed."""
        if self.step is None:
            reason = self.reasons.get("step", "the loss can't be computed again")
            raise CannotJudge(reason, self.hints.get("step", STEP_HINT))

    def need_training(self) -> None:
        """Raise unless the user's own steps can be run: the loss, and the update of the only optimizer."""
        self.need_step()
        _ = self.optimizer

    def parameters(self) -> list[nn.Parameter]:
        """All trainable parameters, each once."""
        seen: dict[int, nn.Parameter] = {}
        for module in self.models.values():
            seen.update({id(p): p for p in module.parameters() if p.requires_grad})
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                seen.update({id(p): p for p in group["params"] if p.requires_grad})
        return list(seen.values())

    def learning_rate(self) -> float:
        """As the user wrote it: a scheduler's warm-up may have made it small at first."""
        group = self.optimizer.param_groups[0]
        return float(torch.as_tensor(group.get("initial_lr", group["lr"])))
