"""`clew profile` in a recorded run: opens profiling windows between steps, and assembles the profile.

Outside its windows the run is recorded as in `clew run`. What the windows recorded is read when training is
over. Opening and closing them does not count as step time.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from clew.records.facts.document_facts import ProfileFact
from clew.records.facts.profile_facts import PythonTimeFact
from clew.records.step_costs import FEWEST_TIMED
from clew.render.rich_rng import undrawn
from clew.render.stderr_messages import to_stderr
from clew.session.activities.activity import Activity
from clew.session.activities.first_steps import write_report
from clew.session.run_options import ProfileOptions

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.labs.profiler.habits.habit_observer import Observer
    from clew.labs.profiler.profile_windows import Windows
    from clew.labs.profiler.step_parts import Timed
    from clew.labs.profiler.window_contents import WindowReading
    from clew.labs.profiler.window_kinds import Lenses
    from clew.records.step_costs import Profile
    from clew.session.activities.faster_steps import AttemptRun
    from clew.session.activities.leak_watch import GrowthActivity
    from clew.session.session import Session

PROBE = "profile"
COLD = 2  # first steps, which include one-time work: left out if there are more


class ProfileRun(Activity):
    """The profile of one session: when to profile, and what to report."""

    name = PROBE
    writes_json = True

    def __init__(self, session: Session, options: ProfileOptions, growth: GrowthActivity) -> None:
        super().__init__(session)
        self.options = options
        self._growth = growth
        self.profile: Profile | None = None
        self._watcher: Watcher | None = None
        self._guard: Guard | None = None
        self._lenses: Lenses | None = None
        self._windows: Windows | None = None
        self._observer: Observer | None = None
        self._attempts: AttemptRun | None = None
        self._stopped = False

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Of several processes only the first is profiled in detail."""
        self._watcher, self._guard = watcher, guard
        if self._session.rank != 0:
            return
        from clew.labs.profiler.habits.habit_observer import Observer
        from clew.labs.profiler.profile_windows import Windows
        from clew.labs.profiler.window_kinds import Lenses

        self._observer = Observer(watcher, guard)
        self._observer.begin()
        self._lenses = Lenses(watcher.models, watcher.optimizers, watcher.models.known, self._observer)
        self._lenses.courtesy.install()
        self._windows = Windows(self._schedule(), self._lenses.makers(), self._failed)
        if self.options.attempts or self.options.batch_sizes:
            from clew.session.activities.faster_steps import AttemptRun

            self._attempts = AttemptRun(self._session, watcher, guard, self.options)
        watcher.sampler.paused = self._windows.is_near(0)
        watcher.due = self._windows.due
        watcher.between_steps.append(guard.inner(PROBE, self._between_steps))

    def _schedule(self) -> Any:
        from clew.labs.profiler.window_schedule import CALLS, DETAIL, MEMORY, STACKS, WATCH, Schedule

        kinds = [DETAIL, *([STACKS] if self.options.python else []), WATCH, MEMORY]
        kinds += [CALLS] if self.options.cprofile else []
        return Schedule(
            self.options.windows, self.options.steps_per_window, tuple(kinds), self._session.options.steps
        )

    # -- during the run --

    def _between_steps(self, step: int) -> None:
        assert self._watcher is not None
        watcher, windows = self._watcher, self._windows
        if windows is None or self._stopped:
            watcher.due = sys.maxsize
            return
        if step >= windows.due:
            try:
                with self._off_the_clock():
                    windows.step_begins(step)
            except BaseException:
                self._abandon()
                raise
        watcher.due = windows.due
        watcher.sampler.paused = windows.is_near(step)

    def _failed(self, kind: str, error: Exception) -> None:
        assert self._guard is not None
        self._guard.fail(f"{PROBE}-{kind}", error)

    @contextlib.contextmanager
    def _off_the_clock(self) -> Iterator[None]:
        """What runs now belongs to no step, and is not part of the budget."""
        assert self._watcher is not None
        assert self._guard is not None
        began = perf_counter()
        try:
            yield
        finally:
            if not self._watcher.machine.light.telling:  # otherwise a probe is around us, and books this soon
                self._guard.seconds -= perf_counter() - began
            self._watcher.clock.restart()

    def _abandon(self) -> None:
        """Something of ours has failed: leave nothing open."""
        self._stopped = True
        if self._watcher is not None:
            self._watcher.due = sys.maxsize
            self._watcher.sampler.paused = False
        if self._windows is not None:
            with contextlib.suppress(Exception):
                self._windows.finish()

    # -- the end --

    def stop(self) -> None:
        """The run is over, but the seams are still installed: close what is open."""
        if self._watcher is None or self._lenses is None:
            return
        self._watcher.sampler.paused = False
        if self._windows is not None and not self._stopped:
            self._windows.finish()
        self._stopped = True
        self._lenses.courtesy.remove()

    def close(self) -> None:
        """Assemble the profile and write it while the log is still open."""
        if self._lenses is None or self._windows is None or self._watcher is None:
            return
        if self._observer is not None:
            self._observer.finish()
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

        assert self._lenses is not None
        profile = profile_of(
            self._lenses.seen,
            self._clock,
            roof_file=cache_root() / "roof.json",
            notes=self._notes(),
            folder=self._session.path / "traces",
            calls=self.options.cprofile,
            watch=self._growth.watch,
            guarded=lambda part: self._session.guarded(PROBE, part),
        )
        self._session.guarded(PROBE, lambda: self._note_python(profile, step))
        return profile

    def _notes(self) -> list[str]:
        assert self._windows is not None
        assert self._lenses is not None
        notes = [*self._windows.notes]
        if not self._lenses.seen.in_detail and self._watcher is not None and self._watcher.step < 3:
            notes.append("the run had too few steps to profile one in detail: it needs 3")
        return notes

    def _clock(self, _: WindowReading) -> Timed | None:
        """The step times as recorded by the run's own clock."""
        assert self._windows is not None
        data, windows = self._session.recorded(), self._windows
        timed = times_of(data)
        if timed is None:
            return None
        sampled, cold = sampled_steps(data), set(range(COLD))
        choices = [
            timed.without(cold | sampled | with_following(windows.looked_at)),
            timed.without(cold | sampled | with_following(windows.slowed)),
            timed.without(cold | with_following(windows.slowed)),
            timed.without(cold),
        ]
        # With too few, steps that were profiled without being slowed down much count as well.
        return next((some for some in choices if len(some.steps) >= FEWEST_TIMED), timed)

    def _note_python(self, profile: Profile, step: int) -> None:
        from clew.labs.profiler.python.python_time import python_time

        assert self._lenses is not None
        stacks = self._lenses.seen.stacks
        data = python_time(profile, stacks) if stacks is not None else None
        if data is not None:
            self._session.writer.fact(PythonTimeFact.fact_kind, step, data)

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
        from clew.render.profile.files.profile_exports import CannotExport, export

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
        from clew.records.tried_changes import recorded_json
        from clew.render.verdict_json import verdict_json, write_json

        profile, session = self.profile, self._session
        if session.options.json_path is None or profile is None:
            return
        report = verdict_json(session.verdict, session.summary())
        report |= {"profile": profile.to_json(), **recorded_json(session.recorded().facts)}
        write_report(session.options.json_path, lambda path: write_json(path, report))

    def render(self) -> None:
        """Print the profile and the recommendations on stderr."""
        if self.profile is None or not self._speaks:
            return
        from clew.render.profile.profile_terminal import render_profile

        with undrawn():
            render_profile(self.profile, self._session.verdict, self._session.summary(), to_stderr())


def times_of(data: Any) -> Timed | None:
    """The clock's series for every step, as recorded."""
    import numpy as np

    from clew.labs.profiler.step_parts import Timed

    def series(name: str) -> dict[int, float]:
        return {
            int(step): float(value)
            for _, steps, values in data.series(name)
            for step, value in zip(steps, values, strict=True)
        }

    total = series("step.time")
    if not total:
        return None
    steps = np.array(sorted(total), dtype=np.int64)

    def column(name: str) -> Any:
        known = series(name)
        return np.array([known.get(int(step), 0.0) for step in steps])

    whole = np.array([total[int(step)] for step in steps])
    parts = {name: column(f"time.{name}") for name in ("data", "forward", "backward", "optimizer")}
    known = sum(parts.values(), np.zeros(len(steps)))
    parts["clew"] = np.clip(column("time.clew"), 0.0, np.maximum(whole - known, 0.0))  # partly an estimate
    parts["rest"] = np.maximum(whole - known - parts["clew"], 0.0)
    return Timed(steps, whole, parts, column("batch.size"))


def with_following(steps: set[int]) -> set[int]:
    """Steps, and those right after one: what was opened in the first is closed in the second."""
    return steps | {step + 1 for step in steps}


def sampled_steps(data: Any) -> set[int]:
    """The sampled steps, which took longer because every layer was measured."""
    return {int(step) for _, steps, _ in data.series("grad.present") for step in steps}
