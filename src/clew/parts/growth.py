"""Whether the memory of the run grows, and who holds what grows: in every run, and closely in a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.parts.part import Activity

if TYPE_CHECKING:
    from clew.attach.guard import Guard
    from clew.attach.seams import Seams
    from clew.attach.watcher import Watcher
    from clew.profiling.growth import GrowthWatch


class GrowthActivity(Activity):
    """See `profiling.growth`, which does it all."""

    name = "growth"
    watch: GrowthWatch | None = None

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Read the process's memory between steps."""
        from clew.profiling.growth import GrowthWatch

        self.watch = GrowthWatch(watcher, guard)
        if self._session.options.profile is not None:
            self.watch.look_closely()
        watcher.between_steps.append(self.watch.step_begins)

    def close(self) -> None:
        """Conclude, before anything else of ours takes memory."""
        if self.watch is not None:
            self.watch.finish(max(self._session.step - 1, 0))
