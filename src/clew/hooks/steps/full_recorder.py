"""The full recorder: measures sampled steps, and handles every kind of program.

It records the first steps, every sampled step, and programs for which the hooks must stay installed. Each of
its handlers is a probe: it never raises, its time is counted, and a failure switches it off. This file
decides what an event means; the collectors for layers, batches, losses and optimizers do the measuring.
"""

from __future__ import annotations

from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from clew.hooks.collect_loop.optimizers import OptimizerState, is_finite, rates_of
from clew.hooks.entry.user_line import user_line
from clew.hooks.steps.forward_calls import being_transformed
from clew.hooks.steps.grad_scaler import fused_scale
from clew.hooks.steps.optimizer_steps import Update
from clew.hooks.steps.recorder import Recorder
from clew.measure.loss_arguments import loss_arguments
from clew.measure.nested_tensors import first_tensor
from clew.measure.stats import TEAM
from clew.records.site import Line, Site

if TYPE_CHECKING:
    from clew.hooks.steps.step_machine import StepMachine
    from clew.hooks.steps.watcher import Watcher

PATIENCE = 50  # backwards without any optimizer step, after which each backward counts as a step


class FullRecorder(Recorder):
    """Passes each event on to everyone it concerns."""

    def __init__(self, watcher: Watcher, machine: StepMachine) -> None:
        self._watcher = watcher
        self._machine = machine
        self.batch: tuple[Any, Any] | None = None  # the last model's arguments
        self.hooks_hang = False  # forwards are reported by hooks on modules, not by wrappers of models
        self._backward_began = 0.0
        self._backwards_without_step = 0
        forwards = watcher.forwards
        self.module_entered = machine.probe("forward", forwards.enter)
        self.module_left = machine.probe("forward", forwards.leave)
        self._note_batch = machine.probe("batch", self._batch)
        self._note_loss = machine.probe("loss", self._loss)
        self._note_failed_loss = machine.probe("loss", watcher.losses.failed)
        self._before_backward_probe = machine.probe("backward", self._before_backward)
        self._after_backward_probe = machine.probe("backward", self._after_backward)
        self._before_update_probe = machine.probe("step", self._before_update)
        self._after_update_probe = machine.probe("step", self._after_update)
        self._note_zeroing = machine.probe("zero-grad", self._zeroed)
        self._note_scheduler = machine.probe("scheduler", self._scheduled)

    # -- data and gradients --

    def batch_delivered(self, seconds: float, batch: Any) -> None:
        """Keep a reference to the loader's batch until the step is over."""
        if torch.is_grad_enabled():
            self._watcher.holding.delivered = batch
        self._note_batch(seconds, batch)

    def _batch(self, seconds: float, batch: Any) -> None:
        watcher = self._watcher
        watcher.feeding.batch = batch
        watcher.clock.data += seconds
        watcher.pattern.add("d")
        watcher.forwards.reset()

    def gradients_zeroed(self) -> None:
        """Who clears gradients, and when, is recorded on sampled steps."""
        if get_ident() == self._machine.thread:
            self._note_zeroing()

    def _zeroed(self) -> None:
        watcher = self._watcher
        watcher.optimizers.find_cleared()
        watcher.pattern.add("z")
        if self._machine.sampling_all:
            watcher.loop.call(watcher.loop.gradients.find_cleared)

    def scheduler_stepped(self, scheduler: Any) -> None:
        """The step that a scheduler takes when it is created does not count."""
        if get_ident() == self._machine.thread:
            self._note_scheduler(scheduler)

    def _scheduled(self, scheduler: Any) -> None:
        if not getattr(scheduler, "_is_initial", False):
            self._watcher.pattern.add("h")
            self._watcher.loop.call(self._watcher.loop.schedulers.stepped, scheduler)

    # -- forward --

    def forward_entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """A followed model is entered, while no hooks are installed that would report it."""
        machine = self._machine
        if self.hooks_hang or id(module) not in machine.followed or self._watcher.forwards.depth:
            return False
        if machine.in_backward or get_ident() != machine.thread:
            return False
        self.module_entered(module, args)
        return True

    def forward_left(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> None:
        """Same as what a hook would report."""
        self.module_left(module, args, kwargs, output)

    def forward_raised(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Same as what a hook would report: there is no output."""
        self.module_left(module, args, {}, None)

    # -- losses --

    def loss_entered(self) -> bool:
        """On sampled steps in training; always in evaluation."""
        return self._machine.sampling or not torch.is_grad_enabled()

    def loss_called(self, kind: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Record what went into a loss and what came out."""
        self._note_loss(kind, function, args, kwargs, result)

    def _loss(self, kind: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        if being_transformed():
            return  # the arguments stand for something else
        watcher = self._watcher
        if torch.is_grad_enabled():
            for observer in watcher.observers:
                observer.loss(kind, function, args, kwargs, result)
            if watcher.structure.waiting:
                watcher.structure.into_loss(loss_arguments(args, kwargs).prediction)
            if self._machine.sampling_all:
                where = user_line()  # one line for all that is recorded of this call: checks join by it
                watcher.losses.called(kind, function, args, kwargs, result, where)
                watcher.feeding.labelled(kind, args, kwargs, where)
        else:
            where = user_line()
            value = watcher.losses.evaluated(kind, result, where)
            if not is_finite(value):
                watcher.alarms.evaluated(value, args, kwargs, where)
            watcher.feeding.eval_loss(kind, args, kwargs)

    def loss_raised(self, kind: str, function: Any, args: Any, kwargs: Any, error: BaseException) -> None:
        """Record what went into it: that explains the error."""
        self._note_failed_loss(kind, function, args, kwargs, error)

    # -- backward --

    def backward_entered(self, tensors: Any) -> bool:
        """Read the loss before gradients are computed."""
        if self._machine.in_backward or not self._machine.follows_this_thread():
            return False
        self._before_backward_probe(tensors)
        self._backward_began = perf_counter()
        return True

    def backward_left(self) -> None:
        """In a program that updates its parameters by hand, this ends the step."""
        self.backward_raised()
        self._after_backward_probe()

    def backward_raised(self) -> None:
        """Count its time all the same."""
        self._machine.in_backward = False
        self._watcher.clock.backward += perf_counter() - self._backward_began

    def _before_backward(self, tensors: Any) -> None:
        watcher, machine = self._watcher, self._machine
        everything = machine.sampling_all
        watcher.forwards.reset()
        machine.in_backward = True
        watcher.holding.before_backward()
        watcher.optimizers.find_cleared()
        watcher.pattern.add("b")
        awaited = []
        for root, training in watcher.forwards.take_awaiting().values():
            awaited.append(root)
            root.trains_in_train_mode |= training
            watcher.modes.note_training(root, training, everything)
        if watcher.structure.waiting:
            watcher.structure.settle(watcher.clock.step)
        loss = first_tensor(tensors)
        if loss is not None:
            where = user_line()  # one line for all that is recorded of this call: checks join facts by it
            if everything:
                watcher.loop.call(watcher.loop.before_backward, loss, awaited, where, watcher.clock.step)
            if everything and watcher.forwards.heads:
                watcher.losses.find_broadcast(loss, watcher.forwards.heads, where)
            if everything and not watcher.models.compile_used:
                watcher.losses.terms.before_backward(loss)
            for observer in watcher.observers:
                observer.backward(loss, where)
            self._record_loss(loss, where)
        watcher.forwards.heads = []

    def _after_backward(self) -> None:
        watcher, machine = self._watcher, self._machine
        machine.in_backward = False
        watcher.optimizers.after_backward()
        watcher.alarms.find_bad_micro_batch()
        if machine.sampling_all:
            watcher.losses.terms.after_backward()
            watcher.loop.call(watcher.loop.after_backward, self.batch)
        watcher.clock.batch += watcher.clock.pending_batch
        watcher.clock.pending_batch = 0
        if not self._steps_come_from_optimizers():
            for called in watcher.before_update:
                called()
            self._end_step()

    def _record_loss(self, loss: Tensor, where: Line) -> None:
        watcher = self._watcher
        loss = watcher.before_scaling(loss)
        watcher.scaled_loss = None
        if loss.numel() != 1:
            return
        table = watcher.loss_table(where)
        watcher.clock.defer(loss.detach(), lambda step, value: self._write_loss(table, where, step, value))

    def _write_loss(self, table: int, where: Line, step: int, value: float) -> None:
        self._watcher.sink.row(table, step, (value,))
        self._watcher.holding.backward(value, where)
        if not is_finite(value):
            self._watcher.alarms.give("loss", step, where, None)

    def _steps_come_from_optimizers(self) -> bool:
        watcher = self._watcher
        if watcher.cycle.lead is not None:
            return True
        if self._backwards_without_step == 0:
            watcher.optimizers.find_existing()
        self._backwards_without_step += 1
        exists = any(ref() is not None for ref in watcher.optimizers.created)
        return exists and self._backwards_without_step <= PATIENCE

    # -- optimizer --

    def update_entered(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A step called by an optimizer's own step is part of it."""
        if get_ident() == self._machine.thread and not self._machine.updates.is_inner(optimizer):
            self.begin_update(optimizer, args, kwargs)

    def begin_update(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Gradients are ready, and parameters not yet updated."""
        self._before_update_probe(optimizer, args, kwargs)
        # Time that a closure adds to other parts of the step does not count as the optimizer's.
        began = perf_counter() - self._watcher.clock.others()
        self._machine.updates.add(Update(id(optimizer), began=began))

    def update_left(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The light recorder may have been in charge when it was entered."""
        if get_ident() != self._machine.thread:
            return
        update = self._machine.updates.take(optimizer)
        if update is not None and update.noted is not None:
            self._machine.light.end_update(update, optimizer)
        elif update is None or not update.inner:
            self.end_update(update, optimizer, args, kwargs)

    def end_update(
        self, update: Update | None, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Parameters are updated. None means that its start was not reported."""
        clock = self._watcher.clock
        if update is not None:
            clock.optimizer += max(perf_counter() - clock.others() - update.began, 0.0)
        self._after_update_probe(optimizer, args, kwargs)

    def _before_update(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        watcher = self._watcher
        watcher.forwards.reset()
        state = watcher.optimizers.state_of(optimizer)
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if state.site is None:
            file, line = user_line()
            state.site = Site(op="step", file=file, line=line, phase="train")
            state.uses_closure = closure is not None
            watcher.take_inventory_soon()
            fact = watcher.optimizers.fact(state)
            if fact is not None:
                fact.write(watcher.sink, watcher.clock.step)
        if closure is None:
            self._sentinel(state, optimizer)
        if self._machine.sampling:
            watcher.parameters.before_step(state.named, state.weights)
            for called in watcher.before_update:
                called()

    def _sentinel(self, state: OptimizerState, optimizer: Optimizer) -> None:
        watcher = self._watcher
        norm: Any = None
        if self._machine.sampling:
            norm = watcher.parameters.gradients(state.named, state.norm.at)
        if norm is None:
            norm = state.norm()
        if norm is None:  # gradients of a type that cannot be read
            watcher.optimizers.write_rates(state, rates_of(optimizer), watcher.clock.step)
        else:
            scale = fused_scale(optimizer)
            watcher.clock.defer(norm, lambda step, v: self._write_update(state, optimizer, step, v, scale))

    def _write_update(
        self, state: OptimizerState, optimizer: Optimizer, step: int, norm: float, scale: Any
    ) -> None:
        watcher = self._watcher
        if scale is not None and not is_finite(norm):  # they will not be used
            watcher.optimizers.write_rates(state, rates_of(optimizer), step)
            watcher.scaling.skipped(scale, optimizer, (state.place.file, state.place.line))
            return
        watcher.optimizers.write(state, rates_of(optimizer), step, norm)
        if not is_finite(norm):
            site = state.site or Site()
            watcher.alarms.give("gradient", step, (site.file, site.line), state)

    def _after_update(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        watcher, machine = self._watcher, self._machine
        state = watcher.optimizers.state_of(optimizer)
        if kwargs.get("closure", args[1] if len(args) > 1 else None) is not None:
            self._sentinel(state, optimizer)
            for called in watcher.before_update if machine.sampling else ():
                called()  # the forwards ran inside the step
        if machine.sampling:
            watcher.parameters.after_step()
        watcher.pattern.add("s", state.index)
        watcher.holding.stepped()
        if machine.sampling_all:
            watcher.optimizers.write_soundness(state, watcher.clock.step)
            watcher.loop.call(watcher.loop.gradients.stepped, state, watcher.clock.step)
        watcher.optimizers.after_step(state)
        if watcher.cycle.ends_with(state.index):
            self._end_step()

    # -- the boundary of a step --

    def _end_step(self) -> None:
        watcher, machine = self._watcher, self._machine
        step, sampled = watcher.clock.step, machine.sampling
        if sampled:
            watcher.activations.commit(step)
            watcher.parameters.commit(step)
        if machine.sampling_all:
            parts = (watcher.batches, watcher.losses, watcher.calls, watcher.histograms, watcher.feeding)
            for part in parts:
                part.commit(step)
        watcher.end_sections(step)
        own, total = watcher.clock.close(perf_counter())
        watcher.sampler.account(step, sampled, own, total)
        machine.begin_step()

    def prepare(self, step: int) -> None:
        """Drop the last step's batch, and prepare for measuring if the next step is sampled."""
        watcher, machine = self._watcher, self._machine
        self.batch = None
        watcher.holding.clear()
        watcher.forwards.take_awaiting()
        watcher.structure.forget()
        if machine.sampling:
            TEAM.gather()
            watcher.activations.prepare(machine.sampling_all)
            watcher.parameters.prepare(machine.sampling_all)
        watcher.histograms.wanted = False
        if machine.sampling_all:
            watcher.histograms.prepare(step)
            watcher.loop.call(watcher.loop.step_begins)
