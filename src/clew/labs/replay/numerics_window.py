"""Traces numerics from one step to another and records what is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
from clew.hooks.entry.sink import Sink
from clew.labs.replay.numerics_report import NumericsReport, NumericsTrace
from clew.labs.replay.replay_alarm import plain
from clew.records.facts.nan_facts import TracedFact


class TraceWindow:
    """Called at each step; enters and leaves the trace at the right ones."""

    def __init__(self, sink: Sink, level: str, first: int, last: int | None) -> None:
        self._sink = sink
        self._trace = NumericsTrace(None, nan=True, inf=True, level=level, allow=())
        self._first, self._last = first, last
        self._inside = False
        self._steps: list[int] = []  # that are recorded

    def step_begins(self, step: int) -> None:
        """Between two steps, on the training thread."""
        wanted = self._first <= step and (self._last is None or step <= self._last)
        if wanted and not self._inside:
            self._trace.__enter__()
        elif self._inside and not wanted:
            self._trace.__exit__(None, None, None)
        if self._inside:
            self._write(step - 1)
        self._inside = wanted

    def close(self, step: int) -> NumericsReport:
        """The run is over, or Clew must remove itself from torch."""
        if self._inside:
            self._trace.__exit__(None, None, None)
            self._inside = False
            self._write(step)
        return NumericsReport(self._trace.report().culprits[: len(self._steps)], tuple(self._steps))

    def _write(self, step: int) -> None:
        culprits = self._trace.report().culprits
        for culprit in culprits[len(self._steps) :]:
            self._sink.fact(TracedFact.fact_kind, step, plain(culprit))
            self._steps.append(step)
