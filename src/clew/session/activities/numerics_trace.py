"""`--trace-numerics`: checks every operation in a few steps."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.labs.replay.numerics_report import TraceWindow


class NumericsTracing(Activity):
    """Checks the steps of one window, which are sampled regardless of the budget."""

    name = "trace-numerics"
    _window: TraceWindow | None = None

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Wait for the first of the steps, which may be the one that begins now."""
        from clew.labs.replay.numerics_report import TraceWindow

        options = self._session.options
        first, last = options.from_step, options.to_step
        watcher.sampler.always(range(first, sys.maxsize if last is None else last + 2))
        assert options.trace_numerics is not None
        self._window = TraceWindow(watcher.sink, options.trace_numerics, first, last)
        begins = guard.probe(self.name, self._window.step_begins)
        watcher.between_steps.append(begins)
        begins(0)

    def close(self) -> None:
        """Print what was found, in one line."""
        if self._window is not None:
            report, self._window = self._window.close(self._session.step), None
            self._session.say(f"--trace-numerics: {report}")
