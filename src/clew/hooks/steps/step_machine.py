"""The step machine: who records the step that is open, and how closely.

One step, from the hook to the log:

    a seam (hooks on modules and optimizers, wrappers around `backward()`, `zero_grad()`, loaders, …)
      → `StepMachine.recorder`, which is the full or the light recorder
      → when `optimizer.step()` has returned, that recorder ends the step: the full one commits what was
        measured and writes the clock's row; the light one has noted it and writes many steps at once
      → `StepMachine.begin_step` asks the budget about the next step, prepares what measures,
        exchanges the recorder and tells everyone who listens

All that decides is here: the recorder, whether the step is sampled, the thread that is followed, and what of
the program is running. Recorders and seams read it; only this file exchanges the recorder.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from clew.hooks.steps.full_recorder import FullRecorder
from clew.hooks.steps.light_recorder import LIGHT, LightRecorder
from clew.hooks.steps.recorder import SILENT, Recorder
from clew.hooks.steps.running_updates import RunningUpdates

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.steps.trained_models import Root
    from clew.hooks.steps.watcher import Watcher

CENTRAL = ("forward", "backward", "step")  # probes without which the others make no sense
NOBODY = -1  # no thread has this number


class ModuleHooks(Protocol):
    """The hooks on every module, which light steps do without."""

    def hang_or_rest(self) -> bool:
        """Hang them up for the step that begins or take them down: whether they rest."""


class StepMachine:
    """Exchanges the recorder at the boundary of a step."""

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self._watcher = watcher
        self._guard = guard
        self._hooks: ModuleHooks | None = None  # while attached
        self._light_failed = False
        self._looks_away = False  # Clew itself runs the user's code
        self.thread = threading.get_ident()  # whose training is followed
        self.sampling = self.sampling_all = watcher.sampler.wants(0)  # layers are measured; and all the rest
        self.in_backward = False  # what runs in it is no forward of its own
        self.followed: dict[int, Root] = {}  # models whose `forward` is wrapped, by identity
        self.updates = RunningUpdates()
        self.light = LightRecorder(watcher, self, guard)
        self.full = FullRecorder(watcher, self)
        self.recorder: Recorder = SILENT

    def probe(self, name: str, function: Callable[..., None]) -> Callable[..., None]:
        """`function` made harmless; what the light recorder only noted before is written first."""
        light = self.light

        def in_order(*args: Any, **kwargs: Any) -> None:
            if light.waits:
                light.write()
            function(*args, **kwargs)

        return self._guard.probe(name, in_order, self.halt if name in CENTRAL else None)

    # -- who records --

    def _exchange(self, recorder: Recorder) -> None:
        """The one place where the recorder changes."""
        self.recorder = recorder

    def attach(self, hooks: ModuleHooks) -> None:
        """Seams report from now on, and the training of this thread is followed."""
        self._hooks = hooks
        if not self._looks_away:
            self.thread = threading.get_ident()
            self._exchange(self.full)

    def detach(self) -> None:
        """Nothing is reported any more."""
        try:
            self.light.write()
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
            self.failed(self.light, error)
        self._hooks = None
        self.followed.clear()
        self._exchange(SILENT)
        self._watcher.forwards.reset()

    def begin_step(self) -> None:
        """A step ended: decide how closely the next one is looked at, and by whom it is recorded."""
        watcher, step = self._watcher, self._watcher.clock.step
        self.sampling = watcher.sampler.wants(step)
        self.sampling_all = self.sampling and watcher.sampler.wants_all(step)
        self.full.prepare(step)
        if self._hooks is not None:
            rest = self._hooks.hang_or_rest()
            self._exchange(self.light if rest and not self._light_failed else self.full)
        for listener in watcher.between_steps:
            listener(step)
        self.light.prepare()

    def follows_this_thread(self) -> bool:
        """Training is followed in one thread; before the first step it may turn out to be another."""
        here = threading.get_ident()
        if here != self.thread and self._watcher.clock.step == 0 and self._watcher.cycle.lead is None:
            self.thread = here
        return here == self.thread

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """The seams look away: what runs now is not the user's step."""
        self.light.settle()
        recorder, hooks = self.recorder, self._hooks
        before = (self._looks_away, self.thread, self.in_backward)
        self._exchange(SILENT)
        self._looks_away, self.thread, self.in_backward = True, NOBODY, True
        try:
            yield
        finally:
            self._looks_away, self.thread, self.in_backward = before
            changed = self._hooks is not hooks or self._light_failed
            self._exchange(self.full if recorder is self.light and changed else recorder)

    # -- failures --

    def failed(self, recorder: Recorder, error: BaseException) -> Recorder:
        """A recorder raised. Another takes its place, which is told of the event anew."""
        self._guard.fail(LIGHT, error)  # first: what a signal handler of the program raised goes on from here
        self._light_failed = True
        self.halt()
        if recorder is self.full:  # which is guarded in all its parts: it should never come to this
            self._exchange(SILENT)
        return self.recorder

    def halt(self) -> None:
        """Something central failed: leave nothing armed, and look closely no more."""
        try:
            self.light.settle()
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
            self._guard.fail(LIGHT, error)
            self._light_failed = True
        self.light.native.stop()
        self._watcher.forwards.reset()
        self.sampling = self.sampling_all = False
        self.in_backward = False
        self._watcher.sampler.stop()
        if self.recorder is self.light:
            self._exchange(self.full)
