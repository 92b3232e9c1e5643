"""Collectors for the training loop as a whole, in one object that the watcher calls.

If it fails, only this object is switched off; the watcher goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from clew.hooks.collect_layers.loss_graph import GraphBook
from clew.hooks.collect_layers.trained_models import ModelBook, Root
from clew.hooks.collect_layers.weight_ties import Ties
from clew.hooks.collect_loop.evaluation_sections import EvaluationSections
from clew.hooks.collect_loop.gradient_use import UsedGradients
from clew.hooks.collect_loop.optimizer_upkeep import Upkeep
from clew.hooks.collect_loop.optimizers import OptimizerBook, OptimizerState
from clew.hooks.collect_loop.schedulers import Schedulers
from clew.hooks.entry.guard import Guard
from clew.hooks.entry.sink import Sink
from clew.measure.nested_tensors import data_tensors

NAME = "loop"


class LoopCollectors:
    """Loss graph, weight ties, schedulers, evaluations, and the use of gradients and optimizers."""

    def __init__(self, sink: Sink, guard: Guard, models: ModelBook, optimizers: OptimizerBook) -> None:
        self._optimizers = optimizers
        self._call = guard.inner(NAME, lambda part, *args: part(*args))
        self.graph = GraphBook(sink, models)
        self.ties = Ties(sink, models)
        self.schedulers = Schedulers(sink, optimizers)
        self.evaluations = EvaluationSections(sink)
        self.upkeep = Upkeep(sink, models, optimizers)
        self.gradients = UsedGradients(sink, optimizers)

    def tell(self, part: Callable[..., None], *args: Any) -> None:
        """Call a method of one of the parts. Called from a probe, which counts the time."""
        self._call(part, *args)

    def entered(self, root: Root, stack: list[nn.Module], args: tuple[Any, ...]) -> None:
        """A module inside a root module is about to run on a sampled step; it is the last on the stack."""
        if self.graph.looking:
            self.graph.entered(root, stack[-1], stack[-2] if len(stack) > 1 else None, args)

    def before_backward(self, loss: Tensor, roots: list[Root], step: int) -> None:
        """Called on sampled steps."""
        for root in roots:
            self.ties.first_look(root, step)
        self.upkeep.trained([root.index for root in roots])
        self.gradients.look_for_clearing()
        self.graph.backward(loss, roots, step)

    def after_backward(self, batch: Any) -> None:
        """Called on sampled steps; `batch` holds the arguments of the last root module that ran."""
        wanted = self.graph.wants_input_gradients
        if wanted is None:
            wanted = any(t.requires_grad for t in data_tensors(batch))
        self.gradients.after_backward(wanted)

    def stepped(self, state: OptimizerState, step: int) -> None:
        """Called on sampled steps."""
        self.gradients.stepped(state, step)

    def step_begins(self, step: int) -> None:
        """A sampled step begins."""
        self.upkeep.step_begins(step)
        self.gradients.restart(step)

    def report(self, step: int, held: dict[int, int]) -> None:
        """Write the facts that have changed."""
        self.graph.report(step, held)
        self.ties.report(step)
        self.schedulers.report(step)
        self.upkeep.report(step)

    def finish(self, step: int, held: dict[int, int]) -> None:
        """The run is over."""
        self.evaluations.close(max(step - 1, 0))  # no later step exists that it could belong to
        self.report(step, held)
