"""What a program's events mean: steps, phases, which steps to look at, and what to write.

`seams.py` calls the methods here at every event of the program, on the training thread, each
under a guard. This file decides; measuring is done in layers, batches, losses and optimizers.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from clew.attach.batches import FIRST_LAYERS, Batches, batch_size, tensors_in
from clew.attach.budget import Sampler
from clew.attach.cycle import Cycle
from clew.attach.events import Pattern
from clew.attach.feeding import Feeding
from clew.attach.frames import user_line
from clew.attach.function_calls import FunctionCalls
from clew.attach.guard import Guard
from clew.attach.histograms import Histograms
from clew.attach.holding import Holding
from clew.attach.inventory import owners_of, parameters_fact
from clew.attach.late import Late
from clew.attach.layers import ActivationMode, Activations, ParameterStats, first_tensor
from clew.attach.loop import Loop
from clew.attach.losses import Losses
from clew.attach.models import ModelBook, Root
from clew.attach.optimizers import OptimizerBook, OptimizerState, is_finite, nonfinite_names
from clew.attach.plain import PlainSteps
from clew.attach.pretrained import Pretrained
from clew.attach.sink import Sink
from clew.attach.steps import StepClock
from clew.attach.structure import Structure
from clew.records import Site

INVENTORY_AFTER = 3  # steps until every optimizer of a usual program has stepped once
MOST_FORWARDS = 8  # before a backward that are measured: more of them are an evaluation
MODES_EVERY = 10  # steps at least, on which the mode of a training model is noted
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
        self._look_at_call = guard.probe("functions", self._other_called)
        self.loop = Loop(sink, guard, self.models, self.optimizers)
        self.plain = PlainSteps(self)
        self.between_steps: list[Callable[[int], None]] = []  # told which step begins
        self.limit: int | None = None  # a step before which they must be told
        self.due = sys.maxsize  # and from this one on
        self.thread = threading.get_ident()
        self.depth = 0
        self.in_backward = False
        self.sampling = self.sampler.wants(0)
        self.root: Root | None = None  # of the forward that is running
        self._stack: list[nn.Module] = []
        self._mode: AbstractContextManager[Any] | None = None
        self._measuring = False  # this very forward
        self._evaluating: Root | None = None  # ran without gradients and has not returned
        self._forwards = 0  # since the last backward
        self._awaiting: dict[int, tuple[Root, bool]] = {}  # ran since the last backward; mode
        self._first_layer_due = False
        self._forward_began = 0.0
        self._heads: list[tuple[Any, tuple[int, ...]]] = []
        self._batch: tuple[Any, Any] | None = None
        self.holding = Holding()
        self.on_alarm: Callable[[str, int, OptimizerState | None], None] | None = None
        self.before_update: Callable[[], None] | None = None  # in sampled steps, which are still there
        self.observers: list[Any] = []  # told of each root's forward, of losses and of backward()
        self.clip_norm: float | None = None  # to which the program clips its gradients
        self._unscaled: tuple[Tensor, Tensor] | None = None
        self.cycle = Cycle()
        self._backwards_without_step = 0
        self._loss_tables: dict[tuple[str | None, int | None], int] = {}
        self._modes: dict[int, tuple[bool, str | None, int | None]] = {}
        self._mode_facts: set[Any] = set()
        self._inventories: dict[str, Any] = {}
        self._inventory_due = INVENTORY_AFTER
        self._alarmed: set[str] = set()

    def hold_batch(self, args: Any, kwargs: Any, module: nn.Module | None = None) -> None:
        """Keep the arguments of a root until the step ends: an alarm will want to see them."""
        self._batch = (args, kwargs)
        if module is None:
            self.holding.clear()
        else:
            self.holding.forward(module, args, kwargs)

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

    def introduce(self, thing: Any) -> None:
        """A model or optimizer that the user named when attaching."""
        if isinstance(thing, nn.Module):
            self.models.root_of(thing)
        elif isinstance(thing, Optimizer):
            self.optimizers.note_created(thing)
        else:
            raise TypeError(f"attach takes models and optimizers, not {type(thing).__name__}")

    # -- forward --

    def enter_module(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """A module is about to run; only outermost ones and sampled steps are of interest."""
        self.depth += 1
        if self.depth > 1:
            if self.pretrained.root is not None:
                self.pretrained.module_entered(module, args[0] if args else None)
            if self._measuring and self.root is not None:
                self._stack.append(module)
                self.loop.tell(self.loop.entered, self.root, self._stack, args)
                if self.structure.flow is not None:
                    self.structure.enter(module, self.models.path_of(self.root, module) or "", args)
                if self._first_layer_due and isinstance(module, FIRST_LAYERS):
                    self._first_layer_due = False
                    self.batches.first_input(self.root, self.models.path_of(self.root, module) or "", args)
            return
        if being_transformed():
            return
        self._heads = []
        known = len(self.models.roots)
        root = self.models.root_of(module)
        if len(self.models.roots) > known:
            self.optimizers.rename()
            self._inventory_due = self.clock.step + INVENTORY_AFTER
        if root is None:
            return
        self.pretrained.forward_began(root)
        self._enter_root(root, module, args)

    def _enter_root(self, root: Root, module: nn.Module, args: tuple[Any, ...]) -> None:
        if not torch.is_grad_enabled():
            from_loader = self.pattern.batch_after_evaluation()
            self.pattern.add("e", root.index)
            self.loop.tell(self.loop.evaluations.forward, root, module, from_loader)
            self._note_mode(root, module)
            self._evaluating = root
            return
        self.root = root
        self.holding.before_forward()
        self.pattern.add("f", root.index)
        self._note_mode(root, module)
        if self.sampling and self._is_training_forward(root, module):
            self._begin_measuring(root, module, args)
        self._forward_began = perf_counter()

    def _is_training_forward(self, root: Root, module: nn.Module) -> bool:
        """Evaluation without `no_grad` looks like training; a whole validation set must not be measured."""
        if root.trains_in_train_mode and not module.training:
            return False
        self._forwards += 1
        if self._forwards > MOST_FORWARDS:
            self._discard()
        return self._forwards <= MOST_FORWARDS

    def _begin_measuring(self, root: Root, module: nn.Module, args: tuple[Any, ...]) -> None:
        self._measuring = True
        self._stack = [module]
        self.structure.begin(root)
        self._first_layer_due = not isinstance(module, FIRST_LAYERS)
        if not self._first_layer_due:
            self.batches.first_input(root, "", args)
        if self._may_trace(root, module):
            mode: AbstractContextManager[Any] = ActivationMode(
                self._function_called, self._dropout_called, self._look_at_call, self._cut_called
            )
            self.calls.begin()
            mode.__enter__()
            self._mode = mode

    def _discard(self) -> None:
        for part in (self.activations, self.batches, self.losses, self.calls, self.feeding):
            part.discard()

    def leave_module(self, module: nn.Module, args: tuple[Any, ...], kwargs: Any, output: Any) -> None:
        """A module returned (or raised: then the output is None)."""
        if self.depth > 1:
            self.depth -= 1
            if self._stack and self.root is not None:
                self._stack.pop()
                if torch.is_grad_enabled():
                    self.activations.module_output(self.root, module, output)
                    if self.structure.flow is not None:
                        self.structure.leave(module, self.models.path_of(self.root, module) or "", output)
            return
        self.depth = 0
        root, self.root = self.root, None
        measured, self._measuring = self._measuring, False
        self._leave_mode()
        evaluated, self._evaluating = self._evaluating, None
        if evaluated is not None and root is None and output is not None:
            self.feeding.evaluated(evaluated, args, kwargs, output)
        if root is None:
            return
        self.clock.forward += perf_counter() - self._forward_began
        self._leave_root(root, module, args, kwargs, output, measured)

    def _leave_root(
        self, root: Root, module: nn.Module, args: Any, kwargs: Any, output: Any, measured: bool
    ) -> None:
        self._stack = []
        self._awaiting[root.index] = (root, module.training)
        self._batch = (args, kwargs)
        self.holding.after_forward(module, args, kwargs)
        first = next(tensors_in((args, kwargs)), None)
        self.clock.pending_batch = 0 if first is None else batch_size(first)
        for observer in self.observers:
            observer.forward(root, module, args, kwargs, output)
        if measured:
            self.structure.end(tensors_in(output))
            self.batches.inputs(root, args, kwargs if isinstance(kwargs, dict) else {})
            self.feeding.training(root, args, kwargs)
            if not module._modules:
                self.activations.module_output(root, module, output)
            self._heads = [(t.grad_fn, tuple(t.shape)) for t in tensors_in(output) if t.grad_fn is not None]
        if root.announced < 0 or (root.order and root.announced == 0):
            fact = self.models.model_fact(root)
            if fact is not None:
                self.sink.fact("model", self.clock.step, fact)

    def _may_trace(self, root: Root, module: nn.Module) -> bool:
        if self.models.compile_used:
            return False  # a mode would make dynamo compile anew
        return root.tracing_is_safe or all(m.training for m in module.modules())

    def _leave_mode(self) -> None:
        if self._mode is not None:
            mode, self._mode = self._mode, None
            mode.__exit__(None, None, None)

    def _function_called(self, name: str, output: Any) -> None:
        if self._stack and self.root is not None:
            self.activations.function_output(self.root, self._stack[-1], name, output)

    def _cut_called(self, name: str, args: Any) -> None:
        if self.root is not None and self.loop.graph.looking:
            self.loop.tell(self.loop.graph.cut, self.root, name, args)

    def _other_called(self, name: str, args: Any, kwargs: Any, output: Any) -> None:
        if self._stack and self.root is not None and not being_transformed():
            self.calls.called(self.root, self._stack[-1], name, args, kwargs, output)

    def _dropout_called(self, args: Any, kwargs: Any, output: Any) -> None:
        if self._stack and self.root is not None and self.structure.flow is not None:
            if "Dropout" in type(self._stack[-1]).__name__:
                return  # a layer, seen when it returns
            path = self.models.path_of(self.root, self._stack[-1]) or ""
            self.structure.dropped(path, args, kwargs, output)

    def reset_depth(self) -> None:
        """Between steps nothing is running: an exception may have left the count behind."""
        if self.depth:
            self.depth = 0
            self.root = None
            self._evaluating = None
            self._measuring = False
            self._stack = []
            self._leave_mode()

    def halt(self) -> None:
        """Something central failed: leave nothing armed, and look closely no more."""
        self.reset_depth()
        self.plain.resting = False
        self.sampling = False
        self.in_backward = False
        self.sampler.stop()

    # -- modes --

    def mode_set(self, module: nn.Module, training: bool) -> None:
        """`.train()` or `.eval()` was called on this module by the user."""
        file, line = user_line(2)
        if len(self._modes) > 10_000:
            self._modes.clear()
        self._modes[id(module)] = (training, file, line)

    def _note_mode(self, root: Root, module: nn.Module) -> None:
        training = module.training
        if root.training is not None and root.training != training:
            self.pattern.add("m", root.index)
            _, file, line = self._modes.get(id(module), (training, None, None))
            data = {"root": root.name, "training": training, "file": file, "line": line}
            self.sink.event("mode", self.clock.step, data)
        root.training = training
        if self.root is not root:
            return
        _, file, line = self._modes.get(id(module), (training, None, None))
        key = (root.index, training, file, line)
        if key not in self._mode_facts:
            self._mode_facts.add(key)
            data = {"root": root.name, "training": training, "file": file, "line": line}
            data["mode_dependent"] = [list(pair) for pair in root.mode_dependent[:50]]
            self.sink.fact("mode", self.clock.step, data)

    def note_training_mode(self, root: Root, training: bool | None = None) -> None:
        """The mode in which a root trains: now and then, and always where it is not the usual one."""
        training = root.training if training is None else training
        if self.sampling or not training or self.clock.step % MODES_EVERY == 0:
            self.clock.modes[root.name] = float(bool(training))

    # -- losses --

    def loss_called(self, kind: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """One of torch's loss functions returned."""
        if being_transformed():
            return  # what it was given stands for something else
        if torch.is_grad_enabled():
            for observer in self.observers:
                observer.loss(kind, function, args, kwargs, result)
            self.losses.called(kind, function, args, kwargs, result, self.sampling)
            if self.structure.waiting:
                self.structure.into_loss(args[0] if args else kwargs.get("input"))
            if self.sampling:
                self.feeding.labelled(kind, args, kwargs)
        else:
            self.losses.evaluated(kind, result)
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
        self.reset_depth()
        self.in_backward = True
        self.holding.before_backward()
        self.optimizers.look_for_zeroing()
        self.pattern.add("b")
        self._forwards = 0
        awaited = [root for root, _ in self._awaiting.values()]
        for root, training in self._awaiting.values():
            root.trains_in_train_mode |= training
            self.note_training_mode(root, training)
        self._awaiting = {}
        if self.structure.waiting:
            self.structure.settle(self.clock.step)
        loss = first_tensor(tensors)
        if loss is not None:
            if self.sampling:
                self.loop.tell(self.loop.before_backward, loss, awaited, self.clock.step)
            if self.sampling and self._heads:
                self.losses.look_for_broadcast(loss, self._heads)
            if self.sampling and not self.models.compile_used:
                self.losses.terms.before_backward(loss)
            for observer in self.observers:
                observer.backward(loss)
            self._record_loss(loss)
        self._heads = []

    def after_backward(self) -> None:
        """`backward()` returned."""
        self.in_backward = False
        self.optimizers.after_backward()
        self.look_for_bad_micro_batch()
        if self.sampling:
            self.losses.terms.after_backward()
        if self.sampling:
            self.loop.tell(self.loop.after_backward, self._batch)
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
            table = self._loss_tables[where] = self.sink.table(["loss"], [self.sink.site(site)])
        return table

    def _write_loss(self, table: int, where: tuple[str | None, int | None], step: int, value: float) -> None:
        self.sink.row(table, step, (value,))
        self.holding.backward(value, where)
        if not is_finite(value):
            self._alarm("loss", step, where, None)

    def look_for_bad_micro_batch(self) -> None:
        """Where gradients are added up over several backwards, each is looked at: which one was it?"""
        holding = self.holding
        if not holding.accumulates or holding.scaled or "gradient" in self._alarmed:
            return
        for state in self.optimizers.states:
            norm = state.norm() if state.site is not None and not state.uses_closure else 0.0
            if type(norm) is float and not is_finite(norm):
                site = state.site or Site()
                self._alarm("gradient", self.step, (site.file, site.line), state)

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
        self.reset_depth()
        state = self.optimizers.state_of(optimizer)
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if state.site is None:
            file, line = user_line(2)
            state.site = Site(op="step", file=file, line=line, phase="train")
            state.uses_closure = closure is not None
            self._inventory_due = self.clock.step + INVENTORY_AFTER
            fact = self.optimizers.fact(state)
            if fact is not None:
                self.sink.fact("optimizer", self.clock.step, fact)
        if closure is None:
            self._sentinel(state, optimizer)
        if self.sampling:
            self.parameters.before_step(state.named)
            if self.before_update is not None:
                self.before_update()

    def _sentinel(self, state: OptimizerState, optimizer: Optimizer) -> None:
        norm: Any = self.parameters.gradients(state.named) if self.sampling else None
        if norm is None:
            norm = state.norm()
        self.clock.defer(norm, lambda step, value: self._write_step(state, optimizer, step, value))

    def _write_step(self, state: OptimizerState, optimizer: Optimizer, step: int, norm: float) -> None:
        self.optimizers.write(state, [g.get("lr", 0.0) for g in optimizer.param_groups], step, norm)
        if not is_finite(norm):
            site = state.site or Site()
            self._alarm("gradient", step, (site.file, site.line), state)

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
        if self.sampling:
            self.optimizers.write_soundness(state, self.clock.step)
            self.loop.tell(self.loop.stepped, state, self.clock.step)
        self.optimizers.after_step(state)
        if self.cycle.ends_with(state.index):
            self._end_step()

    # -- the end of a step --

    def _end_step(self) -> None:
        step, sampled = self.clock.step, self.sampling
        if sampled:
            for part in (self.activations, self.parameters, self.batches, self.losses, self.calls):
                part.commit(step)
            self.histograms.commit(step)
            self.feeding.commit(step)
        self._close_step(perf_counter(), 0.0, sampled)
        self.begin_step()

    def end_plain_step(self, now: float, own: float) -> None:
        """A step that was only noted is written out; `own` is what it cost."""
        self._close_step(now, own, False)

    def _close_step(self, now: float, extra: float, sampled: bool) -> None:
        step = self.clock.step
        self.losses.end_of_evaluation(step)
        if self.loop.evaluations.is_open:
            self.loop.tell(self.loop.evaluations.close, step)
        if self.feeding.evaluations.running:
            self.feeding.end_of_section()
        if step == self._inventory_due or (step > INVENTORY_AFTER and step & (step - 1) == 0):
            self._take_inventory()
        own, total = self.clock.close(now, extra)
        self.sampler.account(step, sampled, own, total)

    def begin_step(self) -> None:
        """Forget the last step's batch, and decide how closely to look at the next one."""
        self._batch = None
        self.holding.clear()
        self._awaiting = {}
        self._forwards = 0
        self.structure.forget()
        self.sampling = self.sampler.wants(self.clock.step)
        if self.sampling:
            self.loop.tell(self.loop.step_begins, self.clock.step)
            in_full = self.sampler.wants_all(self.clock.step)
            self.activations.prepare(in_full)
            self.parameters.prepare(in_full)
            self.histograms.prepare(self.clock.step)
        for listener in self.between_steps:
            listener(self.clock.step)

    def _take_inventory(self) -> None:
        for root in self.models.roots:
            data = parameters_fact(root, self.models, self.optimizers)
            if data is not None and self._inventories.get(root.name) != data:
                self._inventories[root.name] = data
                self.sink.fact("parameters", self.clock.step, data)
        self.loop.tell(self.loop.report, self.clock.step, owners_of(self.optimizers))

    def finish(self) -> None:
        """The run is over: write what is still open."""
        self.late.resolve()
        self.loop.tell(self.loop.finish, self.clock.step, owners_of(self.optimizers))

    def _alarm(self, where: str, step: int, line: Any, state: OptimizerState | None) -> None:
        """A non-finite loss or gradient: look once, while everything is still there."""
        if where in self._alarmed:
            return
        self._alarmed.add(where)
        states = [state] if state is not None else self.optimizers.states
        named = [pair for s in states for pair in s.named]
        gradients = nonfinite_names(named, gradients=True) if where == "gradient" else []
        inputs = [
            f"input[{n}]"
            for n, t in enumerate(tensors_in(self._batch))
            if t.is_floating_point() and not bool(torch.isfinite(t).all())
        ]
        data = {
            "where": where,
            "file": line[0],
            "line": line[1],
            "parameters": gradients[:20],
            "bad_weights": nonfinite_names(named, gradients=False)[:20],
            "bad_inputs": inputs,
        }
        self.sink.fact("nonfinite", step, data)
        late = self.late.is_waiting or (state is not None and state.uses_closure)
        if self.on_alarm is not None and not late and step == self.step:  # else the parameters have changed
            self.on_alarm(where, step, state)

    def _announce_pattern(self, number: int, pattern: str) -> None:
        self.sink.fact("pattern", self.clock.step, {"id": number, "pattern": pattern})


def being_transformed() -> bool:
    """Whether tensors stand for something else now: a trace being recorded, vmap, torch.func.grad."""
    return (
        torch._C._get_tracing_state() is not None or torch._C._functorch.peek_interpreter_stack() is not None
    )
