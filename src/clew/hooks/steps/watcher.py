"""The state of an attached program: its models and optimizers, and all collectors.

Which step it is, who records it and whether it is sampled is decided in `step_machine`; what the events of a
step mean, in the recorders.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from clew.hooks.collect_layers.activations import Activations
from clew.hooks.collect_layers.layer_histograms import Histograms
from clew.hooks.collect_layers.layer_structure import Structure
from clew.hooks.collect_layers.loss_graph import GraphBook
from clew.hooks.collect_layers.noise_and_mask_calls import FunctionCalls
from clew.hooks.collect_layers.parameter_stats import ParameterStats
from clew.hooks.collect_layers.pretrained_statistics import Pretrained
from clew.hooks.collect_layers.trained_models import ModelBook, Root
from clew.hooks.collect_layers.weight_ties import Ties
from clew.hooks.collect_loop.batch_stats import Batches
from clew.hooks.collect_loop.evaluation_sections import EvaluationSections
from clew.hooks.collect_loop.loss_calls import Losses
from clew.hooks.collect_loop.optimizer_use import OptimizerUse, UsedGradients
from clew.hooks.collect_loop.optimizers import OptimizerBook, OptimizerState
from clew.hooks.collect_loop.parameter_inventory import owners_of, parameters_fact
from clew.hooks.collect_loop.schedulers import Schedulers
from clew.hooks.collect_loop.seen_samples import SeenSamples
from clew.hooks.entry.guard import Guard
from clew.hooks.entry.sink import Sink
from clew.hooks.steps.forward_calls import Forwards, Modes
from clew.hooks.steps.grad_scaler import Scaling
from clew.hooks.steps.nonfinite_alarm import Alarms
from clew.hooks.steps.optimizer_steps import Cycle
from clew.hooks.steps.replay_inputs import ReplayInputs
from clew.hooks.steps.sampling_budget import SamplingBudget
from clew.hooks.steps.step_clock import Pattern, StepClock
from clew.hooks.steps.step_machine import StepMachine
from clew.measure.deferred_values import Late
from clew.measure.nested_tensors import data_tensors
from clew.records import signals
from clew.records.facts.step_facts import PatternFact
from clew.records.site import Line, Site

NEVER = sys.maxsize
INVENTORY_AFTER = 3  # steps until every optimizer of a typical program has stepped once

NAME = "loop"


class Watcher:
    """The state of an attached program."""

    def __init__(self, sink: Sink, guard: Guard, *, budget: float = 0.02, every_step: bool = False) -> None:
        self.sink = sink
        self.late = Late()
        self.models = ModelBook()
        self.optimizers = OptimizerBook(sink, self.models)
        self.sampler = SamplingBudget(budget, every_step)
        self.pattern = Pattern(self._announce_pattern)
        self.clock = StepClock(sink, self.pattern, guard, self.late)
        self.histograms = Histograms(sink, self.late, guard)
        self.activations = Activations(sink, self.models, self.late, self.histograms)
        self.parameters = ParameterStats(sink, self.late, self.histograms)
        self.batches = Batches(sink, self.late)
        self.losses = Losses(sink, self.late, self.batches, lambda: self.clock.step)
        self.calls = FunctionCalls(sink, self.late, self.models)
        self.seen_samples = SeenSamples(sink, self.late, guard, lambda: self.clock.step)
        # Rows of measured forwards: written when the step ends, dropped if the forwards were an evaluation.
        self.of_forwards = (self.batches, self.losses, self.calls, self.seen_samples)
        self.pretrained = Pretrained(sink, self.models, guard, lambda: self.clock.step)
        self.structure = Structure(sink, guard)
        self.loop = LoopCollectors(sink, guard, self.models, self.optimizers)
        self.between_steps: list[Callable[[int], None]] = []  # called with the step that begins
        self.limit: int | None = None  # a step before which they must be called
        self.due = NEVER  # and from this one on
        self.forwards = Forwards(self, guard)
        self.modes = Modes(sink, self.clock, self.pattern)
        self.replay_inputs = ReplayInputs()
        self.alarms = Alarms(self)
        self.scaling = Scaling(self.replay_inputs, lambda: self.step, self.alarms.never_updated)
        self.on_alarm: Callable[[str, int, OptimizerState | None], None] | None = None
        self.before_update: list[Callable[[], None]] = []  # on sampled steps, before anything is updated
        self.observers: list[Any] = []  # notified of each root module's forward, of losses and of backward()
        self.clip_norm: float | None = None  # the norm to which the program clips its gradients
        self.scaled_loss: tuple[Tensor, Tensor] | None = None  # by a GradScaler, and the unscaled one
        self.cycle = Cycle(self.optimizers.exists)
        self._loss_tables: dict[Line, int] = {}
        self._inventories: dict[str, Any] = {}
        self._inventory_due = INVENTORY_AFTER
        self.machine = StepMachine(self, guard)

    @property
    def thread(self) -> int:
        """The thread whose training is followed."""
        return self.machine.thread

    @property
    def step(self) -> int:
        """The open step."""
        return self.clock.step + self.machine.light.steps

    @property
    def reported_step(self) -> int:
        """The step that the program's current reports are about: the last one, until another has begun."""
        begun = self.machine.light.has_begun
        if begun is None:
            begun = self.pattern.has_begun
        return self.step if begun else max(self.step - 1, 0)

    def introduce(self, thing: Any) -> None:
        """Add a model or optimizer that the user named when attaching."""
        if isinstance(thing, nn.Module):
            self.models.root_of(thing)
        elif isinstance(thing, Optimizer):
            self.optimizers.note_created(thing)
        else:
            raise TypeError(f"attach takes models and optimizers, not {type(thing).__name__}")

    # -- for what else runs during the training: see also `between_steps`, `before_update`, `observers` --

    def stop_before(self, step: int | None) -> None:
        """The listeners of `between_steps` end the run before this step: then they must be called."""
        self.limit = step

    def call_listeners_from(self, step: int = NEVER, *, sampling: bool = True) -> None:
        """Call them from this step on. `sampling`: whether steps are sampled until the next call."""
        self.due = step
        self.sampler.paused = not sampling

    @property
    def times_listeners(self) -> bool:
        """Whether they are being called inside a probe, which counts their time."""
        return not self.machine.light.calls_listeners

    def explain_alarms(self, explain: Callable[[str, int, OptimizerState | None], None]) -> None:
        """Call this when a loss or gradient is not finite, while the inputs of the step still exist."""
        self.on_alarm = explain

    # -- what the program does --

    def model_appeared(self) -> None:
        """A new root module: parameter names may change, and everything is listed again soon."""
        self.optimizers.rename()
        self.take_inventory_soon()

    def scaled(self, given: Any, result: Any) -> None:
        """A GradScaler multiplied the loss: remember what it was before."""
        self.replay_inputs.scaled = True
        if isinstance(given, Tensor) and isinstance(result, Tensor):
            self.scaled_loss = (result, given.detach())

    def unscaled(self) -> None:
        """A GradScaler divided an optimizer's gradients by its scale."""
        self.pattern.add("u")
        self.loop.optimizer_use.unscaled += 1

    def clipped(self, limit: float, by_norm: bool) -> None:
        """The program clipped gradients, to a norm or each value to a limit."""
        self.pattern.add("c")
        if by_norm:
            self.clip_norm = limit

    def before_scaling(self, loss: Tensor) -> Tensor:
        """The loss as the program computed it, before a GradScaler multiplied it."""
        scaled = self.scaled_loss is not None and self.scaled_loss[0] is loss
        return self.scaled_loss[1] if scaled and self.scaled_loss is not None else loss

    def loss_table(self, where: Line) -> int:
        """The table for losses on which `backward()` is called at this line."""
        table = self._loss_tables.get(where)
        if table is None:
            site = Site(op="backward", file=where[0], line=where[1], phase="train")
            table = self._loss_tables[where] = self.sink.table([signals.LOSS.name], [self.sink.site(site)])
        return table

    def end_sections(self, step: int) -> None:
        """A training step ends: close what came before it, and at intervals count everything."""
        self.losses.end_of_evaluation(step)
        if self.loop.evaluations.is_open:
            self.loop.call(self.loop.evaluations.close, step)
        if self.seen_samples.evaluations.running:
            self.seen_samples.end_of_section()
        if self.next_inventory(step) == step:
            self._take_inventory()

    def next_inventory(self, step: int) -> int:
        """The next step at which to count everything: soon after a change, then ever more rarely."""
        power = 1 << (max(step, INVENTORY_AFTER + 1) - 1).bit_length()
        return min(power, self._inventory_due) if self._inventory_due >= step else power

    def take_inventory_soon(self) -> None:
        """Something is new: count everything soon."""
        self._inventory_due = self.clock.step + INVENTORY_AFTER

    def _take_inventory(self) -> None:
        for root in self.models.roots:
            fact = parameters_fact(root, self.models, self.optimizers)
            if fact is not None and self._inventories.get(root.name) != fact:
                self._inventories[root.name] = fact
                fact.write(self.sink, self.clock.step)
        self.loop.call(self.loop.report, self.clock.step, owners_of(self.optimizers))

    def finish(self) -> None:
        """The run is over: write what is still open."""
        self.late.resolve()
        self.on_alarm = None  # no inputs of a step are left that could be replayed
        self.scaling.finish()
        self.loop.call(self.loop.finish, self.clock.step, owners_of(self.optimizers))

    def _announce_pattern(self, number: int, pattern: str) -> None:
        PatternFact(number, pattern).write(self.sink, self.clock.step)


class LoopCollectors:
    """Loss graph, weight ties, schedulers, evaluations, and the use of gradients and optimizers.

    If one of them fails, only this object is switched off; the watcher goes on.
    """

    def __init__(self, sink: Sink, guard: Guard, models: ModelBook, optimizers: OptimizerBook) -> None:
        # Call a method of one of the parts, from a probe, which counts the time.
        self.call = guard.inner(NAME, lambda part, *args: part(*args))
        self.graph = GraphBook(sink, models)
        self.ties = Ties(sink, models)
        self.schedulers = Schedulers(sink, optimizers)
        self.evaluations = EvaluationSections(sink)
        self.optimizer_use = OptimizerUse(sink, models, optimizers)
        self.gradients = UsedGradients(sink, optimizers)

    def entered(self, root: Root, stack: list[nn.Module], args: tuple[Any, ...]) -> None:
        """A module inside a root module is about to run on a sampled step; it is the last on the stack."""
        if self.graph.is_wanted:
            self.graph.entered(root, stack[-1], stack[-2] if len(stack) > 1 else None, args)

    def before_backward(self, loss: Tensor, roots: list[Root], where: Line, step: int) -> None:
        """Called on sampled steps."""
        for root in roots:
            self.ties.find_copies(root, step)
        self.optimizer_use.trained([root.index for root in roots])
        self.gradients.find_cleared()
        self.graph.backward(loss, roots, where, step)

    def after_backward(self, batch: Any) -> None:
        """Called on sampled steps; `batch` holds the arguments of the last root module that ran."""
        wanted = self.graph.wants_input_gradients
        if wanted is None:
            wanted = any(t.requires_grad for t in data_tensors(batch))
        self.gradients.after_backward(wanted)

    def step_begins(self) -> None:
        """A sampled step begins."""
        self.optimizer_use.step_begins()
        self.gradients.restart()

    def report(self, step: int, owners: dict[int, int]) -> None:
        """Write the facts that have changed."""
        self.graph.report(step, owners)
        self.ties.report(step)
        self.schedulers.report(step)
        self.optimizer_use.report(step)

    def finish(self, step: int, owners: dict[int, int]) -> None:
        """The run is over."""
        self.evaluations.close(max(step - 1, 0))  # no later step exists that it could belong to
        self.report(step, owners)
