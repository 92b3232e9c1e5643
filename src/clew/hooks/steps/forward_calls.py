"""Forward calls of models: their modes, which are training, which are measured, and the modules inside."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from clew.hooks.collect_layers.activation_functions import ActivationCalls, ActivationMode
from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.collect_loop.batch_stats import FIRST_LAYERS, batch_size
from clew.hooks.entry.sink import Sink
from clew.hooks.entry.user_line import user_line
from clew.hooks.steps.step_clock import Pattern, StepClock
from clew.measure.nested_tensors import data_tensors, first_tensor
from clew.measure.readable_tensors import shape_of
from clew.records.events import ModeEvent
from clew.records.facts.step_facts import ModeFact

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.steps.step_machine import StepMachine
    from clew.hooks.steps.watcher import Watcher

Handlers = tuple[Callable[[nn.Module, Any], None], Callable[[nn.Module, Any, Any, Any], None]]

tracing, transforming = torch._C._get_tracing_state, torch._C._functorch.peek_interpreter_stack
MOST_FORWARDS = 8  # forwards before a backward that are measured: more than this is an evaluation

MODE_EVERY = 10  # the mode of a training model is recorded at least once in this many steps
MOST_MODULES = 10_000  # modules for which we remember who set their mode


class Forwards:
    """Called when any module is entered and left, on the training thread.

    Inside a forward of which little is measured, other functions than `enter` and `leave` handle the modules:
    see `ModuleHandlers`.
    """

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self._watcher = watcher
        self._calls = ActivationCalls(guard.probe("functions", self._function_called))
        self._call_probe = guard.probe("functions", self._other_called)
        self._dropout_probe = guard.probe("functions", self._dropout_called)
        self.depth = 0
        self.root: Root | None = None  # of the running forward
        self.batch: tuple[Any, Any] | None = None  # arguments of the model that returned last in this step
        self.number = 0  # forwards since the last backward
        self.awaiting: dict[int, tuple[Root, bool]] = {}  # ran since the last backward, with mode
        self.heads: list[tuple[Any, tuple[int, ...]]] = []  # where the outputs come from, and their shapes
        self.stack: list[nn.Module] = []  # modules that are running in this forward
        self._measuring = False  # this forward is being measured
        self._layers_only = False  # and only the statistics of its layers
        self._evaluating: Root | None = None  # runs without gradients and has not returned
        self._first_layer_due = False
        self._began = 0.0

    def take_awaiting(self) -> dict[int, tuple[Root, bool]]:
        """Take the models that ran since the last backward: now it has come, or the step is over."""
        awaited, self.awaiting, self.number = self.awaiting, {}, 0
        return awaited

    def forget(self) -> None:
        """The step is over."""
        self.take_awaiting()
        self.batch = None

    def enter(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """A module is about to run; only outermost modules and sampled steps matter."""
        watcher = self._watcher
        self.depth += 1
        if self.depth > 1:
            if watcher.pretrained.root is not None:
                watcher.pretrained.module_entered(module, args[0] if args else None)
            if self._measuring and self.root is not None:
                self._enter_layer(self.root, module, args)
            return
        if not being_transformed():
            self._enter_model(module, args)
        watcher.machine.full.forward_began(self._layers_only)

    def _enter_model(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        watcher = self._watcher
        self.heads = []
        known = len(watcher.models.roots)
        root = watcher.models.root_of(module)
        if len(watcher.models.roots) > known:
            watcher.model_appeared()
        if root is not None:
            watcher.pretrained.forward_began(root)
            self._enter_root(root, module, args)

    def _enter_layer(self, root: Root, module: nn.Module, args: tuple[Any, ...]) -> None:
        watcher = self._watcher
        self.stack.append(module)
        watcher.loop.call(watcher.loop.entered, root, self.stack, args)
        if watcher.structure.flow is not None:
            watcher.structure.enter(module, self._path(root, module), args)
        if self._first_layer_due and isinstance(module, FIRST_LAYERS):
            self._first_layer_due = False
            watcher.batches.first_input(root, self._path(root, module), args)

    def _path(self, root: Root, module: nn.Module) -> str:
        return self._watcher.models.path_of(root, module) or ""

    def _enter_root(self, root: Root, module: nn.Module, args: tuple[Any, ...]) -> None:
        watcher = self._watcher
        if not torch.is_grad_enabled():
            from_loader = watcher.pattern.batch_after_evaluation()
            watcher.pattern.add("e", root.index)
            watcher.loop.call(watcher.loop.evaluations.forward, root, module, from_loader)
            watcher.modes.note(root, module, trains=False)
            self._evaluating = root
            return
        self.root = root
        watcher.replay_inputs.before_forward()
        watcher.pattern.add("f", root.index)
        watcher.modes.note(root, module, trains=True)
        if watcher.machine.sampling and self._is_training_forward(root, module):
            self._begin_measuring(root, module, args)
        self._began = perf_counter()

    def _is_training_forward(self, root: Root, module: nn.Module) -> bool:
        """Evaluation without `no_grad` looks like training; a whole validation set must not be measured."""
        if root.trains_in_train_mode and not module.training:
            return False
        self.number += 1
        if self.number > MOST_FORWARDS:
            self._discard()
        return self.number <= MOST_FORWARDS

    def _begin_measuring(self, root: Root, module: nn.Module, args: tuple[Any, ...]) -> None:
        watcher = self._watcher
        self._measuring = True
        self.stack = [module]
        self._layers_only = not watcher.machine.sampling_all
        if self._layers_only:
            if root.functional and self._may_trace(root, module):
                self._calls.begin_layers_only(root)
            return
        watcher.structure.begin(root)
        self._first_layer_due = not isinstance(module, FIRST_LAYERS)
        if not self._first_layer_due:
            watcher.batches.first_input(root, "", args)
        if self._may_trace(root, module):
            watcher.calls.begin()
            self._calls.begin(self._full_mode, layers_only_follow=watcher.sampler.every_step)

    def _full_mode(self, seen: Callable[[str, Any], None]) -> ActivationMode:
        return ActivationMode(seen, self._dropout_probe, self._call_probe, self._cut_called)

    def enter_layer(self, module: nn.Module) -> None:
        """A layer is about to run in a step that records only layer statistics."""
        self.depth += 1
        self.stack.append(module)
        if self._calls.mode is not None and self.root is not None:
            self._calls.suspend_mode(self.root, module)

    def leave_layer(self, module: nn.Module, output: Any) -> None:
        """The layer has returned."""
        self.depth -= 1
        if self.stack and self.root is not None:
            self.stack.pop()
            if torch.is_grad_enabled():
                self._watcher.activations.known_output(self.root, module, output)
        if self._calls.mode is not None:
            self._calls.resume_mode(module)

    def _discard(self) -> None:
        watcher = self._watcher
        watcher.activations.discard()
        for part in watcher.of_forwards:
            part.discard()

    def leave(self, module: nn.Module, args: tuple[Any, ...], kwargs: Any, output: Any) -> None:
        """A module has returned, or raised (then the output is None)."""
        watcher = self._watcher
        if self.depth > 1:
            self.depth -= 1
            if self.stack and self.root is not None:
                self.stack.pop()
                if torch.is_grad_enabled():
                    watcher.activations.module_output(self.root, module, output)
                    if watcher.structure.flow is not None:
                        watcher.structure.leave(module, self._path(self.root, module), output)
            return
        self.depth = 0
        watcher.machine.full.forward_ended()
        root, self.root = self.root, None
        measured, self._measuring, self._layers_only = self._measuring, False, False
        self._calls.end(root if output is not None else None)
        evaluated, self._evaluating = self._evaluating, None
        if evaluated is not None and root is None and output is not None:
            watcher.seen_samples.evaluated(evaluated, args, kwargs, output)
        if root is None:
            return
        watcher.clock.forward += perf_counter() - self._began
        self._leave_root(root, module, args, kwargs, output, measured)

    def _leave_root(
        self, root: Root, module: nn.Module, args: Any, kwargs: Any, output: Any, measured: bool
    ) -> None:
        watcher = self._watcher
        self.stack = []
        self.awaiting[root.index] = (root, module.training)
        self.batch = (args, kwargs)
        watcher.replay_inputs.after_forward(module, args, kwargs)
        first = first_tensor((args, kwargs))
        watcher.clock.pending_batch = 0 if first is None else batch_size(first)
        for observer in watcher.observers:
            observer.forward(root, module, args, kwargs, output)
        if measured and not module._modules:
            watcher.activations.module_output(root, module, output)
        if measured and watcher.machine.sampling_all:
            watcher.structure.end(data_tensors(output))
            watcher.batches.inputs(root, args, kwargs if isinstance(kwargs, dict) else {})
            watcher.seen_samples.training(root, args, kwargs)
            self.heads = [(t.grad_fn, shape_of(t)) for t in data_tensors(output) if t.grad_fn is not None]
        if root.announced < 0 or (root.order and root.announced == 0):
            fact = watcher.models.model_fact(root)
            if fact is not None:
                fact.write(watcher.sink, watcher.clock.step)

    def _may_trace(self, root: Root, module: nn.Module) -> bool:
        if self._watcher.models.compile_used:
            return False  # a mode would make dynamo recompile
        return root.tracing_is_safe or all(m.training for m in module.modules())

    def _function_called(self, name: str, output: Any) -> None:
        if self.stack and self.root is not None:
            self._watcher.activations.function_output(self.root, self.stack[-1], name, output)

    def _cut_called(self, name: str, args: Any) -> None:
        watcher = self._watcher
        if self.root is not None and watcher.loop.graph.is_wanted:
            watcher.loop.call(watcher.loop.graph.cut, self.root, name, args)

    def _other_called(self, name: str, args: Any, kwargs: Any, output: Any) -> None:
        if self.stack and self.root is not None and not being_transformed():
            self._watcher.calls.called(self.root, self.stack[-1], name, args, kwargs, output)

    def _dropout_called(self, args: Any, kwargs: Any, output: Any) -> None:
        watcher = self._watcher
        if self.stack and self.root is not None and watcher.structure.flow is not None:
            if "Dropout" in type(self.stack[-1]).__name__:
                return  # a layer: handled when it returns
            path = watcher.models.path_of(self.root, self.stack[-1]) or ""
            watcher.structure.dropped(path, args, kwargs, output)

    def reset(self) -> None:
        """Between steps nothing is running, but an exception may have left the count too high."""
        if self.depth:
            self.depth = 0
            self._watcher.machine.full.forward_ended()
            self.root = None
            self._evaluating = None
            self._measuring = self._layers_only = False
            self.stack = []
            self._calls.end(None)
        else:
            self._calls.recover()


class ModuleHandlers:
    """Pairs of functions that handle the calls of modules, entered and left; one pair at a time is in charge.

    The full recorder exchanges them when a forward begins and when it ends, so that nobody has to ask at
    every module what is measured.
    """

    def __init__(self, forwards: Forwards, machine: StepMachine, guard: Guard) -> None:
        self._forwards = forwards
        self._machine = machine
        self._guard = guard
        # For models, and for modules inside a model that is sampled:
        self.sampled: Handlers = (
            machine.probe("forward", forwards.enter),
            machine.probe("forward", forwards.leave),
        )
        self.layers = self._short()
        self.counted: Handlers = (self._count, self._uncount)

    def _count(self, module: nn.Module, args: Any) -> None:
        """Inside a forward that is not measured: only the end of the whole forward matters."""
        self._forwards.depth += 1

    def _uncount(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if self._forwards.depth > 1:
            self._forwards.depth -= 1
        else:
            self.sampled[1](module, args, kwargs, output)

    def _short(self) -> Handlers:
        """Inside a forward of which only layers are measured.

        Same as probes, but faster: there are no notes to write first, and no torch mode to set.
        """
        forwards, guard, halt, leave = self._forwards, self._guard, self._machine.halt, self.sampled[1]
        enter_layer = guard.bare("forward", forwards.enter_layer)
        leave_layer = guard.bare("forward", forwards.leave_layer)

        def entered(module: nn.Module, args: Any) -> None:
            began = perf_counter()
            try:
                enter_layer(module)
            except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                guard.fail("forward", error)
                halt()
            guard.seconds += perf_counter() - began

        def left(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            if forwards.depth == 1:  # the model itself
                leave(module, args, kwargs, output)
                return
            began = perf_counter()
            try:
                leave_layer(module, output)
            except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                guard.fail("forward", error)
                halt()
            guard.seconds += perf_counter() - began

        return entered, left


def being_transformed() -> bool:
    """Whether tensors stand for something else now: tracing, vmap, torch.func.grad."""
    return tracing() is not None or transforming() is not None


class Modes:
    """The modes of all models of a program."""

    def __init__(self, sink: Sink, clock: StepClock, pattern: Pattern) -> None:
        self._sink = sink
        self._clock = clock
        self._pattern = pattern
        self._set: dict[int, tuple[bool, str | None, int | None]] = {}
        self._known: set[Any] = set()

    def were_set(self, module: nn.Module, training: bool) -> None:
        """The user called `.train()` or `.eval()` on this module."""
        file, line = user_line()
        if len(self._set) > MOST_MODULES:
            self._set.clear()
        self._set[id(module)] = (training, file, line)

    def note(self, root: Root, module: nn.Module, trains: bool) -> None:
        """A root module runs, in training or not: record when its mode changed, and who set it."""
        training = module.training
        if root.training is not None and root.training != training:
            self._pattern.add("m", root.index)
            _, file, line = self._set.get(id(module), (training, None, None))
            ModeEvent(root.name, training, file, line).write(self._sink, self._clock.step)
        root.training = training
        if not trains:
            return
        _, file, line = self._set.get(id(module), (training, None, None))
        key = (root.index, training, file, line)
        if key not in self._known:
            self._known.add(key)
            dependent = tuple((path, kind) for path, kind in root.mode_dependent[:50])
            ModeFact(root.name, training, file, line, dependent).write(self._sink, self._clock.step)

    def note_training(self, root: Root, training: bool | None, sampling: bool) -> None:
        """Record the mode of a training root: when sampled, at intervals, and always in eval mode."""
        training = root.training if training is None else training
        if sampling or not training or self._clock.step % MODE_EVERY == 0:
            self._clock.modes[root.name] = float(bool(training))
