"""The three x axes: steps, seconds since the run began, epochs."""

from __future__ import annotations

import numpy as np

from clew.store.write.row_blocks import Array
from clew.web.answer_shapes import AxesOffered, AxisWord
from clew.web.runs.opened_run import OpenRun

AXES: tuple[AxisWord, ...] = ("step", "wall", "epoch")
FINE = 4000  # points of the clock that moments are read from; between them it is taken as even


class StepAxis:
    """Turns steps into places on an axis, and back."""

    def __init__(self, run: OpenRun, kind: AxisWord, rank: int) -> None:
        self.kind = kind
        self._run, self._rank = run, rank
        self._clock = run.only("wall", rank) if kind == "wall" else None
        per_epoch = run.steps_per_epoch(rank) if kind == "epoch" else None
        self._per_epoch = per_epoch[0] if per_epoch else None

    @property
    def known(self) -> bool:
        return self.kind == "step" or self._clock is not None or self._per_epoch is not None

    def places(self, steps: Array) -> Array:
        """Where these steps lie."""
        if self._per_epoch is not None:
            return np.asarray(steps / self._per_epoch)
        if self._clock is None or not len(steps):
            return steps
        envelope = self._run.query(self._clock, int(steps[0]), int(steps[-1]), FINE)
        if not len(envelope.steps):
            return np.full(len(steps), np.nan)
        # The clock never goes back, so a bucket's least value is that of its first step.
        return np.interp(steps, envelope.steps, envelope.mins)

    def step(self, place: float | None, *, upper: bool) -> int | None:
        """The last step at or before a place (`upper`), or the first at or after it."""
        if place is None:
            return None
        if self._per_epoch is not None:
            place = place * self._per_epoch
        elif self._clock is not None:
            return self._moment(place, upper)
        return int(np.floor(place)) if upper else int(np.ceil(place))

    def _moment(self, seconds: float, upper: bool) -> int:
        """Look closer and closer until each bucket is one step."""
        assert self._clock is not None
        lo: int | None = None
        hi: int | None = None
        while True:
            clock = self._run.query(self._clock, lo, hi, FINE)
            if not len(clock.steps):
                return 0
            at = max(int(np.searchsorted(clock.mins, seconds, side="right")) - 1, 0)
            if clock.counts[at] <= 1:
                return self._one(clock.steps, clock.mins, at, seconds, upper)
            lo = int(clock.steps[at])
            hi = int(clock.steps[at + 1]) if at + 1 < len(clock.steps) else hi

    @staticmethod
    def _one(steps: Array, times: Array, at: int, seconds: float, upper: bool) -> int:
        if upper:
            return int(steps[at]) if times[at] <= seconds else int(steps[at]) - 1
        if times[at] >= seconds:
            return int(steps[at])
        return int(steps[at + 1]) if at + 1 < len(steps) else int(steps[at]) + 1


def offered(run: OpenRun, rank: int) -> AxesOffered:
    """The axes that this run has, with how far they go."""
    span = run.span(rank)
    first, last = span if span is not None else (0, 0)
    ends = np.array([first, last])
    wall = StepAxis(run, "wall", rank)
    per_epoch = run.steps_per_epoch(rank)
    found: AxesOffered = {"step": {"first": first, "last": last}, "wall": None, "epoch": None}
    if wall.known and span is not None:
        places = wall.places(ends)
        if np.isfinite(places).all():
            found["wall"] = {"first": float(places[0]), "last": float(places[1])}
    if per_epoch is not None:
        steps, source = per_epoch
        found["epoch"] = {"first": first / steps, "last": last / steps, "steps": steps, "source": source}
    return found
