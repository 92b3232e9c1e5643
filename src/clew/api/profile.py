"""`with clew.profile() as p:` around the steps of a program, with or without a recorded run.

    with clew.profile() as p:
        for batch in loader:
            train(batch)
    p.profile          # a clew.records.step_costs.Profile

The first steps of the block are profiled in detail, then Python's stacks are sampled. A block in which
no optimizer steps counts as one step.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

from clew.records.plural import counted
from clew.records.step_costs import Profile
from clew.session.run_options import enabled

if TYPE_CHECKING:
    from clew.labs.profiler.profile_assembly import StepDurations
    from clew.labs.profiler.profile_recorder import ProfileRecorder
    from clew.labs.profiler.window_contents import WindowReading
    from clew.render.run_summary import RunSummary

ROUNDS = 3
MOST_TIMED = 100_000  # steps whose times are kept


def profile(*, steps: int = 8, python: bool = True, quiet: bool = False, full: bool = False) -> ProfileBlock:
    """Profile the steps of a `with` block; `steps` of them in detail at a time.

    The profile is available as `.profile` after the block, and is printed unless `quiet`.
    """
    return ProfileBlock(steps, python, quiet, full)


class ProfileBlock:
    """One profiled block of code."""

    def __init__(self, steps: int, python: bool, quiet: bool, full: bool) -> None:
        self.profile = Profile()
        self._steps = max(steps, 1)
        self._python = python
        self._quiet = quiet
        self._full = full
        self._step_hook: Any = None
        self._recorder: ProfileRecorder | None = None
        self._cycle: Any = None  # of several optimizers
        self._step = 0
        self._times: list[float] = []
        self._ended = 0.0
        self._notes: list[str] = []

    def __enter__(self) -> ProfileBlock:
        if enabled():
            try:
                self._begin()
            except Exception as error:  # noqa: BLE001 - the block must run even if Clew fails
                self._give_up(error)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if self._recorder is None:
            return
        try:
            self._end(whole=error is None)
        except Exception as failure:  # noqa: BLE001 - the end of the block must not fail either
            self._give_up(failure)
        if not self._quiet:
            self.render()

    def _begin(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        from clew.hooks.collect_layers.trained_models import ModelBook
        from clew.hooks.steps.optimizer_steps import Cycle
        from clew.labs.profiler.profile_recorder import ProfileRecorder
        from clew.labs.profiler.profile_windows import DETAIL, STACKS, Schedule
        from clew.session.active_session import active

        kinds = (DETAIL, STACKS) if self._python else (DETAIL,)
        running = active()
        watcher = running.watcher if running is not None else None
        models = watcher.models if watcher is not None else ModelBook()
        find = models.known if watcher is not None else models.root_of
        schedule = Schedule(ROUNDS, self._steps, kinds, warm=False)
        self._recorder = ProfileRecorder(schedule, self._failed, models, find)
        self._step_hook = register_optimizer_step_post_hook(self._stepped)
        self._cycle = Cycle()
        self._recorder.windows.step_begins(0)
        self._ended = perf_counter()

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        """The hook that torch calls after an optimizer's step: no exception of Clew may reach torch."""
        try:
            if self._cycle.ends_with(id(optimizer)):
                self._next_step()
        except Exception as error:  # noqa: BLE001
            self._give_up(error)

    def _next_step(self) -> None:
        if self._recorder is None:
            return
        if len(self._times) < MOST_TIMED:
            self._times.append(perf_counter() - self._ended)
        self._step += 1
        if self._step >= self._recorder.windows.due:
            self._recorder.windows.step_begins(self._step)
        self._ended = perf_counter()

    def _failed(self, kind: str, error: Exception) -> None:
        self._notes.append(f"the {kind} window failed: {type(error).__name__}: {error}")

    def _give_up(self, error: Exception) -> None:
        self._notes.append(f"profiling failed: {type(error).__name__}: {error}")
        self._take_off()

    def _take_off(self) -> None:
        handle, self._step_hook = self._step_hook, None
        if handle is not None:
            handle.remove()
        if self._recorder is not None:
            with suppress(Exception):
                self._recorder.stop()

    def _end(self, whole: bool) -> None:
        if whole and self._step == 0:
            self._next_step()  # the whole block is one step
        self._take_off()
        self.profile = self._assembled()

    def _assembled(self) -> Profile:
        from clew.labs.profiler.profile_assembly import profile_of
        from clew.store.index.index_cache import cache_root

        assert self._recorder is not None
        roof_file = cache_root() / "roof.json"
        return profile_of(self._recorder.seen, self._timed, roof_file=roof_file, notes=self._notes)

    def _timed(self, reading: WindowReading) -> StepDurations | None:
        """The parts of a step as the windows measured them, scaled to the length of the other steps."""
        import numpy as np

        from clew.labs.profiler.profile_assembly import StepDurations

        assert self._recorder is not None
        if not self._times:
            return None
        steps = np.arange(len(self._times), dtype=np.int64)
        timed = StepDurations(steps, np.array(self._times), {}, np.zeros(len(steps)))
        others = timed.without(self._recorder.windows.profiled | {0})
        median = (others if len(others.steps) else timed).quantile(0.5)
        if not reading.step:
            return timed
        scale = min(median / reading.step, 1.0)
        parts = {name: np.array(values) * scale for name, values in reading.by_step.items()}
        total = np.array(reading.durations) * scale
        return StepDurations(np.array(reading.steps, dtype=np.int64), total, parts, np.zeros(len(total)))

    # -- output --

    def render(self, stream: Any = None) -> None:
        """The tables, on stderr by default."""
        if stream is None and sys.stderr is None:
            return
        from clew.render.profile.profile_terminal import render_profile
        from clew.render.screen import rng_restored

        with rng_restored():
            render_profile(self.profile, None, self._summary(), stream, full=self._full)

    def _summary(self) -> RunSummary:
        from clew.render.run_summary import RunSummary

        script = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
        return RunSummary("", "", script, "finished", self._step, 0)

    def _repr_html_(self) -> str:
        """The flame graph, for a notebook."""
        from html import escape

        from clew.render.html_bundle import BundleNotBuilt
        from clew.render.profile.flame_graph import html_page

        try:
            page = html_page(self.profile, "clew.profile")
        except BundleNotBuilt as error:
            return escape(f"{self!r}: {error}")
        if page is None:
            return escape(repr(self))
        style = "width:100%;height:480px;border:0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(page)}"></iframe>'

    def __repr__(self) -> str:
        return f"<profile of {counted(self._step, 'step')}>"
