"""Captures a script's first steps, works on them between two steps, then ends the script or lets it continue.

The work runs unrecorded, on copies or on state that is restored afterwards: with `--continue` the script
continues from exactly the state it had.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from clew.records.plural import counted
from clew.session.activities.activity import Activity
from clew.session.live_judge import RunStopped

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.steps.watcher import Watcher
    from clew.labs.snapshot.users_step.step_capture import Capture

EVENTS = ("forward", "loss", "backward")


class FirstSteps(Activity):
    """Waits until enough steps were captured, does its work once, and ends the script or lets it continue."""

    done = False
    goes_on = False  # `--continue`
    _watcher: Watcher  # set by `wire`

    def _ready(self) -> bool:
        """Whether enough steps were captured."""
        raise NotImplementedError

    def _has_work(self) -> bool:
        """Whether there is something to work on, even if there are fewer steps than needed."""
        raise NotImplementedError

    def _work(self) -> None:
        """Do the work."""
        raise NotImplementedError

    def render(self) -> None:
        """Print the result on stderr."""
        raise NotImplementedError

    def between_steps(self, step: int) -> None:
        """Called on the training thread, after an update."""
        if not (self.done or self._ready()):
            return
        if not self.done:
            self._work_once()
            if not self.goes_on:
                steps = counted(step, "step")
                self._say(f"the script was stopped after {steps}; use --continue to keep training")
        if not self.goes_on:
            raise RunStopped(0)

    def script_ended(self) -> None:
        """The script ran fewer steps than needed: work on those."""
        if not self.done and self._has_work():
            self._work_once()

    def _work_once(self) -> None:
        """A failure of ours is recorded as an incident of the run."""
        self.done = True
        self._session.guarded(self.name, self._work)
        if self.goes_on:
            self._session.guarded("report", self.render)


@contextlib.contextmanager
def unrecorded(watcher: Watcher) -> Iterator[None]:
    """Run unrecorded between two steps: part of no step, and not part of the budget."""
    began = perf_counter()
    try:
        with watcher.machine.unwatched():
            yield
    finally:
        watcher.sampler.excuse(perf_counter() - began)
        watcher.clock.restart()


def watch_first_steps(watcher: Watcher, guard: Guard, batches: int) -> Capture:
    """Capture this many batches, and sample all of their steps."""
    from clew.labs.snapshot.users_step.step_capture import Capture

    capture = Capture(watcher, batches)
    observe(watcher, guard, "capture", capture)
    watcher.sampler.always(range(batches + 2))
    return capture


def observe(watcher: Watcher, guard: Guard, probe: str, observer: Any) -> None:
    """Let an observer see forwards, losses and backwards until it has finished.

    A failure is an incident of this probe.
    """
    safely = {name: guard.inner(probe, getattr(observer, name)) for name in EVENTS}
    listener = SimpleNamespace(**safely)

    def leave(step: int) -> None:
        if observer.finished:
            watcher.observers.remove(listener)
            watcher.between_steps.remove(leave)

    watcher.observers.append(listener)
    watcher.between_steps.append(leave)
