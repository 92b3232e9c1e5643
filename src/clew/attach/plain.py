"""Plain steps, the ones between samples: noted in a few words as they happen, written in batches.

Python that runs once a step is slow: torch has pushed it out of the processor's caches by then.
So on plain steps a seam makes one call, straight to here and without the layers of a probe, and
appends a tuple; what the tuples mean is worked out for many steps at once (`plain_writing`).
"""

from __future__ import annotations

import sys
from threading import get_ident
from time import perf_counter
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch import is_grad_enabled as grad_enabled

from clew.attach.forwards import tracing, transforming
from clew.attach.frames import USER, kind_of, user_line
from clew.attach.holding import NO_STATES
from clew.attach.plain_writing import BACKWARD, FORWARD, STEP, work_out

if TYPE_CHECKING:
    from clew.attach.models import Root
    from clew.attach.watcher import Watcher

WAIT = 0.4  # seconds that notes wait to be written: what a killed process loses, and a live view lags behind
MOST_EVENTS = 4_096  # that wait, however quick the steps

_METHOD = Tensor.backward.__code__


class PlainSteps:
    """Notes the events of plain steps and writes them out later."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self.events: list[tuple[Any, ...]] = []
        self.note = self.events.append
        self.resting = False  # nothing but noting is done now
        self.inside = False  # a forward that is noted is running: others in it are its parts
        self.failed = False  # and will never rest again
        self.steps = 0  # that have ended and are not written yet
        self._until = 0  # before this step somebody must be told,
        self._latest = 0.0  # and at this time what was noted must be written
        self._caller: CodeType | None = None  # of the last backward,
        self._at = -1  # where in it,
        self._line: tuple[str | None, int | None] = (None, None)  # and its line
        self.telling = False  # listeners are told of a step from here, where nobody books their time

    def forward(self, root: Root, module: nn.Module, args: tuple[Any, ...], kwargs: Any) -> int | None:
        """The size of the batch, if there is nothing about this call that needs a closer look."""
        watcher = self._watcher
        if watcher.forwards.depth or watcher.in_backward or get_ident() != watcher.thread:
            return None
        if root.training is not module.training or root.module() is not module:
            return None
        if not grad_enabled() or tracing() is not None or transforming() is not None:
            return None
        holding, first = watcher.holding, args[0] if args else None
        if type(first) is not Tensor:
            holding.forward(module, args, kwargs)
            return 0
        if holding.fresh and len(args) == 1 and not kwargs and first.grad_fn is None:
            holding.rng, holding.fresh = NO_STATES, False
            try:
                holding.first = (module, args, first._version)
            except RuntimeError:  # an inference tensor does not count
                holding.first = (module, args, -1)
        else:
            holding.forward(module, args, kwargs)
        return first.size(0) if first.dim() else 0

    def note_backward(self, loss: float, began: float) -> None:
        """Called from the wrapper of `torch.autograd.backward`."""
        seconds = perf_counter() - began
        # If `loss.backward()` was called from the same place as the last time, the line is the same.
        above = sys._getframe(2)
        frame = above.f_back if above.f_code is _METHOD else None
        if frame is None or frame.f_code is not self._caller or frame.f_lasti != self._at:
            self._find_line(frame)
        line = self._line
        self.note((BACKWARD, loss, line, seconds))
        holding = self._watcher.holding
        holding.backward(loss, line)
        if holding.accumulates:
            self._watcher.alarms.look_for_bad_micro_batch()

    def _find_line(self, frame: FrameType | None) -> None:
        self._line = user_line(3)
        self._caller, self._at = None, -1
        if frame is not None and kind_of(frame.f_code.co_filename) == USER:
            self._caller, self._at = frame.f_code, frame.f_lasti

    def step_ended(self, whole: bool, now: float) -> None:
        """An optimizer has stepped, and with it the program's step is over or not."""
        watcher = self._watcher
        if not whole:
            watcher.holding.stepped()
            return
        watcher.holding.clear()
        self.steps += 1
        waited = now >= self._latest
        if waited or watcher.clock.step + self.steps >= self._until or len(self.events) >= MOST_EVENTS:
            self.write()
            if waited:
                watcher.sink.nudge()
            self.telling = True
            try:
                watcher.begin_step()
            finally:
                self.telling = False

    @property
    def has_begun(self) -> bool | None:
        """Whether the open step has come to a forward, a backward or an update; None: nothing is noted."""
        for event in reversed(self.events):
            if event[0] == STEP:
                return not event[-1]
            if event[0] in (FORWARD, BACKWARD):
                return True
        return None

    def step_begins(self) -> None:
        """Up to which step nothing but noting needs to be done, as things stand: until the next writing."""
        watcher = self._watcher
        step = watcher.clock.step + 1
        limit = sys.maxsize if watcher.limit is None or watcher.limit < step else watcher.limit
        self._until = min(limit, watcher.due, watcher.sampler.next_wanted(step))

    def write(self) -> None:
        """Work out and write what was noted."""
        if not self.events:
            return
        began = perf_counter()
        events, steps = self.events[:], max(self.steps, 1)
        self.events.clear()
        self.steps = 0
        for state in work_out(self._watcher, events):
            self._watcher.optimizers.after_step(state)  # from here on its gradients are looked at again
        now = perf_counter()
        self._watcher.sampler.plain_cost = (now - began) / steps
        self._latest = now + WAIT
        self.step_begins()
