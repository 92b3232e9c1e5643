"""The light recorder: light steps, those between samples, noted in a few words and written many at once.

Python that runs once a step is slow: torch has pushed it out of the processor's caches by then. So an event
of a light step becomes a tuple, and what the tuples mean is worked out for many steps at once
(`light_rows`). Steps that are like the ones before do not even come here: functions of the library stand in
front of these methods and note them (`native_steps`). What can't be said in a few words, as an evaluation or
a loss that is not finite, is passed on to the full recorder, event by event.
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
from torch.optim import Optimizer

from clew.hooks.entry.patches import INVISIBLE
from clew.hooks.entry.user_line import USER, kind_of, user_line
from clew.hooks.steps.forward_calls import tracing, transforming
from clew.hooks.steps.light_rows import BACKWARD, DATA, FORWARD, OTHER, STEP, work_out, write_rows
from clew.hooks.steps.native_steps import METHODS, NativeSteps
from clew.hooks.steps.recorder import Recorder
from clew.hooks.steps.replay_inputs import NO_STATES
from clew.hooks.steps.running_updates import Update
from clew.measure.scalar import number

if TYPE_CHECKING:
    from clew.hooks.collect_loop.optimizers import OptimizerState
    from clew.hooks.entry.guard import Guard
    from clew.hooks.entry.sink import Array
    from clew.hooks.steps.step_machine import StepMachine
    from clew.hooks.steps.trained_models import Root
    from clew.hooks.steps.watcher import Watcher

LIGHT = "light"  # its name among the probes that may fail
WAIT = 0.4  # seconds that notes wait to be written: what a killed process loses, and a live view lags behind
MOST_EVENTS = 4_096  # that wait, however quick the steps
WORTH = (
    16  # steps in a row that the library noted: then what came between them, as an evaluation, is soon over,
)
AGAIN = 0.02  # seconds after which it may note again

Line = tuple[str | None, int | None]

_METHOD = Tensor.backward.__code__
_OURS = (INVISIBLE, sys._getframe().f_code.co_filename)  # files of the frames between that and us


class LightRecorder(Recorder):
    """Notes the events of light steps and writes them out later.

    First come the rows of steps that the library noted, then the events of others: the library notes again
    only when both have been written, at the beginning of a step.
    """

    def __init__(self, watcher: Watcher, machine: StepMachine, guard: Guard) -> None:
        self._watcher = watcher
        self._machine = machine
        self._rows: Array | None = None  # that the library noted, taken over
        self._root: Root | None = None  # of the last forward
        self._noting: tuple[Root, OptimizerState, Line] | None = None  # whose steps the library notes
        self._inside = False  # a forward is running: others in it are its parts
        self._forward = (0, 0.0, 0)  # the model's number, when it began, size of the batch
        self._backward = (0.0, 0.0)  # loss, when it began
        self._forward_passed_on = self._backward_passed_on = False  # what is running is the full recorder's
        self.events: list[tuple[Any, ...]] = []
        self.note = self.events.append
        self._steps = 0  # that have ended and are neither written nor the library's
        self._until = 0  # before this step somebody must be told,
        self._latest = 0.0  # and at this time what was noted must be written,
        self._again = 0.0  # or may be, as the library may note again
        self._caller: CodeType | None = None  # of the last backward,
        self._at = -1  # where in it,
        self._line: Line = (None, None)  # and its line
        self.telling = False  # listeners are told of a step from here, where nobody books their time
        methods = {name: guard.bare(LIGHT, getattr(self, name)) for name in METHODS}
        count = watcher.loop.schedulers.count
        self.native = NativeSteps(watcher.holding, methods, self.round_off, count)
        for name, function in self.native.functions.items():
            setattr(self, name, function)

    # -- data and gradients --

    def batch_delivered(self, seconds: float, batch: Any) -> None:
        """What a loader gave is held until the step is over."""
        if not grad_enabled():  # for an evaluation
            self._machine.full.batch_delivered(seconds, batch)
            return
        self._watcher.holding.delivered = batch
        self.settle()
        self.note((DATA, seconds))

    def gradients_zeroed(self) -> None:
        """A letter of the pattern."""
        if get_ident() == self._machine.thread:
            self.settle()
            self.note((OTHER, "z"))

    def scheduler_stepped(self, scheduler: Any) -> None:
        """A letter of the pattern, and one more step of this scheduler."""
        if get_ident() == self._machine.thread:
            self.settle()
            self.note((OTHER, "h"))
            self._watcher.loop.schedulers.count(scheduler)

    # -- forward --

    def forward_entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """What the model is given is held, in case that the step has to be run again."""
        machine, watcher = self._machine, self._watcher
        root = machine.followed.get(id(module))
        if root is None or self._inside or watcher.forwards.depth or machine.in_backward:
            return False
        if get_ident() != machine.thread:
            return False
        self._forward_passed_on = (
            root.training is not module.training
            or root.module() is not module
            or not grad_enabled()
            or tracing() is not None
            or transforming() is not None
        )
        if self._forward_passed_on:
            self._inside = machine.full.forward_entered(module, args, kwargs)
            return self._inside
        self.settle()
        self._root = root
        holding, first, size = watcher.holding, args[0] if args else None, 0
        if type(first) is not Tensor:
            holding.forward(module, args, kwargs)
        else:
            if holding.fresh and len(args) == 1 and not kwargs and first.grad_fn is None:
                holding.rng, holding.fresh = NO_STATES, False
                try:
                    holding.first = (module, args, first._version)
                except RuntimeError:  # an inference tensor does not count
                    holding.first = (module, args, -1)
            else:
                holding.forward(module, args, kwargs)
            size = first.size(0) if first.dim() else 0
        self._inside = True
        self._forward = (root.index, perf_counter(), size)
        return True

    def forward_left(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> None:
        """Also of one that the library has told to have begun."""
        self._inside = False
        if self._forward_passed_on:
            self._machine.full.forward_left(module, args, kwargs, output)
            return
        index, began, size = self._forward
        self.note((FORWARD, index, perf_counter() - began, size))

    def forward_raised(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """It is not noted, but what it was given stays held."""
        self.native.drop()
        self._inside = False
        if self._forward_passed_on:
            self._machine.full.forward_raised(module, args)

    # -- losses --

    def loss_entered(self) -> bool:
        """In evaluation only."""
        return not grad_enabled()

    def loss_called(self, kind: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Passed on."""
        self._machine.full.loss_called(kind, function, args, kwargs, result)

    def loss_raised(self, kind: str, function: Any, args: Any, kwargs: Any, error: BaseException) -> None:
        """Passed on."""
        self._machine.full.loss_raised(kind, function, args, kwargs, error)

    # -- backward --

    def backward_entered(self, tensors: Any) -> bool:
        """The loss is noted if it is a finite number."""
        machine = self._machine
        if machine.in_backward or get_ident() != machine.thread:
            return False
        self.settle()
        loss = number(tensors)
        self._backward_passed_on = loss is None or loss - loss != 0.0
        if self._backward_passed_on or loss is None:
            return machine.full.backward_entered(tensors)
        machine.in_backward = True
        self._backward = (loss, perf_counter())
        return True

    def backward_left(self) -> None:
        """Also of one that the library has told to have begun."""
        machine, now = self._machine, perf_counter()
        if self._backward_passed_on:
            machine.full.backward_left()
            return
        machine.in_backward = False
        loss, began = self._backward
        line = self._find_line()
        self.note((BACKWARD, loss, line, now - began))
        holding = self._watcher.holding
        holding.backward(loss, line)
        if holding.accumulates:
            self._watcher.alarms.look_for_bad_micro_batch()

    def backward_raised(self) -> None:
        """It is not noted."""
        self.native.drop()
        self._machine.in_backward = False
        if self._backward_passed_on:
            self._machine.full.backward_raised()

    def _find_line(self) -> Line:
        """Where the program calls `backward()`: not searched for if that is where it was the last time."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename in _OURS:
            frame = frame.f_back
        caller = frame.f_back if frame is not None and frame.f_code is _METHOD else None
        if caller is None or caller.f_code is not self._caller or caller.f_lasti != self._at:
            self._line = user_line()
            self._caller, self._at = None, -1
            if caller is not None and kind_of(caller.f_code.co_filename) == USER:
                self._caller, self._at = caller.f_code, caller.f_lasti
        return self._line

    # -- optimizer --

    def update_entered(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The norm of its gradients is noted if it is finite."""
        machine = self._machine
        if get_ident() != machine.thread:
            return
        if machine.updates.is_inner(optimizer, self.native.is_updating):
            self.native.set_inner(True)
            return
        asked = perf_counter()
        state = self._watcher.optimizers.by_id.get(id(optimizer))
        if (
            state is None
            or state.optimizer() is not optimizer
            or state.site is None  # it has never stepped,
            or state.groups != len(optimizer.param_groups)  # or has changed since
            or len(args) != 1
            or kwargs
        ):
            machine.full.begin_update(optimizer, args, kwargs)
            return
        self.settle()
        at_once = state.norm.at_once
        norm: Any = at_once() if at_once is not None else -1.0
        if not norm >= 0.0:
            norm = state.norm()
        if type(norm) is not float or norm - norm != 0.0:
            machine.full.begin_update(optimizer, args, kwargs)
            return
        machine.updates.add(Update(id(optimizer), False, state, norm, asked, perf_counter()))

    def update_left(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """It may have been entered when the full recorder was in charge."""
        machine = self._machine
        if get_ident() != machine.thread:
            return
        if self.native.is_updating and not machine.updates.innermost_is_inner:
            self.settle()  # the library had no room for it
        update = machine.updates.take(optimizer)
        self.native.set_inner(machine.updates.innermost_is_inner)
        if update is not None and update.noted is not None:
            self.end_update(update, optimizer)
        elif update is None or not update.inner:
            machine.full.end_update(update, optimizer, args, kwargs)

    def end_update(self, update: Update, optimizer: Optimizer) -> None:
        """Note a step of an optimizer."""
        now, state, cycle = perf_counter(), update.noted, self._watcher.cycle
        if state is None:
            return
        ends = state.index == cycle.only or cycle.ends_with(state.index)
        groups = optimizer.param_groups
        rates = [groups[0].get("lr", 0.0)] if len(groups) == 1 else [g.get("lr", 0.0) for g in groups]
        own, seconds = update.began - update.asked, now - update.began
        self.note((STEP, state, update.norm, rates, own, seconds, now, ends))
        if ends:
            self._end_step(now)
        else:
            self._watcher.holding.stepped()

    # -- the boundary of a step --

    def _end_step(self, now: float) -> None:
        watcher = self._watcher
        watcher.holding.clear()
        self._steps += 1
        if (
            now >= self._latest
            or now >= self._again
            or watcher.clock.step + self._steps >= self._until
            or len(self.events) >= MOST_EVENTS
        ):
            self.round_off()

    def round_off(self) -> None:
        """A step has ended, and what was noted is due."""
        waited = perf_counter() >= self._latest
        self.write()
        self._again = math.inf
        if waited:
            self._watcher.sink.nudge()
        self.telling = True
        try:
            self._machine.begin_step()
        finally:
            self.telling = False

    @property
    def steps(self) -> int:
        """That have ended and are not written yet."""
        return self._steps + self.native.steps

    @property
    def waits(self) -> bool:
        """Whether anything is noted and not written."""
        return bool(self.events) or self.native.active or self._rows is not None

    @property
    def has_begun(self) -> bool | None:
        """Whether the open step has come to a forward, a backward or an update; None: nothing is noted."""
        if self.native.active:
            return self.native.has_begun
        for event in reversed(self.events):
            if event[0] == STEP:
                return not event[-1]
            if event[0] in (FORWARD, BACKWARD):
                return True
        return None if self._rows is None else False

    def prepare(self) -> None:
        """A step begins: may the library note it?"""
        self._plan()
        watcher, caller, native = self._watcher, self._caller, self.native
        index, root = watcher.cycle.only, self._root
        if not native.available or self._machine.recorder is not self or self.waits:
            return
        if root is None or not root.training or caller is None or index is None:
            return
        if not watcher.holding.fresh or watcher.holding.accumulates:
            return
        state = watcher.optimizers.states[index]
        if state.norm.at_once is None or state.groups != 1 or state.site is None:
            return
        first = watcher.clock.step  # all is counted at the first of the steps that are written, if at all
        most = min(self._until, watcher.next_inventory(first + 1)) - first
        self._noting = (root, state, self._line)
        place, until = (caller, self._at), (self._latest, most)
        native.begin(root.module, state.optimizer, state.norm.at.request, place, until)

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
            write_rows(self._watcher, *self._noting, rows)
            stepped[self._noting[1].index] = self._noting[1]
        stepped |= {state.index: state for state in work_out(self._watcher, events)}
        for state in stepped.values():
            self._watcher.optimizers.after_step(state)  # from here on its gradients are looked at again
        now = perf_counter()
        self._watcher.sampler.light_cost = (now - began) / steps
        self._latest = now + WAIT
        self._plan()

    # -- taking over from the library --

    def settle(self) -> None:
        """Take over what the library has noted: from here on, until all is written, it notes no more."""
        if not self.native.active:
            return
        rows, found = self.native.take()
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
        if found.doing == "f":
            self._inside, self._forward_passed_on = True, False
            self._forward = (root.index, found.began, found.batch)
        elif found.doing == "b":
            self._machine.in_backward, self._backward_passed_on = True, False
            self._backward = (found.loss, found.began)
        elif found.doing == "s":
            identity = id(state.optimizer())
            update = Update(identity, False, state, found.norm, found.asked, found.began)
            self._machine.updates.add(update)
