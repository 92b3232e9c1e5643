"""NaN replay: runs a step with a non-finite loss or gradient again to find the cause, and saves a repro."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.labs.replay.repro.repro_writer import ReproWriter
    from clew.labs.replay.step_replay import ReplayAnswer
    from clew.labs.snapshot.nonfinite_values import NonFiniteStep


class NanReplay(Activity):
    """Connects `replay_alarm`, which finds the operation, and `repro_writer`, which saves the step."""

    name = "replay"
    _repro: ReproWriter | None = None

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Wait for an alarm. This is not a probe: probes run all the time."""
        from clew.labs.replay.replay_alarm import Alarm

        alarm = Alarm(watcher)
        alarm.listeners.append(guard.probe("repro", self._save_repro))

        def replay(where: str, step: int, state: Any) -> None:
            self._session.guarded(self.name, lambda: alarm(where, step, state))

        watcher.explain_alarms(replay)

    def _save_repro(self, held: NonFiniteStep, found: ReplayAnswer) -> None:
        """Save the failed step in the run's folder, so that it can be replayed alone."""
        from clew.labs.replay.repro.repro_writer import ReproWriter

        session = self._session
        if self._repro is None:
            name = "repro" if session.rank == 0 else f"repro-rank{session.rank}"
            self._repro = ReproWriter(session.path / name, session.writer)
        self._repro(held, found)
