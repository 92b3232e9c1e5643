"""The parts of a run that are checked one by one.

A script often trains more than once: folds, sizes, seeds, a first and a second phase. A check that looks
at a share of the steps, or at the course from start to end, looks at one training at a time: sixty wrong
steps stay wrong even if two hundred right ones of another model follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.checks.run_view import FactLike, RunView
from clew.records import signals
from clew.records.facts.loss_facts import LossFact, OutputFact
from clew.records.facts.step_facts import OptimizerFact, OptimizerUseFact, SchedulerFact
from clew.records.site import Site

PHASE = "phase"  # the steps of one set of optimizers
TRAINING = "training"  # the phases in which the same models are trained
RUN = "run"

LEAST = 20  # steps; an optimizer recreated every few steps does not start a new training each time
MOST = 24  # parts checked one by one: the first ones, so that earlier findings are repeated
# Kinds of facts that are sent once for each loss call and kind of input.
SENT_ONCE: Mapping[str, type[OutputFact | LossFact]] = {f.fact_kind: f for f in (OutputFact, LossFact)}


@dataclass(frozen=True)
class RunPart:
    """Steps from `first` up to, without, `end`, and the numbers of the optimizers at work in them."""

    first: int
    end: int
    optimizers: frozenset[int]

    def __len__(self) -> int:
        return self.end - self.first


def phases(run: RunView) -> list[RunPart]:
    """The phases between which the optimizers changed; one if they never did.

    A new optimizer begins a phase if, from then on, no more steps are counted than it (and those that
    came with it) can make. In a GAN, or where an optimizer joins later, the others keep stepping.
    """
    arrivals: dict[int, int] = {}
    for fact in run.optimizers:
        if fact.index is not None:
            arrivals.setdefault(fact.index, fact.step)
    rates = [series.steps for _, series in run.series(signals.LR)]
    if len(arrivals) < 2 or not rates:
        return [RunPart(0, run.steps, frozenset(arrivals))]
    steps = np.sort(np.concatenate(rates))
    starts = [0]
    for step in sorted(set(arrivals.values())):
        if step - starts[-1] >= LEAST and _takes_over(step, arrivals, steps, run.steps):
            starts.append(step)
    return _parts(starts, arrivals, run.steps)


def trainings(run: RunView) -> list[RunPart]:
    """The phases, with those combined that continue with the same model."""
    found = run.once("phases", phases)
    seen = {site.root: series for site, series in run.series(signals.MODE_TRAINING) if site.root is not None}
    kept = [0]
    for part in found[1:]:
        # The first step of a part may still contain forwards of the one before it.
        goes_on = any(s.steps[0] < part.first and (s.steps > part.first).any() for s in seen.values())
        if not goes_on:
            kept.append(part.first)
    owners = {index: part.first for part in found for index in part.optimizers}
    return _parts(kept, owners, run.steps) if len(kept) < len(found) else found


def _takes_over(step: int, arrivals: Mapping[int, int], steps: npt.NDArray[Any], end: int) -> bool:
    """Whether the optimizers that arrive at a step make all the steps until others arrive."""
    later = [s for s in arrivals.values() if s > step + 1]
    until = min(later, default=end)
    arrived = sum(step <= s <= step + 1 for s in arrivals.values())
    made = np.searchsorted(steps, until) - np.searchsorted(steps, step + 2)
    length = until - step - 2
    return length > 0 and 0 < made <= arrived * length


def _parts(starts: Sequence[int], arrivals: Mapping[int, int], end: int) -> list[RunPart]:
    ends = [*starts[1:], max(end, starts[-1] + 1)]
    within = [range(first, last) for first, last in zip(starts, ends, strict=True)]
    return [RunPart(r.start, r.stop, frozenset(i for i, s in arrivals.items() if s in r)) for r in within]


def run_parts(run: RunView, scope: str) -> list[tuple[RunPart, RunView]]:
    """The parts of a run with a view of each; nothing where there is only one."""
    if scope == RUN:
        return []
    return run.once(f"parts: {scope}", _phase_views if scope == PHASE else _training_views)


def _phase_views(run: RunView) -> list[tuple[RunPart, RunView]]:
    return _views(run, run.once("phases", phases))


def _training_views(run: RunView) -> list[tuple[RunPart, RunView]]:
    return _views(run, trainings(run))


def _views(run: RunView, parts: Sequence[RunPart]) -> list[tuple[RunPart, RunView]]:
    if len(parts) < 2:
        return []
    judged = parts if len(parts) <= MOST else [*parts[: MOST - 1], parts[-1]]
    return [(part, RunView(_Slice(run, part, last=part is parts[-1]))) for part in judged]


class _Slice:
    """A run as if only one part of it had been recorded."""

    def __init__(self, run: RunView, part: RunPart, *, last: bool) -> None:
        self._run = run
        self._part = part
        self._last = last
        facts = [f for f in run.source.facts if _optimizer_of(f) in (None, *part.optimizers)]
        within = {_place(f) for f in facts if f.kind in SENT_ONCE and f.step >= part.first}
        # What is sent once for each place may be known from an earlier part, unless it changed.
        self.facts = [
            f
            for f in facts
            if f.kind not in SENT_ONCE
            or part.first <= f.step < part.end
            or (f.step < part.first and _place(f) not in within)
        ]

    @property
    def events(self) -> Sequence[FactLike]:
        return [e for e in self._run.source.events if self._part.first <= e.step <= self._part.end]

    @property
    def last_step(self) -> int:
        """Counted from the beginning of the part: checks ask how long it is."""
        return len(self._part) - 1

    @property
    def end(self) -> Mapping[str, Any] | None:
        return self._run.source.end if self._last else {}

    def signal_names(self) -> Iterable[str]:
        return self._run.source.signal_names()

    def series(self, name: str) -> Iterator[tuple[Site, npt.NDArray[Any], npt.NDArray[Any]]]:
        for site, series in self._run.series(name):
            # What is evaluated after the last step of a part is written at the first of the next.
            late = int(site.phase == "eval" or name.startswith((f"{signals.METRIC.name}.", "eval")))
            first = self._part.first + (late if self._part.first else 0)
            low, high = np.searchsorted(series.steps, [first, self._part.end + late])
            yield site, series.steps[low:high], series.values[low:high]


def _optimizer_of(fact: FactLike) -> int | None:
    """The number of the optimizer that a fact is about; None: about none, or it is not known."""
    if fact.kind == OptimizerFact.fact_kind:
        return OptimizerFact.read(fact.data).index
    if fact.kind == OptimizerUseFact.fact_kind:
        return OptimizerUseFact.read(fact.data).index
    if fact.kind == SchedulerFact.fact_kind:
        return SchedulerFact.read(fact.data).optimizer
    return None


def _place(fact: FactLike) -> tuple[str, str, str | None, int | None]:
    """The loss call that a fact is about."""
    call = SENT_ONCE[fact.kind].read(fact.data)
    return fact.kind, call.kind, call.file, call.line
