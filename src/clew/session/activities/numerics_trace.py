"""`--trace-numerics`: some steps in which every operation is looked at."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher

from clew.hooks.entry.sink import Sink
from clew.labs.replay.numerics_report import NumericsReport, NumericsTrace
from clew.labs.replay.replay_alarm import plain
from clew.records.facts.nan_facts import TracedFact


class NumericsActivity(Activity):
    """The steps of the window are looked at whatever they cost."""

    name = "trace-numerics"
    _window: TraceWindow | None = None

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Wait for the first of the steps, which may be the one that begins now."""

        options = self._session.options
        first, last = options.from_step, options.to_step
        watcher.sampler.also = range(first, sys.maxsize if last is None else last + 2)
        assert options.trace_numerics is not None
        self._window = TraceWindow(watcher.sink, options.trace_numerics, first, last)
        begins = guard.probe(self.name, self._window.step_begins)
        watcher.between_steps.append(begins)
        begins(0)

    def close(self) -> None:
        """What was seen, in a line."""
        if self._window is not None:
            report, self._window = self._window.close(self._session.step), None
            self._session.say(f"--trace-numerics: {report}")


class TraceWindow:
    """Told which step begins; enters and leaves the trace."""

    def __init__(self, sink: Sink, level: str, first: int, last: int | None) -> None:
        self._sink = sink
        self._trace = NumericsTrace(None, nan=True, inf=True, level=level, allow=())
        self._first, self._last = first, last
        self._inside = False
        self._steps: list[int] = []  # of those that are written

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
        """The run is over, or nothing of Clew's may be left in torch."""
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
