"""`clew profile` in a recorded run: opens profiling windows between steps, and assembles the profile.

Outside its windows the run is recorded as in `clew run`. What the windows recorded is read when training is
over. Opening and closing them does not count as step time.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.records import signals
from clew.records.facts.document_facts import ProfileFact
from clew.records.step_costs import FEWEST_TIMED
from clew.render.screen import rng_restored
from clew.render.stderr_messages import to_stderr
from clew.session.activities.activity import Activity
from clew.session.run_options import ProfileOptions
from clew.session.run_report import write_file

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.labs.profiler.profile_assembly import StepDurations
    from clew.labs.profiler.profile_recorder import ProfileRecorder
    from clew.labs.profiler.profile_windows import Schedule, Windows
    from clew.labs.profiler.window_contents import WindowReading
    from clew.records.signal_types import Signal
    from clew.records.step_costs import Profile
    from clew.session.activities.faster_steps import FasterSteps
    from clew.session.activities.growth_recording import GrowthRecording
    from clew.session.session import Session

PROBE = "profile"
COLD = 2  # first steps, which include one-time work: left out if there are more


class ProfileRecording(Activity):
    """When a session is profiled, and what is reported about it."""

    name = PROBE
    writes_json = True
    _watcher: Watcher  # set by `wire`

    def __init__(self, session: Session, options: ProfileOptions, growth: GrowthRecording) -> None:
        super().__init__(session)
        self.options = options
        self._growth = growth
        self.profile: Profile | None = None
        self._recorder: ProfileRecorder | None = None  # only the first process has one
        self._attempts: FasterSteps | None = None
        self._stopped = False

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Of several processes only the first is profiled in detail."""
        self._watcher = watcher
        if self._session.rank != 0:
            return
        from clew.labs.profiler.profile_recorder import ProfileRecorder
        from clew.labs.profiler.slow_patterns import PatternObserver

        observer = PatternObserver(watcher, guard)
        observer.begin()
        models, find = watcher.models, watcher.models.known
        self._recorder = ProfileRecorder(
            self._schedule(), self._failed, models, find, watcher.optimizers, observer
        )
        if self.options.attempts or self.options.batch_sizes:
            from clew.session.activities.faster_steps import FasterSteps

            self._attempts = FasterSteps(self._session, watcher, guard, self.options)
        watcher.sampler.paused = self._recorder.windows.is_near(0)
        watcher.due = self._recorder.windows.due
        watcher.between_steps.append(guard.inner(PROBE, self._between_steps))

    def _schedule(self) -> Schedule:
        from clew.labs.profiler.profile_windows import CALLS, DETAIL, MEMORY, STACKS, WATCH, Schedule

        kinds = [DETAIL, *([STACKS] if self.options.python else []), WATCH, MEMORY]
        kinds += [CALLS] if self.options.cprofile else []
        return Schedule(
            self.options.windows, self.options.steps_per_window, tuple(kinds), self._session.options.steps
        )

    # -- during the run --

    def _between_steps(self, step: int) -> None:
        assert self._recorder is not None
        watcher, windows = self._watcher, self._recorder.windows
        if self._stopped:
            watcher.due = sys.maxsize
            return
        if step >= windows.due:
            from clew.labs.profiler.profile_windows import off_the_clock

            try:
                with off_the_clock(watcher, self._session.guard):
                    windows.step_begins(step)
            except BaseException:
                self._abandon(windows)
                raise
        watcher.due = windows.due
        watcher.sampler.paused = windows.is_near(step)

    def _failed(self, kind: str, error: Exception) -> None:
        self._session.guard.fail(f"{PROBE}-{kind}", error)

    def _abandon(self, windows: Windows) -> None:
        """Something of ours has failed: leave nothing open."""
        self._stopped = True
        self._watcher.due = sys.maxsize
        self._watcher.sampler.paused = False
        with contextlib.suppress(Exception):
            windows.finish()

    # -- the end --

    def stop(self) -> None:
        """The run is over, but the seams are still installed: close what is open."""
        if self._recorder is None:
            return
        self._watcher.sampler.paused = False
        self._stopped = True
        self._recorder.stop()

    def close(self) -> None:
        """Assemble the profile and write it while the log is still open."""
        if self._recorder is None:
            return
        if self._recorder.observer is not None:
            self._recorder.observer.finish()
        step = max(self._watcher.step - 1, 0)
        self.profile = self._assembled(step)
        self._write()
        from clew.labs.profiler.profile_assembly import trimmed

        ProfileFact(trimmed(self.profile)).write(self._session.writer, step)
        if self._attempts is not None:
            self._session.guarded("attempts", self._attempts.close)

    def _assembled(self, step: int) -> Profile:
        from clew.labs.profiler.profile_assembly import profile_of
        from clew.store.index.index_cache import cache_root

        assert self._recorder is not None
        profile = profile_of(
            self._recorder.seen,
            self._clock,
            roof_file=cache_root() / "roof.json",
            notes=self._notes(),
            folder=self._session.path / "traces",
            watch=self._growth.watch,
            guarded=lambda part: self._session.guarded(PROBE, part),
        )
        self._session.guarded(PROBE, lambda: self._note_python(profile, step))
        return profile

    def _notes(self) -> list[str]:
        assert self._recorder is not None
        if not self._recorder.seen.in_detail and self._watcher.step < 3:
            return ["the run is too short to profile in detail: at least 3 steps are needed"]
        return []

    def _clock(self, _: WindowReading) -> StepDurations | None:
        """The step times as recorded by the run's own clock."""
        assert self._recorder is not None
        data, windows = self._session.recorded(), self._recorder.windows
        timed = times_of(data)
        if timed is None:
            return None
        sampled, cold = sampled_steps(data), set(range(COLD))
        choices = [
            timed.without(cold | sampled | with_following(windows.profiled)),
            timed.without(cold | sampled | with_following(windows.slowed)),
            timed.without(cold | with_following(windows.slowed)),
            timed.without(cold),
        ]
        # With too few, steps that were profiled without being slowed down much count as well.
        return next((some for some in choices if len(some.steps) >= FEWEST_TIMED), timed)

    def _note_python(self, profile: Profile, step: int) -> None:
        from clew.labs.profiler.stack_flames import python_time

        assert self._recorder is not None
        stacks = self._recorder.seen.stacks
        fact = python_time(profile, stacks) if stacks is not None else None
        if fact is not None:
            fact.write(self._session.writer, step)

    def _write(self) -> None:
        from clew.render.verdict_json import write_json

        assert self.profile is not None
        if self._session.recording:
            write_json(self._session.path / "traces" / "profile.json", self.profile.to_json(), dense=True)

    # -- reporting --

    def report(self) -> bool:
        """Export the files, and print the table."""
        if self.profile is None:
            self._say(f"nothing was profiled: {self._session.why_idle()}")
            return True
        self._session.guarded("export", self._export)
        self._session.guarded("export", self._write_json)
        self.render()
        if self._attempts is not None:
            self._attempts.report()
        return True

    def _export(self) -> None:
        from clew.render.profile.profile_exports import CannotExport, export

        out, profile = self.options.out, self.profile
        if profile is None or (out is None and not self.options.formats):
            return
        out = out if out is not None else Path.cwd() / f"{self._session.path.name}-profile"
        try:
            for file in export(profile, self._session.path, out, self.options.formats):
                self._say(f"wrote {file}")
        except CannotExport as error:
            self._say(str(error))

    def _write_json(self) -> None:
        from clew.records.facts.document_facts import tried_changes_json
        from clew.render.verdict_json import verdict_json, write_json

        profile, session = self.profile, self._session
        if session.options.json_path is None or profile is None:
            return
        report = verdict_json(session.verdict, session.summary())
        report |= {"profile": profile.to_json(), **tried_changes_json(session.recorded().facts)}
        write_file(session.options.json_path, lambda path: write_json(path, report))

    def render(self) -> None:
        """Print the profile and the recommendations on stderr."""
        if self.profile is None or not self._session.speaks:
            return
        from clew.render.profile.profile_terminal import render_profile

        with rng_restored():
            render_profile(self.profile, self._session.verdict, self._session.summary(), to_stderr())


def times_of(data: Any) -> StepDurations | None:
    """The clock's series for every step, as recorded."""
    import numpy as np

    from clew.labs.profiler.profile_assembly import StepDurations

    def series(signal: Signal) -> dict[int, float]:
        return {
            int(step): float(value)
            for _, steps, values in data.series(signal.name)
            for step, value in zip(steps, values, strict=True)
        }

    total = series(signals.STEP_TIME)
    if not total:
        return None
    steps = np.array(sorted(total), dtype=np.int64)

    def column(signal: Signal) -> Any:
        known = series(signal)
        return np.array([known.get(int(step), 0.0) for step in steps])

    whole = np.array([total[int(step)] for step in steps])
    parts = {
        "data": column(signals.TIME_DATA),
        "forward": column(signals.TIME_FORWARD),
        "backward": column(signals.TIME_BACKWARD),
        "optimizer": column(signals.TIME_OPTIMIZER),
    }
    known = sum(parts.values(), np.zeros(len(steps)))
    left = np.maximum(whole - known, 0.0)
    parts["clew"] = np.clip(column(signals.TIME_CLEW), 0.0, left)  # partly an estimate
    parts["rest"] = np.maximum(whole - known - parts["clew"], 0.0)
    return StepDurations(steps, whole, parts, column(signals.BATCH_SIZE))


def with_following(steps: set[int]) -> set[int]:
    """Steps, and those right after one: what was opened in the first is closed in the second."""
    return steps | {step + 1 for step in steps}


def sampled_steps(data: Any) -> set[int]:
    """The sampled steps, which took longer because every layer was measured."""
    return {int(step) for _, steps, _ in data.series(signals.GRAD_PRESENT.name) for step in steps}
