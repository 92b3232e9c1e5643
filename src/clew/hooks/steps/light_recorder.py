"""The light recorder: notes the steps between samples in a few tuples, and writes many steps at once.

Python code that runs once per step is slow, because torch has pushed it out of the processor's caches by
then. So an event of a light step becomes a tuple, and the tuples of many steps are worked out at once
(`light_rows`). Steps like the ones before do not even reach this code: functions of the compiled library run
in front of these methods and note them (`native_steps`). What does not fit in a tuple, such as an evaluation
or a non-finite loss, is passed on to the full recorder, event by event.
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
from clew.hooks.steps.optimizer_steps import Update
from clew.hooks.steps.recorder import Recorder
from clew.hooks.steps.replay_inputs import NO_STATES
from clew.measure.stats import number
from clew.records.site import Line

if TYPE_CHECKING:
    from clew.hooks.collect_layers.trained_models import Root
    from clew.hooks.collect_loop.optimizers import OptimizerState
    from clew.hooks.entry.guard import Guard
    from clew.hooks.entry.sink import Array
    from clew.hooks.steps.step_machine import StepMachine
    from clew.hooks.steps.watcher import Watcher

LIGHT = "light"  # its name among the probes
WAIT = 0.4  # seconds that notes wait to be written: lost if the process is killed, and the lag of a live view
MOST_EVENTS = 4_096  # most events that wait, however fast the steps are
WORTH = 16  # after this many steps in a row noted by the library, an interruption is probably short,
AGAIN = 0.02  # and the library may note again after this many seconds


_METHOD = Tensor.backward.__code__
_OURS = (INVISIBLE, sys._getframe().f_code.co_filename)  # files of the frames between the caller and here


class LightRecorder(Recorder):
    """Notes the events of light steps and writes them later.

    The rows of steps that the library noted come first, then the events of other steps: the library notes
    again only when both have been written, at the beginning of a step.
    """

    def __init__(self, watcher: Watcher, machine: StepMachine, guard: Guard) -> None:
        self._watcher = watcher
        self._machine = machine
        self._rows: Array | None = None  # taken over from the library
        self._root: Root | None = None  # of the last forward
        self._noting: tuple[Root, OptimizerState, Line] | None = None  # whose steps the library notes
        self._inside = False  # a forward is running: forwards inside it are part of it
        self._forward = (0, 0.0, 0)  # number of the model, start time, batch size
        self._backward = (0.0, 0.0)  # loss, start time
        self._forward_passed_on = self._backward_passed_on = False  # the full recorder handles this call
        self.events: list[tuple[Any, ...]] = []
        self.note = self.events.append
        self._steps = 0  # finished steps that are not written and not noted by the library
        self._until = 0  # listeners must be called before this step,
        self._latest = 0.0  # notes must be written by this time,
        self._again = 0.0  # or may be written from this time on, when the library may note again
        self._caller: CodeType | None = None  # of the last backward,
        self._at = -1  # where in it,
        self._line: Line = (None, None)  # and its line
        self.calls_listeners = False  # listeners are being called from here, where their time is not counted
        methods = {name: guard.bare(LIGHT, getattr(self, name)) for name in METHODS}
        count = watcher.loop.schedulers.count
        self.native = NativeSteps(watcher.replay_inputs, methods, self.round_off, count)
        for name, function in self.native.functions.items():
            setattr(self, name, function)

    # -- data and gradients --

    def batch_delivered(self, seconds: float, batch: Any) -> None:
        """Keep a reference to the loader's batch until the step is over."""
        if not grad_enabled():  # in an evaluation
            self._machine.full.batch_delivered(seconds, batch)
            return
        self._watcher.replay_inputs.delivered = batch
        self.settle()
        self.note((DATA, seconds))

    def gradients_zeroed(self) -> None:
        """Add a letter to the pattern."""
        if get_ident() == self._machine.thread:
            self.settle()
            self.note((OTHER, "z"))

    def scheduler_stepped(self, scheduler: Any) -> None:
        """Add a letter to the pattern, and count a step of this scheduler."""
        if get_ident() == self._machine.thread:
            self.settle()
            self.note((OTHER, "h"))
            self._watcher.loop.schedulers.count(scheduler)

    # -- forward --

    def forward_entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Keep a reference to the model's arguments, in case the step has to be run again."""
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
        inputs, first, size = watcher.replay_inputs, args[0] if args else None, 0
        if type(first) is not Tensor:
            inputs.forward(module, args, kwargs)
        else:
            if inputs.fresh and len(args) == 1 and not kwargs and first.grad_fn is None:
                inputs.rng, inputs.fresh = NO_STATES, False
                try:
                    inputs.first = (module, args, first._version)
                except RuntimeError:  # an inference tensor has no version counter
                    inputs.first = (module, args, -1)
            else:
                inputs.forward(module, args, kwargs)
            size = first.size(0) if first.dim() else 0
        self._inside = True
        self._forward = (root.index, perf_counter(), size)
        return True

    def module_entered(self, module: nn.Module, args: Any) -> None:
        """Passed on; light steps do without the hooks that report it."""
        self._machine.full.module_entered(module, args)

    def module_left(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Passed on."""
        self._machine.full.module_left(module, args, kwargs, output)

    def forward_left(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> None:
        """The model has returned; the library may have noted its start."""
        self._inside = False
        if self._forward_passed_on:
            self._machine.full.forward_left(module, args, kwargs, output)
            return
        index, began, size = self._forward
        self.note((FORWARD, index, perf_counter() - began, size))

    def forward_raised(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Not noted, but the reference to its arguments stays."""
        self.native.drop()
        self._inside = False
        if self._forward_passed_on:
            self._machine.full.forward_raised(module, args)

    # -- losses --

    def loss_entered(self) -> bool:
        """Only in evaluation."""
        return not grad_enabled()

    def loss_called(self, kind: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Passed on."""
        self._machine.full.loss_called(kind, function, args, kwargs, result)

    def loss_raised(self, kind: str, function: Any, args: Any, kwargs: Any, error: BaseException) -> None:
        """Passed on."""
        self._machine.full.loss_raised(kind, function, args, kwargs, error)

    # -- backward --

    def backward_entered(self, tensors: Any) -> bool:
        """Note the loss if it is a finite number."""
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
        """`backward()` has returned; the library may have noted its start."""
        machine, now = self._machine, perf_counter()
        if self._backward_passed_on:
            machine.full.backward_left()
            return
        machine.in_backward = False
        loss, began = self._backward
        line = self._find_line()
        self.note((BACKWARD, loss, line, now - began))
        inputs = self._watcher.replay_inputs
        inputs.backward(loss, line)
        if inputs.accumulates:
            self._watcher.alarms.find_bad_micro_batch()

    def backward_raised(self) -> None:
        """Not noted."""
        self.native.drop()
        self._machine.in_backward = False
        if self._backward_passed_on:
            self._machine.full.backward_raised()

    def _find_line(self) -> Line:
        """Find where the program calls `backward()`; no search if it is the same place as last time."""
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
        """Note the norm of the gradients if it is finite."""
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
        """The full recorder may have been in charge when it was entered."""
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
        """Note an optimizer step."""
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
            self._watcher.replay_inputs.stepped()

    # -- the boundary of a step --

    def _end_step(self, now: float) -> None:
        watcher = self._watcher
        watcher.replay_inputs.clear()
        self._steps += 1
        if (
            now >= self._latest
            or now >= self._again
            or watcher.clock.step + self._steps >= self._until
            or len(self.events) >= MOST_EVENTS
        ):
            self.round_off()

    def round_off(self) -> None:
        """A step has ended and the notes are due to be written."""
        waited = perf_counter() >= self._latest
        self.write()
        self._again = math.inf
        if waited:
            self._watcher.sink.nudge()
        self.calls_listeners = True
        try:
            self._machine.begin_step()
        finally:
            self.calls_listeners = False

    @property
    def steps(self) -> int:
        """Number of finished steps that are not written yet."""
        return self._steps + self.native.steps

    @property
    def waits(self) -> bool:
        """Whether there are notes that are not written."""
        return bool(self.events) or self.native.active or self._rows is not None

    @property
    def has_begun(self) -> bool | None:
        """Whether the open step has had a forward, a backward or an update; None if nothing is noted."""
        if self.native.active:
            return self.native.has_begun
        for event in reversed(self.events):
            if event[0] == STEP:
                return not event[-1]
            if event[0] in (FORWARD, BACKWARD):
                return True
        return None if self._rows is None else False

    def prepare(self) -> None:
        """A step begins: decide whether the library may note it."""
        self._plan()
        watcher, caller, native = self._watcher, self._caller, self.native
        index, root = watcher.cycle.only, self._root
        if not native.available or self._machine.recorder is not self or self.waits:
            return
        if root is None or not root.training or caller is None or index is None:
            return
        if not watcher.replay_inputs.fresh or watcher.replay_inputs.accumulates:
            return
        state = watcher.optimizers.states[index]
        if state.norm.at_once is None or state.groups != 1 or state.site is None:
            return
        first = watcher.clock.step  # everything is counted at the first of the written steps, if at all
        most = min(self._until, watcher.next_inventory(first + 1)) - first
        self._noting = (root, state, self._line)
        place, until = (caller, self._at), (self._latest, most)
        native.begin(root.module, state.optimizer, state.norm.at.request, place, until)

    def _plan(self) -> None:
        """Compute up to which step only noting is needed, as of now: until the next write."""
        watcher = self._watcher
        step = watcher.clock.step + 1
        limit = sys.maxsize if watcher.limit is None or watcher.limit < step else watcher.limit
        self._until = min(limit, watcher.due, watcher.sampler.next_wanted(step))

    def write(self) -> None:
        """Work out what was noted and write it."""
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
            self._watcher.optimizers.after_step(state)  # from here on its gradients are checked again
        now = perf_counter()
        self._watcher.sampler.light_cost = (now - began) / steps
        self._latest = now + WAIT
        self._plan()

    # -- taking over from the library --

    def settle(self) -> None:
        """Take over what the library has noted: it notes nothing more until everything is written."""
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
        inputs, module = self._watcher.replay_inputs, root.module()
        if found.args is not None and module is not None:
            inputs.only_call(module, found.args, found.version)
        waited = found.waited
        for event in found.events:
            if event == "d":
                self.note((DATA, waited))
                waited = 0.0  # for several batches only the total is known
            elif event == "f":
                self.note((FORWARD, root.index, found.ran, found.batch))
            elif event == "b":
                self.note((BACKWARD, found.loss, line, found.derived))
                inputs.backward(found.loss, line)
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
