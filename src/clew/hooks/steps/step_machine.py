"""The step machine: which recorder records the open step, and whether the step is sampled.

One step, from the hook to the log:

    a seam (hooks on modules and optimizers, wrappers around `backward()`, `zero_grad()`, loaders, …)
      → `StepMachine.recorder`, which is the full or the light recorder
      → when `optimizer.step()` has returned, that recorder ends the step: the full one writes what was
        measured and the clock's row; the light one has noted it and writes many steps at once
      → `StepMachine.begin_step` asks the budget about the next step, prepares the collectors,
        changes the recorder and calls all listeners

All decisions are made here: the recorder, whether the step is sampled, the thread that is followed, and which
part of the program is running. Recorders and seams read this state. Nobody else writes it, with one
exception: the two recorders set `in_backward` when `backward()` begins and ends, since a method would be one
more call at every light step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import nn

from clew.hooks.steps.full_recorder import FullRecorder
from clew.hooks.steps.light_recorder import LIGHT, LightRecorder
from clew.hooks.steps.optimizer_steps import RunningUpdates
from clew.hooks.steps.recorder import SILENT, Recorder

if TYPE_CHECKING:
    from clew.hooks.collect_layers.trained_models import Root
    from clew.hooks.entry.guard import Guard
    from clew.hooks.steps.watcher import Watcher

CENTRAL = ("forward", "backward", "step")  # probes without which the others make no sense
NOBODY = -1  # not a valid thread id


def distributed() -> bool:
    """Whether training is distributed: replaying a step on one process could leave the others waiting."""
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return there and torch.distributed.get_world_size() > 1


class ModuleHooks(Protocol):
    """The hooks on every module, which light steps do without."""

    def hang_or_rest(self) -> bool:
        """Install them for the step that begins, or remove them. Returns whether they are removed."""


class StepMachine:
    """Changes the recorder at the boundary of a step."""

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self._watcher = watcher
        self._guard = guard
        self._hooks: ModuleHooks | None = None  # while attached
        self._light_failed = False
        self._paused = False  # Clew itself is running the user's code
        self.thread = threading.get_ident()  # the thread whose training is followed
        self.sampling = self.sampling_all = watcher.sampler.wants(0)  # layers are measured; all the rest too
        self.in_backward = False  # what runs in it is not a forward of its own; set by the recorders
        self.followed: dict[int, Root] = {}  # models whose `forward` is wrapped, by id: see `follow`
        self.hooks_hang = False  # forwards are reported by hooks on modules, not by wrappers of models
        self.updates = RunningUpdates()
        self.light = LightRecorder(watcher, self, guard)
        self.full = FullRecorder(watcher, self, guard)
        self.recorder: Recorder = SILENT

    def probe(self, name: str, function: Callable[..., None]) -> Callable[..., None]:
        """Guard `function`, and write what the light recorder has noted before calling it."""
        light = self.light

        def in_order(*args: Any, **kwargs: Any) -> None:
            if light.waits:
                light.write()
            function(*args, **kwargs)

        return self._guard.probe(name, in_order, self.halt if name in CENTRAL else None)

    # -- who records --

    def _exchange(self, recorder: Recorder) -> None:
        """Change the recorder; nothing else does."""
        self.recorder = recorder

    def attach(self, hooks: ModuleHooks) -> None:
        """Seams report from now on, and the training of this thread is followed."""
        self._hooks = hooks
        if not self._paused:
            self.thread = threading.get_ident()
            self._exchange(self.full)

    def detach(self) -> None:
        """Report nothing more."""
        try:
            self.light.write()
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
            self.failed(self.light, error)
        self._hooks = None
        self.followed.clear()
        self._exchange(SILENT)
        self._watcher.forwards.reset()

    def follow(self, module: nn.Module, root: Root) -> None:
        """The `forward` of this model is wrapped: its calls are reported without hooks, too."""
        self.followed[id(module)] = root

    def hooks_changed(self, hang: bool) -> None:
        """The hooks on modules are installed from now on, or removed."""
        self.hooks_hang = hang

    def begin_step(self) -> None:
        """A step ended: decide whether the next one is sampled, and which recorder records it."""
        watcher, step = self._watcher, self._watcher.clock.step
        self.sampling = watcher.sampler.wants(step)
        self.sampling_all = self.sampling and watcher.sampler.wants_all(step)
        self.full.prepare(step)
        if self._hooks is not None:
            rest = self._hooks.hang_or_rest()
            self._exchange(self.light if rest and not self._light_failed else self.full)
        for listener in tuple(watcher.between_steps):  # one that has finished removes itself
            listener(step)
        self.light.prepare()

    def follows_this_thread(self) -> bool:
        """Training is followed in one thread; before the first step that may still change."""
        here = threading.get_ident()
        if here != self.thread and self._watcher.clock.step == 0 and self._watcher.cycle.lead is None:
            self.thread = here
        return here == self.thread

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """Record nothing: what runs now is not the user's training."""
        self.light.settle()
        recorder, hooks = self.recorder, self._hooks
        before = (self._paused, self.thread, self.in_backward)
        self._exchange(SILENT)
        self._paused, self.thread, self.in_backward = True, NOBODY, True
        try:
            yield
        finally:
            self._paused, self.thread, self.in_backward = before
            changed = self._hooks is not hooks or self._light_failed
            self._exchange(self.full if recorder is self.light and changed else recorder)

    # -- failures --

    def failed(self, recorder: Recorder, error: BaseException) -> Recorder:
        """A recorder raised. Another takes its place and gets the same event again."""
        self._guard.fail(LIGHT, error)  # first: re-raises what a signal handler of the program raised
        self._light_failed = True
        self.halt()
        if recorder is self.full:  # all its parts are guarded, so this should never happen
            self._exchange(SILENT)
        return self.recorder

    def halt(self) -> None:
        """A central probe failed: switch everything off and take no more samples."""
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
