"""From a sentinel's alarm to a culprit: keeps the step, replays it and records the result."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from clew.hooks.collect_layers.trained_models import unwrap
from clew.hooks.collect_loop.optimizers import OptimizerState
from clew.hooks.steps.replay_inputs import Holding
from clew.hooks.steps.step_machine import distributed
from clew.labs.replay.culprits import culprit_fields
from clew.labs.replay.step_replay import ReplayAnswer, answer
from clew.labs.snapshot.nonfinite_values import NonFiniteStep, RootCall
from clew.labs.snapshot.snapshot import Autocast
from clew.labs.snapshot.users_step.loss_origin import frame_of, returned_from
from clew.measure.rng import Rng
from clew.records.facts.nan_facts import CulpritFact
from clew.records.site import Line

if TYPE_CHECKING:
    from clew.hooks.steps.watcher import Watcher

MOST_REPLAYS = 2  # in a run: once for the loss, once for the gradients
SEVERAL = "steps are not replayed with several processes: the others would wait"


class Alarm:
    """Called by the watcher on a non-finite loss or gradient. `listeners` get the step and the answer."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._found = False
        self._replays = 0
        self.listeners: list[Callable[[NonFiniteStep, ReplayAnswer], None]] = []

    def __call__(self, where: str, step: int, state: OptimizerState | None) -> None:
        if self._found or self._replays >= MOST_REPLAYS:
            return
        self._replays += 1
        nonfinite = hold(self._watcher, where, step, state)
        with self._watcher.machine.unwatched():
            found = ReplayAnswer(None, SEVERAL) if distributed() else answer(nonfinite)
            self._found = found.culprit is not None
            culprit_fact(where, found).write(self._watcher.sink, step)
            for listener in self.listeners:
                listener(nonfinite, found)
        nonfinite.frame = nonfinite.delivered = None


def culprit_fact(where: str, found: ReplayAnswer) -> CulpritFact:
    """What a replay found; without a culprit, why."""
    if found.culprit is None:
        return CulpritFact(where, reason=found.reason, computed=found.computed)
    return CulpritFact(where, found=True, **culprit_fields(found.culprit))


def hold(watcher: Watcher, where: str, step: int, state: OptimizerState | None) -> NonFiniteStep:
    """What still exists of the running step."""
    holding: Holding = watcher.holding
    everything = [pair for s in watcher.optimizers.states for pair in s.named]
    named = state.named if state is not None else everything
    enabled, dtype = holding.autocast
    calls = [_root_call(watcher, *call) for call in holding.calls]
    frame, line = where_running(holding.line)
    return NonFiniteStep(
        step=step,
        where=where,
        calls=calls,
        roots={root.name: top for root in watcher.models.roots if (top := root.module()) is not None},
        rng=Rng(*holding.rng),
        autocast=Autocast("cpu", enabled, dtype),
        loss_value=holding.loss,
        frame=frame,
        backward_at=line,
        micro_batch=_micro_batch(watcher),
        parameters=[(p, name.full) for p, name in named],
        optimised=frozenset(id(p) for p, _ in everything),
        measured={
            name.full: seen for _, name in everything if (seen := watcher.parameters.seen(name)) is not None
        },
        delivered=holding.delivered,
        changed=tuple(holding.changed()),
    )


def _micro_batch(watcher: Watcher) -> tuple[int, int] | None:
    """For a step of several batches; the evaluations of a closure are something else."""
    number = watcher.holding.micro_batch
    closure = any(state.uses_closure for state in watcher.optimizers.states)
    return None if number is None or closure else (number, number)


def where_running(line: Line) -> tuple[FrameType | None, Line]:
    """The running function that contains this line; if it has returned, its caller and the call's line."""
    frame = frame_of(line)
    above = returned_from(line) if frame is None else None
    return (frame, line) if above is None else (above[0], (above[0].f_code.co_filename, above[1]))


def _root_call(watcher: Watcher, module: Any, args: Any, kwargs: Any) -> RootCall:
    root = watcher.models.root_of(module)
    name = root.name if root is not None else type(unwrap(module)).__name__
    return RootCall(name, module, args, kwargs)
