"""From a sentinel's alarm to a culprit: keeps the step, replays it and records the result."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from clew.hooks.collect_layers.trained_models import unwrap
from clew.hooks.collect_loop.optimizers import OptimizerState
from clew.hooks.steps.nonfinite_alarm import nonfinite_names
from clew.hooks.steps.pause import distributed, unwatched
from clew.hooks.steps.replay_inputs import Holding
from clew.labs.replay.step_replay import ReplayAnswer, answer
from clew.labs.snapshot.held_step import Autocast, Culprit, HeldStep, RootCall
from clew.labs.snapshot.users_step.loss_origin import frame_of, returned_from
from clew.labs.snapshot.users_step.replay_lines import Line
from clew.measure.rng import Rng
from clew.records.codec import json_float
from clew.records.facts.nan_facts import CulpritFact

if TYPE_CHECKING:
    from clew.hooks.steps.watcher import Watcher

MOST_REPLAYS = 2  # in a run: once for the loss, once for the gradients
SEVERAL = "with several processes a step is not replayed: the others would wait for it"


class Alarm:
    """Called by the watcher on a non-finite loss or gradient. `listeners` get the step and the answer."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._found = False
        self._replays = 0
        self.listeners: list[Callable[[HeldStep, ReplayAnswer], None]] = []

    def __call__(self, where: str, step: int, state: OptimizerState | None) -> None:
        if self._found or self._replays >= MOST_REPLAYS:
            return
        self._replays += 1
        held = hold(self._watcher, where, step, state)
        with unwatched(self._watcher):
            found = ReplayAnswer(None, SEVERAL) if distributed() else answer(held)
            self._found = found.culprit is not None
            self._watcher.sink.fact(CulpritFact.fact_kind, step, to_fact(where, found))
            for listener in self.listeners:
                listener(held, found)
        held.frame = held.delivered = None


def to_fact(where: str, found: ReplayAnswer) -> dict[str, Any]:
    """The fact `culprit`; without one, why."""
    if found.culprit is None:
        return {"where": where, "found": False, "reason": found.reason, "computed": found.computed}
    return {"where": where, "found": True, **plain(found.culprit)}


def plain(culprit: Culprit) -> dict[str, Any]:
    """A culprit as JSON can hold it."""
    data = culprit.to_json()
    data["sentence"] = culprit.sentence
    data["element_values"] = [json_float(v) for v in culprit.element_values]
    for row in data["inputs"]:
        row["min"], row["max"] = json_float(row["min"]), json_float(row["max"])
    return data


def hold(watcher: Watcher, where: str, step: int, state: OptimizerState | None) -> HeldStep:
    """What still exists of the running step."""
    holding: Holding = watcher.holding
    everything = [pair for s in watcher.optimizers.states for pair in s.named]
    named = state.named if state is not None else everything
    enabled, dtype = holding.autocast
    calls = [_root_call(watcher, *call) for call in holding.calls]
    frame, line = where_running(holding.line)
    return HeldStep(
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
        bad_parameters=tuple(nonfinite_names(named, gradients=True)) if where == "gradient" else (),
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
