"""Evaluation that builds graphs: eval-mode forwards with gradients enabled and no backward.

A section of evaluation lasts from its first forward to the next forward in training mode. A backward or a
call of `torch.autograd.grad` within it means that the graphs were wanted (adversarial examples, saliency).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.entry.patches import Patches
from clew.hooks.entry.user_line import user_line
from clew.hooks.steps.watcher import Watcher
from clew.measure.nested_tensors import tensors_in
from clew.records.facts.profile_facts import EvaluationGraphFact


@dataclass
class GraphSection:
    """Where an evaluation runs its model."""

    file: str | None
    line: int | None
    began: float
    wanted: bool = False  # something asked for gradients


@dataclass
class Total:
    sections: int = 0
    seconds: float = 0.0
    wanted: int = 0


class GraphsInEvaluation:
    """Told of forwards with gradients and of backwards, all through the run."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._open: dict[int, GraphSection] = {}
        self._totals: dict[tuple[str, str | None, int | None], Total] = {}
        self._began = perf_counter()

    def watch_gradients(self, patches: Patches) -> None:
        """`torch.autograd.grad` needs the graph as much as a backward does."""

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                self.backward(None)
                return original(*args, **kwargs)

            return wrapper

        patches.wrap(torch.autograd, "grad", wrap)

    def forward(self, root: Root, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """A root ran with gradients enabled."""
        if module.training:
            self._close(root)
        elif root.index not in self._open and root.trains_in_train_mode and _has_graph(output):
            self._open[root.index] = GraphSection(*user_line(), perf_counter())

    def backward(self, loss: Tensor | None) -> None:
        """Whatever was evaluated since the last forward in training mode may be what this is for."""
        for section in self._open.values():
            section.wanted = True

    def _close(self, root: Root, ended: float | None = None) -> None:
        section = self._open.pop(root.index, None)
        if section is not None:
            total = self._totals.setdefault((root.name, section.file, section.line), Total())
            total.sections += 1
            total.wanted += section.wanted
            total.seconds += (perf_counter() if ended is None else ended) - section.began

    def facts(self) -> list[EvaluationGraphFact]:
        """Those that nobody asked for gradients. One that is still open ended some time ago: it counts
        as no time."""
        for root in self._watcher.models.roots:
            section = self._open.get(root.index)
            self._close(root, section.began if section is not None else None)
        run = perf_counter() - self._began
        return [
            EvaluationGraphFact(root, file, line, total.sections, total.seconds, run)
            for (root, file, line), total in self._totals.items()
            if not total.wanted
        ]


def _has_graph(output: Any) -> bool:
    return any(t.grad_fn is not None for t in tensors_in(output))
