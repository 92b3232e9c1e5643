"""Plain steps, the ones between samples: noted in a few words as they happen, written in batches.

Python that runs once a step is slow: torch has pushed it out of the processor's caches by then.
So on plain steps a seam makes one call, straight to here and without the layers of a probe, and
appends a tuple; what the tuples mean is worked out for many steps at once (`plain_writing`). Steps
that are like the ones before are not even noted here but by the library (`usual`).
"""

from __future__ import annotations

import math
import sys
from threading import get_ident
from time import perf_counter
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch import is_grad_enabled as grad_enabled

from clew.hooks.entry.user_line import USER, kind_of, user_line
from clew.hooks.steps.forward_calls import tracing, transforming
from clew.hooks.steps.light_rows import BACKWARD, DATA, FORWARD, OTHER, STEP, work_out, write_usual
from clew.hooks.steps.native_steps import Open, Usual
from clew.hooks.steps.replay_inputs import NO_STATES

if TYPE_CHECKING:
    from clew.hooks.collect_loop.optimizers import OptimizerState
    from clew.hooks.entry.sink import Array
    from clew.hooks.steps.trained_models import Root
    from clew.hooks.steps.watcher import Watcher

WAIT = 0.4  # seconds that notes wait to be written: what a killed process loses, and a live view lags behind
MOST_EVENTS = 4_096  # that wait, however quick the steps
WORTH = 16  # usual steps in a row: then what came between them, as an evaluation does, is soon over,
AGAIN = 0.02  # seconds after which it is asked again whether steps are usual

Line = tuple[str | None, int | None]

_METHOD = Tensor.backward.__code__


class PlainSteps:
    """Notes the events of plain steps and writes them out later.

    First come the rows of usual steps, then the events of others: what is usual is asked for only when
    both have been written, at the beginning of a step.
    """

    def __init__(self, watcher: Watcher, usual: Usual) -> None:
        self._watcher = watcher
        self.usual = usual
        self._rows: Array | None = None  # of usual steps, taken over
        self._root: Root | None = None  # of the last forward
        self._noting: tuple[Root, OptimizerState, Line] | None = None  # whose steps are usual
        self._unfinished: Open | None = None  # a forward or backward entered in a usual step
        self.updating: tuple[OptimizerState, Open] | None = None  # the same of an optimizer's step
        self.events: list[tuple[Any, ...]] = []
        self.note = self.events.append
        self.resting = False  # nothing but noting is done now
        self.inside = False  # a forward that is noted is running: others in it are its parts
        self.failed = False  # and will never rest again
        self._steps = 0  # that have ended and are neither written nor the library's
        self._until = 0  # before this step somebody must be told,
        self._latest = 0.0  # and at this time what was noted must be written,
        self._again = 0.0  # or may be, as steps may be usual ones
        self._caller: CodeType | None = None  # of the last backward,
        self._at = -1  # where in it,
        self._line: Line = (None, None)  # and its line
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
        self.settle()
        self._root = root
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
        self._steps += 1
        if (
            now >= self._latest
            or now >= self._again
            or watcher.clock.step + self._steps >= self._until
            or len(self.events) >= MOST_EVENTS
        ):
            self.round_off(now)

    def round_off(self, now: float) -> None:
        """A step has ended, and what was noted is due."""
        waited = now >= self._latest
        self.write()
        self._again = math.inf
        if waited:
            self._watcher.sink.nudge()
        self.telling = True
        try:
            self._watcher.begin_step()
        finally:
            self.telling = False

    @property
    def steps(self) -> int:
        """That have ended and are not written yet."""
        return self._steps + self.usual.steps

    @property
    def waits(self) -> bool:
        """Whether anything is noted and not written."""
        return bool(self.events) or self.usual.active or self._rows is not None

    @property
    def has_begun(self) -> bool | None:
        """Whether the open step has come to a forward, a backward or an update; None: nothing is noted."""
        if self.usual.active:
            return self.usual.has_begun
        for event in reversed(self.events):
            if event[0] == STEP:
                return not event[-1]
            if event[0] in (FORWARD, BACKWARD):
                return True
        return None if self._rows is None else False

    def step_begins(self) -> None:
        """A step begins: is it to be a usual one?"""
        self._plan()
        watcher, caller = self._watcher, self._caller
        index, root, usual = watcher.cycle.only, self._root, self.usual
        if not usual.available or not self.resting or self.waits or root is None or not root.training:
            return
        if caller is None or index is None or not watcher.holding.fresh or watcher.holding.accumulates:
            return
        state = watcher.optimizers.states[index]
        if state.norm.at_once is None or state.groups != 1 or state.site is None:
            return
        first = watcher.clock.step  # all is counted at the first of the steps that are written, if at all
        most = min(self._until, watcher.next_inventory(first + 1)) - first
        self._noting = (root, state, self._line)
        place, until = (caller, self._at), (self._latest, most)
        usual.begin(root.module, state.optimizer, state.norm.at.request, place, until)

    def _plan(self) -> None:
        """Up to which step nothing but noting needs to be done, as things stand: until the next writing."""
        watcher = self._watcher
        step = watcher.clock.step + 1
        limit = sys.maxsize if watcher.limit is None or watcher.limit < step else watcher.limit
        self._until = min(limit, watcher.due, watcher.sampler.next_wanted(step))

    def write(self) -> None:
        """Work out and write what was noted."""
        began = perf_counter()
        self.settle()
        rows, events, steps = self._rows, self.events[:], max(self._steps, 1)
        if rows is None and not events:
            return
        self.events.clear()
        self._rows, self._steps = None, 0
        stepped: dict[int, OptimizerState] = {}
        if rows is not None and self._noting is not None:
            write_usual(self._watcher, *self._noting, rows)
            stepped[self._noting[1].index] = self._noting[1]
        stepped |= {state.index: state for state in work_out(self._watcher, events)}
        for state in stepped.values():
            self._watcher.optimizers.after_step(state)  # from here on its gradients are looked at again
        now = perf_counter()
        self._watcher.sampler.plain_cost = (now - began) / steps
        self._latest = now + WAIT
        self._plan()

    # -- taking over from the library --

    def settle(self) -> None:
        """Take over what is noted of usual steps: from here on, until all is written, none is usual."""
        if not self.usual.active:
            return
        rows, found = self.usual.take()
        if len(rows):
            self._rows = rows
            self._steps += len(rows)
        if len(rows) >= WORTH:
            self._again = perf_counter() + AGAIN
        if self._noting is None:
            return
        root, state, line = self._noting
        holding, module = self._watcher.holding, root.module()
        if found.args is not None and module is not None:
            holding.rng, holding.fresh = NO_STATES, False
            holding.first = (module, found.args, found.version)
        waited = found.waited
        for event in found.events:
            if event == "d":
                self.note((DATA, waited))
                waited = 0.0  # of several batches it is known together
            elif event == "f":
                self.note((FORWARD, root.index, found.ran, found.batch))
            elif event == "b":
                self.note((BACKWARD, found.loss, line, found.derived))
                holding.backward(found.loss, line)
            else:
                self.note((OTHER, event))
        if found.doing == "s":
            self.updating = (state, found)
        elif found.doing:
            self._unfinished = found
            self.inside, self._watcher.in_backward = found.doing == "f", found.doing == "b"

    def left(self) -> None:
        """The model returned, and its step is no longer a usual one."""
        found, self._unfinished, self.inside = self._unfinished, None, False
        if found is not None and self._noting is not None:
            seconds = perf_counter() - found.began
            self.note((FORWARD, self._noting[0].index, seconds, found.batch))

    def derived(self) -> None:
        """The same of a backward."""
        found, self._unfinished, self._watcher.in_backward = self._unfinished, None, False
        if found is not None and self._noting is not None:
            line = self._noting[2]
            self.note((BACKWARD, found.loss, line, perf_counter() - found.began))
            self._watcher.holding.backward(found.loss, line)

    def dropped(self) -> None:
        """What was entered has raised."""
        self.usual.drop()
        if self._unfinished is not None:
            self._unfinished, self.inside, self._watcher.in_backward = None, False, False

    def other(self, event: tuple[Any, ...]) -> None:
        """Note what the library does not, or not any more."""
        self.settle()
        self.note(event)
