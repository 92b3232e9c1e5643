"""Alarm for a non-finite loss or gradient: records what else is not finite while it can still be read.

Each place (loss, gradient, evaluation) raises the alarm once per run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from clew.hooks.collect_layers.trained_models import ParameterName
from clew.hooks.collect_loop.optimizers import OptimizerState, is_finite
from clew.hooks.steps.replay_inputs import Holding
from clew.measure.loss_arguments import loss_arguments
from clew.measure.readable_tensors import is_nonfinite
from clew.records.facts.nan_facts import ExplainedFact, NonFiniteFact
from clew.records.site import Line, Site

if TYPE_CHECKING:
    from clew.hooks.steps.watcher import Watcher

MOST_NAMES = 20
MOST_ROWS = 64  # most samples of an evaluation that are listed

Named = list[tuple[Tensor, ParameterName]]


class Alarms:
    """Writes the fact `nonfinite` and notifies the replay."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._given: set[str] = set()

    def give(self, where: str, step: int, line: Line, state: OptimizerState | None, **details: Any) -> None:
        """A non-finite loss or gradient was found."""
        if where in self._given:
            return
        self._given.add(where)
        watcher = self._watcher
        named = [
            pair for s in ([state] if state is not None else watcher.optimizers.states) for pair in s.named
        ]
        late = watcher.late.is_waiting or (state is not None and state.uses_closure) or step != watcher.step
        explain = watcher.on_alarm if not late else None  # if late, the parameters have already changed
        found = _found(where, line, named, watcher.holding)
        replace(found, **details, explained=explain is not None).write(watcher.sink, step)
        if explain is not None:
            try:
                explain(where, step, state)
            finally:  # live viewers of the run are waiting for it
                ExplainedFact(where).write(watcher.sink, step)

    def never_updated(self, optimizer: Optimizer, line: Line, details: dict[str, Any]) -> None:
        """A GradScaler has skipped more steps than its scale can explain."""
        watcher = self._watcher
        self.give("gradient", watcher.step, line, watcher.optimizers.state_of(optimizer), **details)

    def find_bad_micro_batch(self) -> None:
        """When gradients accumulate over several backwards, find which of them was non-finite."""
        watcher = self._watcher
        if not watcher.holding.accumulates or watcher.holding.scaled or "gradient" in self._given:
            return
        for state in watcher.optimizers.states:
            norm = state.norm() if state.site is not None and not state.uses_closure else 0.0
            if type(norm) is float and not is_finite(norm):
                site = state.site or Site()
                self.give("gradient", watcher.step, (site.file, site.line), state)

    def evaluated(self, loss: float, args: Any, kwargs: Any, where: Line) -> None:
        """The loss of an evaluation is not finite. There is no replay, since no inputs were kept.

        A NaN from finite numbers is the mean of nothing (no targets, or all ignored): not a fault.
        """
        prediction, target, *_ = loss_arguments(args, kwargs)
        given = {"prediction": prediction, "target": target}
        bad = [name for name, t in given.items() if isinstance(t, Tensor) and is_nonfinite(t)]
        if "evaluation" in self._given or (loss != loss and not bad):
            return
        self._given.add("evaluation")
        named = [pair for s in self._watcher.optimizers.states for pair in s.named]
        bad_weights = [*nonfinite_names(named, gradients=False), *self._bad_buffers()]
        fact = NonFiniteFact(
            where="evaluation",
            kind="nan" if loss != loss else "inf",
            file=where[0],
            line=where[1],
            bad_weights=tuple(bad_weights[:MOST_NAMES]),
            bad_inputs=tuple(bad),
            samples=tuple(bad_samples(prediction)[:MOST_ROWS]),
            batch=len(prediction) if isinstance(prediction, Tensor) and prediction.dim() else 0,
        )
        fact.write(self._watcher.sink, self._watcher.step)

    def _bad_buffers(self) -> Iterator[str]:
        """Running statistics that a single bad batch has corrupted; they are used only in evaluation."""
        modules = [top for root in self._watcher.models.roots if (top := root.module()) is not None]
        return (name for top in modules for name, buffer in top.named_buffers() if is_nonfinite(buffer))


def _found(where: str, line: Line, named: Named, holding: Holding) -> NonFiniteFact:
    gradients = nonfinite_names(named, gradients=True) if where == "gradient" else []
    return NonFiniteFact(
        where=where,
        file=line[0],
        line=line[1],
        parameters=tuple(gradients[:MOST_NAMES]),
        bad_weights=tuple(nonfinite_names(named, gradients=False)[:MOST_NAMES]),
        bad_inputs=tuple(holding.nonfinite_inputs()),
    )


def nonfinite_names(named: Named, *, gradients: bool) -> list[str]:
    """Names of parameters (or gradients) that contain a NaN or an infinity; called only after an alarm."""
    tensors = [(p.grad if gradients else p.detach(), name) for p, name in named]
    return [name.full for tensor, name in tensors if tensor is not None and is_nonfinite(tensor)]


def bad_samples(prediction: Any) -> list[int]:
    """Indices of the rows of a batch that are not finite."""
    if not isinstance(prediction, Tensor) or not prediction.dim() or not is_nonfinite(prediction):
        return []
    if type(prediction) is not Tensor or prediction.layout is not torch.strided:
        return []
    rows = ~torch.isfinite(prediction.detach()).flatten(1 if prediction.dim() > 1 else 0)
    rows = rows.any(1) if rows.dim() > 1 else rows
    return [int(row) for row in rows.nonzero().flatten()]
