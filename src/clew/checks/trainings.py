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

from clew.checks.evidence.recorded_facts import whole
from clew.checks.run_view import FactLike, RunView
from clew.records.site import Site

PHASE = "phase"  # the steps of one set of optimizers
FIT = "fit"  # the same, of models that were not trained before
RUN = "run"

LEAST = 20  # steps; an optimizer recreated every few steps does not start a new training each time
MOST = 24  # parts checked one by one: the first ones, so that earlier findings are repeated
SENT_ONCE = ("output", "loss")  # facts of a loss call, for each kind of what it gets
OWNERS = {"optimizer": "index", "optimizer_use": "index", "scheduler": "optimizer"}  # fields of the facts


@dataclass(frozen=True)
class Part:
    """Steps from `first` up to, without, `end`, and the numbers of the optimizers at work in them."""

    first: int
    end: int
    optimizers: frozenset[int]

    def __len__(self) -> int:
        return self.end - self.first


def phases(run: RunView) -> list[Part]:
    """The phases between which the optimizers changed; one if they never did.

    A new optimizer begins one if from then on no more steps are counted than it (and those that
    came with it) can make: in a GAN, or where one joins later, the others step on.
    """
    arrivals: dict[int, int] = {}
    for fact in run.facts("optimizer"):
        index = whole(fact.data.get("index"))
        if index is not None:
            arrivals.setdefault(index, fact.step)
    rates = [series.steps for _, series in run.series("lr")]
    if len(arrivals) < 2 or not rates:
        return [Part(0, run.steps, frozenset(arrivals))]
    steps = np.sort(np.concatenate(rates))
    starts = [0]
    for step in sorted(set(arrivals.values())):
        if step - starts[-1] >= LEAST and _takes_over(step, arrivals, steps, run.steps):
            starts.append(step)
    return _parts(starts, arrivals, run.steps)


def fits(run: RunView) -> list[Part]:
    """The phases, those taken together that go on with the same model."""
    found = run.once("phases", phases)
    seen = {site.root: series for site, series in run.series("mode.training") if site.root is not None}
    kept = [0]
    for part in found[1:]:
        # The first step of a part may still hold forwards of the one before it.
        goes_on = any(s.steps[0] < part.first and (s.steps > part.first).any() for s in seen.values())
        if not goes_on:
            kept.append(part.first)
    owners = {index: part.first for part in found for index in part.optimizers}
    return _parts(kept, owners, run.steps) if len(kept) < len(found) else found


def _takes_over(step: int, arrivals: Mapping[int, int], steps: npt.NDArray[Any], end: int) -> bool:
    """Whether those who arrive at a step make all the steps until others arrive."""
    later = [s for s in arrivals.values() if s > step + 1]
    until = min(later, default=end)
    arrived = sum(step <= s <= step + 1 for s in arrivals.values())
    made = np.searchsorted(steps, until) - np.searchsorted(steps, step + 2)
    length = until - step - 2
    return length > 0 and 0 < made <= arrived * length


def _parts(starts: Sequence[int], arrivals: Mapping[int, int], end: int) -> list[Part]:
    ends = [*starts[1:], max(end, starts[-1] + 1)]
    within = [range(first, last) for first, last in zip(starts, ends, strict=True)]
    return [Part(r.start, r.stop, frozenset(i for i, s in arrivals.items() if s in r)) for r in within]


def parts_of(run: RunView, scope: str) -> list[tuple[Part, RunView]]:
    """The parts of a run with a view of each; nothing where there is only one."""
    if scope == RUN:
        return []
    return run.once(f"parts: {scope}", _phase_views if scope == PHASE else _fit_views)


def _phase_views(run: RunView) -> list[tuple[Part, RunView]]:
    return _views(run, run.once("phases", phases))


def _fit_views(run: RunView) -> list[tuple[Part, RunView]]:
    return _views(run, fits(run))


def _views(run: RunView, parts: Sequence[Part]) -> list[tuple[Part, RunView]]:
    if len(parts) < 2:
        return []
    judged = parts if len(parts) <= MOST else [*parts[: MOST - 1], parts[-1]]
    return [(part, RunView(_Slice(run, part, last=part is parts[-1]))) for part in judged]


class _Slice:
    """A run as if only one part of it had been recorded."""

    def __init__(self, run: RunView, part: Part, *, last: bool) -> None:
        self._run = run
        self._part = part
        self._last = last
        facts = [f for f in run.source.facts if self._is_own(f)]
        within = {_place(f) for f in facts if f.kind in SENT_ONCE and f.step >= part.first}
        # What is sent once for each place may be known from an earlier part, unless it changed.
        self.facts = [
            f
            for f in facts
            if f.kind not in SENT_ONCE
            or part.first <= f.step < part.end
            or (f.step < part.first and _place(f) not in within)
        ]

    def _is_own(self, fact: FactLike) -> bool:
        field = OWNERS.get(fact.kind)
        owner = whole(fact.data.get(field)) if field and isinstance(fact.data, Mapping) else None
        return owner is None or owner in self._part.optimizers

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
            late = int(site.phase == "eval" or name.startswith(("metric.", "eval")))
            first = self._part.first + (late if self._part.first else 0)
            low, high = np.searchsorted(series.steps, [first, self._part.end + late])
            yield site, series.steps[low:high], series.values[low:high]


def _place(fact: FactLike) -> tuple[object, ...]:
    data = fact.data if isinstance(fact.data, Mapping) else {}
    return fact.kind, str(data.get("kind")), str(data.get("file")), str(data.get("line"))
