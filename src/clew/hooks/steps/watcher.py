"""What a program's events mean: steps, phases, which steps to look at, and what to write.

`seams.py` calls the methods here at every event of the program, on the training thread, each
under a guard. This file decides; measuring is done in layers, batches, losses and optimizers.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from clew.hooks.collect_layers.activations import Activations
from clew.hooks.collect_layers.layer_histograms import Histograms
from clew.hooks.collect_layers.layer_structure import Structure
from clew.hooks.collect_layers.parameter_inventory import owners_of, parameters_fact
from clew.hooks.collect_layers.parameter_stats import ParameterStats
from clew.hooks.collect_layers.pretrained_statistics import Pretrained
from clew.hooks.collect_loop.batch_stats import Batches
from clew.hooks.collect_loop.fed_samples import Feeding
from clew.hooks.collect_loop.grad_scaler import Scaling, fused_scale
from clew.hooks.collect_loop.loss_calls import Losses
from clew.hooks.collect_loop.optimizers import OptimizerBook, OptimizerState, is_finite, rates_of
from clew.hooks.collect_loop.train_modes import Modes
from clew.hooks.entry.guard import Guard
from clew.hooks.entry.sink import Sink
from clew.hooks.entry.user_line import user_line
from clew.hooks.seams.output_functions import FunctionCalls
from clew.hooks.steps.deferred_values import Late
from clew.hooks.steps.forward_calls import Forwards, being_transformed
from clew.hooks.steps.light_recorder import PlainSteps
from clew.hooks.steps.loop_collectors import Loop
from clew.hooks.steps.native_steps import Usual
from clew.hooks.steps.nonfinite_alarm import Alarms
from clew.hooks.steps.optimizer_cycle import Cycle
from clew.hooks.steps.replay_inputs import Holding
from clew.hooks.steps.sampling_budget import Sampler
from clew.hooks.steps.step_clock import StepClock
from clew.hooks.steps.step_pattern import Pattern
from clew.hooks.steps.trained_models import ModelBook
from clew.measure.nested_tensors import first_tensor
from clew.measure.stats import TEAM
from clew.records import signals
from clew.records.facts.step_facts import PatternFact
from clew.records.site import Site

INVENTORY_AFTER = 3  # steps until every optimizer of a usual program has stepped once
PATIENCE = 50  # backwards without any optimizer step after which each of them counts as a step


class Watcher:
    """The state of an attached program."""

    def __init__(self, sink: Sink, guard: Guard, *, budget: float = 0.02, every_step: bool = False) -> None:
        self.sink = sink
        self.late = Late()
        self.models = ModelBook()
        self.optimizers = OptimizerBook(sink, self.models)
        self.sampler = Sampler(budget, every_step)
        self.pattern = Pattern(self._announce_pattern)
        self.clock = StepClock(sink, self.pattern, guard, self.late)
        self.histograms = Histograms(sink, self.late, guard)
        self.activations = Activations(sink, self.models, self.late, self.histograms)
        self.parameters = ParameterStats(sink, self.late, self.histograms)
        self.batches = Batches(sink, self.late)
        self.losses = Losses(sink, self.late, self.batches, lambda: self.clock.step)
        self.feeding = Feeding(sink, self.late, guard, lambda: self.clock.step)
        self.pretrained = Pretrained(sink, self.models, guard, lambda: self.clock.step)
        self.structure = Structure(sink, guard)
        self.calls = FunctionCalls(sink, self.late, self.models)
        self.loop = Loop(sink, guard, self.models, self.optimizers)
        self.between_steps: list[Callable[[int], None]] = []  # told which step begins
        self.limit: int | None = None  # a step before which they must be told
        self.due = sys.maxsize  # and from this one on
        self.thread = threading.get_ident()
        self.in_backward = False
        self.sampling = self.in_full = self.sampler.wants(0)  # layers are measured; and all the rest
        self.forwards = Forwards(self, guard)
        self.modes = Modes(sink, self.clock, self.pattern)
        self.batch: tuple[Any, Any] | None = None  # what the last root was given, on steps that are looked at
        self.holding = Holding()
        self.plain = PlainSteps(self, Usual(self.holding))
        self.alarms = Alarms(self)
        self.scaling = Scaling(self.holding, lambda: self.step, self.alarms.never_updated)
        self.on_alarm: Callable[[str, int, OptimizerState | None], None] | None = None
        self.before_update: Callable[[], None] | None = None  # in sampled steps, which are still there
        self.observers: list[Any] = []  # told of each root's forward, of losses and of backward()
        self.clip_norm: float | None = None  # to which the program clips its gradients
        self._unscaled: tuple[Tensor, Tensor] | None = None
        self.cycle = Cycle(self.optimizers.exists)
        self._backwards_without_step = 0
        self._loss_tables: dict[tuple[str | None, int | None], int] = {}
        self._inventories: dict[str, Any] = {}
        self._inventory_due = INVENTORY_AFTER

    def follows_this_thread(self) -> bool:
        """Training is followed in one thread; before the first step it may turn out to be another."""
        here = threading.get_ident()
        if here != self.thread and self.clock.step == 0 and self.cycle.lead is None:
            self.thread = here
        return here == self.thread

    @property
    def step(self) -> int:
        """The step that is open now."""
        return self.clock.step + self.plain.steps

    @property
    def spoken_of(self) -> int:
        """The step that what the program says now is about: the last one, until another has begun."""
        begun = self.plain.has_begun
        if begun is None:
            begun = self.pattern.has_begun
        return self.step if begun else max(self.step - 1, 0)

    def introduce(self, thing: Any) -> None:
        """A model or optimizer that the user named when attaching."""
        if isinstance(thing, nn.Module):
            self.models.root_of(thing)
        elif isinstance(thing, Optimizer):
            self.optimizers.note_created(thing)
        else:
            raise TypeError(f"attach takes models and optimizers, not {type(thing).__name__}")

    def halt(self) -> None:
        """Something central failed: leave nothing armed, and look closely no more."""
        self.forwards.reset()
        self.plain.resting = False
        self.plain.usual.stop()
        self.sampling = self.in_full = False
        self.in_backward = False
        self.sampler.stop()

    def model_appeared(self) -> None:
        """A new root: names of parameters may change, and all are listed again in a moment."""
        self.optimizers.rename()
        self._inventory_due = self.clock.step + INVENTORY_AFTER

    # -- losses --

    def loss_called(self, kind: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """One of torch's loss functions returned."""
        if being_transformed():
            return  # what it was given stands for something else
        if torch.is_grad_enabled():
            for observer in self.observers:
                observer.loss(kind, function, args, kwargs, result)
            self.losses.called(kind, function, args, kwargs, result, self.in_full)
            if self.structure.waiting:
                self.structure.into_loss(args[0] if args else kwargs.get("input"))
            if self.in_full:
                self.feeding.labelled(kind, args, kwargs)
        else:
            value = self.losses.evaluated(kind, result)
            if not is_finite(value):
                self.alarms.evaluated(value, args, kwargs)
            self.feeding.eval_loss(kind, args, kwargs)

    def scaled(self, given: Any, result: Any) -> None:
        """A GradScaler multiplied the loss: remember what it was before."""
        self.holding.scaled = True
        if isinstance(given, Tensor) and isinstance(result, Tensor):
            self._unscaled = (result, given.detach())

    def before_scaling(self, loss: Tensor) -> Tensor:
        """The loss as the program computed it, where a GradScaler has multiplied it."""
        scaled = self._unscaled is not None and self._unscaled[0] is loss
        return self._unscaled[1] if scaled and self._unscaled is not None else loss

    # -- backward --

    def before_backward(self, tensors: Any) -> None:
        """`backward()` is about to run on a loss."""
        self.forwards.reset()
        self.in_backward = True
        self.holding.before_backward()
        self.optimizers.look_for_zeroing()
        self.pattern.add("b")
        awaited = []
        for root, training in self.forwards.take_awaiting().values():
            awaited.append(root)
            root.trains_in_train_mode |= training
            self.modes.note_training(root, training, self.in_full)
        if self.structure.waiting:
            self.structure.settle(self.clock.step)
        loss = first_tensor(tensors)
        if loss is not None:
            if self.in_full:
                self.loop.tell(self.loop.before_backward, loss, awaited, self.clock.step)
            if self.in_full and self.forwards.heads:
                self.losses.look_for_broadcast(loss, self.forwards.heads)
            if self.in_full and not self.models.compile_used:
                self.losses.terms.before_backward(loss)
            for observer in self.observers:
                observer.backward(loss)
            self._record_loss(loss)
        self.forwards.heads = []

    def after_backward(self) -> None:
        """`backward()` returned."""
        self.in_backward = False
        self.optimizers.after_backward()
        self.alarms.look_for_bad_micro_batch()
        if self.in_full:
            self.losses.terms.after_backward()
            self.loop.tell(self.loop.after_backward, self.batch)
        self.clock.batch += self.clock.pending_batch
        self.clock.pending_batch = 0
        if not self._steps_come_from_optimizers():
            if self.before_update is not None:
                self.before_update()
            self._end_step()

    def _record_loss(self, loss: Tensor) -> None:
        loss = self.before_scaling(loss)
        self._unscaled = None
        if loss.numel() != 1:
            return
        where = user_line(3)
        table = self.loss_table(where)
        self.clock.defer(loss.detach(), lambda step, value: self._write_loss(table, where, step, value))

    def loss_table(self, where: tuple[str | None, int | None]) -> int:
        """The table of the losses that `backward()` is called on at this line."""
        table = self._loss_tables.get(where)
        if table is None:
            site = Site(op="backward", file=where[0], line=where[1], phase="train")
            table = self._loss_tables[where] = self.sink.table([signals.LOSS.name], [self.sink.site(site)])
        return table

    def _write_loss(self, table: int, where: tuple[str | None, int | None], step: int, value: float) -> None:
        self.sink.row(table, step, (value,))
        self.holding.backward(value, where)
        if not is_finite(value):
            self.alarms.give("loss", step, where, None)

    def _steps_come_from_optimizers(self) -> bool:
        if self.cycle.lead is not None:
            return True
        if self._backwards_without_step == 0:
            self.optimizers.find_existing()
        self._backwards_without_step += 1
        exists = any(ref() is not None for ref in self.optimizers.created)
        return exists and self._backwards_without_step <= PATIENCE

    # -- optimizer --

    def before_step(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`optimizer.step()` is about to update parameters: they are still intact."""
        self.forwards.reset()
        state = self.optimizers.state_of(optimizer)
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if state.site is None:
            file, line = user_line(2)
            state.site = Site(op="step", file=file, line=line, phase="train")
            state.uses_closure = closure is not None
            self._inventory_due = self.clock.step + INVENTORY_AFTER
            fact = self.optimizers.fact(state)
            if fact is not None:
                fact.write(self.sink, self.clock.step)
        if closure is None:
            self._sentinel(state, optimizer)
        if self.sampling:
            self.parameters.before_step(state.named, state.weights)
            if self.before_update is not None:
                self.before_update()

    def _sentinel(self, state: OptimizerState, optimizer: Optimizer) -> None:
        norm: Any = self.parameters.gradients(state.named, state.norm.at) if self.sampling else None
        if norm is None:
            norm = state.norm()
        if norm is None:  # gradients of a kind that nobody can read
            self.optimizers.write_rates(state, rates_of(optimizer), self.clock.step)
        else:
            scale = fused_scale(optimizer)
            self.clock.defer(norm, lambda step, v: self._write_step(state, optimizer, step, v, scale))

    def _write_step(
        self, state: OptimizerState, optimizer: Optimizer, step: int, norm: float, scale: Any
    ) -> None:
        if scale is not None and not is_finite(norm):  # it will not use them
            self.optimizers.write_rates(state, rates_of(optimizer), step)
            self.scaling.skipped(scale, optimizer, (state.place.file, state.place.line))
            return
        self.optimizers.write(state, rates_of(optimizer), step, norm)
        if not is_finite(norm):
            site = state.site or Site()
            self.alarms.give("gradient", step, (site.file, site.line), state)

    def after_step(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`optimizer.step()` returned."""
        state = self.optimizers.state_of(optimizer)
        if kwargs.get("closure", args[1] if len(args) > 1 else None) is not None:
            self._sentinel(state, optimizer)
            if self.sampling and self.before_update is not None:
                self.before_update()  # the forwards ran inside the step
        if self.sampling:
            self.parameters.after_step()
        self.pattern.add("s", state.index)
        self.holding.stepped()
        if self.in_full:
            self.optimizers.write_soundness(state, self.clock.step)
            self.loop.tell(self.loop.stepped, state, self.clock.step)
        self.optimizers.after_step(state)
        if self.cycle.ends_with(state.index):
            self._end_step()

    # -- the end of a step --

    def _end_step(self) -> None:
        step, sampled = self.clock.step, self.sampling
        if sampled:
            self.activations.commit(step)
            self.parameters.commit(step)
        if self.in_full:
            for part in (self.batches, self.losses, self.calls, self.histograms, self.feeding):
                part.commit(step)
        self.end_sections(step)
        own, total = self.clock.close(perf_counter())
        self.sampler.account(step, sampled, own, total)
        self.begin_step()

    def end_sections(self, step: int) -> None:
        """A training step ends: what came before it is over, and now and then all is counted."""
        self.losses.end_of_evaluation(step)
        if self.loop.evaluations.is_open:
            self.loop.tell(self.loop.evaluations.close, step)
        if self.feeding.evaluations.running:
            self.feeding.end_of_section()
        if self.next_inventory(step) == step:
            self._take_inventory()

    def next_inventory(self, step: int) -> int:
        """The step, from this one on, to count everything: soon after something new, and ever more rarely."""
        power = 1 << (max(step, INVENTORY_AFTER + 1) - 1).bit_length()
        return min(power, self._inventory_due) if self._inventory_due >= step else power

    def begin_step(self) -> None:
        """Forget the last step's batch, and decide how closely to look at the next one."""
        self.batch = None
        self.holding.clear()
        self.forwards.take_awaiting()
        self.structure.forget()
        self.sampling = self.sampler.wants(self.clock.step)
        self.in_full = self.sampling and self.sampler.wants_all(self.clock.step)
        if self.sampling:
            TEAM.gather()
            self.activations.prepare(self.in_full)
            self.parameters.prepare(self.in_full)
        self.histograms.wanted = False
        if self.in_full:
            self.histograms.prepare(self.clock.step)
            self.loop.tell(self.loop.step_begins, self.clock.step)
        for listener in self.between_steps:
            listener(self.clock.step)
        self.plain.step_begins()

    def _take_inventory(self) -> None:
        for root in self.models.roots:
            fact = parameters_fact(root, self.models, self.optimizers)
            if fact is not None and self._inventories.get(root.name) != fact:
                self._inventories[root.name] = fact
                fact.write(self.sink, self.clock.step)
        self.loop.tell(self.loop.report, self.clock.step, owners_of(self.optimizers))

    def finish(self) -> None:
        """The run is over: write what is still open."""
        self.late.resolve()
        self.on_alarm = None  # nothing of a step is left that could be run again
        self.scaling.finish()
        self.loop.tell(self.loop.finish, self.clock.step, owners_of(self.optimizers))

    def _announce_pattern(self, number: int, pattern: str) -> None:
        PatternFact(number, pattern).write(self.sink, self.clock.step)
