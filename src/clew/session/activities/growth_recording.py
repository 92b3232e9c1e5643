"""Memory growth: whether the run's memory grows, and what keeps references to what grows.

It runs in every run, and in more detail in a profile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.labs.profiler.memory.growth_watch import GrowthWatch


class GrowthRecording(Activity):
    """Runs `growth_watch`, which does all the work."""

    name = "growth"
    watch: GrowthWatch | None = None

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Read the process's memory between steps."""
        from clew.labs.profiler.memory.growth_watch import GrowthWatch

        self.watch = GrowthWatch(watcher, guard)
        if self._session.options.profile is not None:
            self.watch.watch_closely()
        watcher.between_steps.append(self.watch.step_begins)

    def close(self) -> None:
        """Conclude before anything else of ours takes memory."""
        if self.watch is not None:
            self.watch.finish(max(self._session.step - 1, 0))
