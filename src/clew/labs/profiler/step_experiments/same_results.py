"""Do two variants of a step compute the same? Compares outputs, loss, gradients and update.

Rounding alone makes a difference, and a deep network magnifies it. How much is measured by running the
unchanged step with every parameter moved by its last bit. A difference of that order counts as the same.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from clew.labs.profiler.step_experiments.step_runner import StepRunner, StepVariant
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.users_step.model_calls import in_mode
from clew.measure.nested_tensors import map_tensors, tensors_in

LAST_BIT = 2.0**-23  # of a float32, relative
REACH = 20.0  # times the difference caused by the last bit
ALWAYS_SAME = 1e-5  # relative differences below this are rounding in any network

IN_EVALUATION = "compared in evaluation mode, because the step uses random numbers"
NOT_COMPARED = "not compared, because the step uses random numbers"


class ResultComparison:
    """The unchanged step, and how much rounding changes its results: the reference for other variants."""

    def __init__(self, runner: StepRunner, variant: StepVariant) -> None:
        self._runner, self._batch = runner, runner.subject.batch()
        self.note = ""
        self._evaluating = False
        self._reference = self._results(variant)
        if self._random(variant):  # what dropout hides in one variant, another may show
            self._evaluating, self.note = True, IN_EVALUATION
            self._reference = self._results(variant)
            if self._random(variant):
                self.note = NOT_COMPARED
        self._rounding = differences(self._reference, self._results(variant, jitter=True))

    def of(self, variant: StepVariant) -> tuple[dict[str, float], bool | None]:
        """How far another variant is off, and whether that is rounding."""
        if self.note == NOT_COMPARED:
            return {}, None
        found = differences(self._reference, self._results(variant))
        return found, only_rounding(found, self._rounding)

    def _results(self, variant: StepVariant, *, jitter: bool = False, seed: int = 0) -> StepResults:
        with self._mode():
            return run_step(self._runner, variant, self._batch, jitter=jitter, seed=seed)

    def _mode(self) -> contextlib.AbstractContextManager[None]:
        if not self._evaluating:
            return contextlib.nullcontext()
        return in_mode(self._runner.subject.models.values(), training=False)

    def _random(self, variant: StepVariant) -> bool:
        other = self._results(variant, seed=1)
        return any(value > ALWAYS_SAME for value in differences(self._reference, other).values())


@dataclass(frozen=True)
class StepResults:
    """The results of one step."""

    outputs: list[Tensor]
    loss: Tensor
    gradients: list[Tensor]
    update: list[Tensor]


def run_step(
    runner: StepRunner, variant: StepVariant, batch: StepBatch, *, jitter: bool = False, seed: int = 0
) -> StepResults:
    """One step from the initial state; `jitter` moves every parameter by its last bit first."""
    calls = model_calls(runner, batch)
    with variant.around():
        runner.start(variant, seed)
        outputs = _outputs(runner, variant, calls)
        optimizers = runner.start(variant, seed)
        parameters = runner.subject.parameters()
        if jitter:
            _jitter(parameters)
        before = [p.detach().clone() for p in parameters]
        loss = runner.step(batch, variant, optimizers)
        return StepResults(
            outputs,
            loss.double(),
            [p.grad.detach().double().clone() for p in parameters if p.grad is not None],
            [p.detach().double() - b.double() for p, b in zip(parameters, before, strict=True)],
        )


def differences(one: StepResults, other: StepResults) -> dict[str, float]:
    """Relative differences of each kind; kinds that don't match up are left out."""
    found = {
        "output": _relative_difference(one.outputs, other.outputs),
        "loss": _relative_difference([one.loss], [other.loss]),
        "gradient": _relative_difference(one.gradients, other.gradients),
        "update": _relative_difference(one.update, other.update),
    }
    return {name: value for name, value in found.items() if value is not None}


def only_rounding(found: dict[str, float], rounding: dict[str, float]) -> bool:
    """Whether the differences are those of the last bit, up to a factor."""
    return all(value <= max(ALWAYS_SAME, REACH * rounding.get(name, 0.0)) for name, value in found.items())


def model_calls(runner: StepRunner, batch: StepBatch) -> list[tuple[str, Any, Any]]:
    """The arguments of the outermost models in this step."""
    runner.start(StepVariant())
    seen = runner.snapshot.observe(batch)
    return [(name, _cut(args), _cut(kwargs)) for name, args, kwargs in seen.inputs]


def _cut(tree: Any) -> Any:
    """Without graphs: one model's output may be another's input."""
    return map_tensors(tree, lambda tensor: tensor.detach())


def _outputs(runner: StepRunner, variant: StepVariant, calls: Sequence[tuple[str, Any, Any]]) -> list[Tensor]:
    found: list[Tensor] = []
    with torch.no_grad(), variant.within():
        for name, args, kwargs in calls:
            leaves = tensors_in(runner.subject.models[name](*args, **kwargs))
            found += [t.detach().double().clone() for t in leaves if _compares(t)]
    return found


def _compares(leaf: Tensor) -> bool:
    return leaf.is_floating_point() and leaf.layout is torch.strided


def _jitter(parameters: Sequence[Tensor]) -> None:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in parameters:
            if p.is_floating_point():
                signs = torch.randint(0, 2, p.shape, generator=generator).to(p.device) * 2 - 1
                p.detach().mul_(1 + signs * LAST_BIT)


def _relative_difference(one: Sequence[Tensor], other: Sequence[Tensor]) -> float | None:
    if len(one) != len(other) or not one or any(a.shape != b.shape for a, b in zip(one, other, strict=True)):
        return None
    apart = math.sqrt(sum(float((a - b).square().sum()) for a, b in zip(one, other, strict=True)))
    size = math.sqrt(sum(float(a.square().sum()) for a in one))
    return apart / size if size else apart
