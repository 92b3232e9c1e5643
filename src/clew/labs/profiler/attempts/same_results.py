"""Do two variants of a step compute the same? Compares outputs, loss, gradients and update.

Rounding alone makes a difference, and a deep network magnifies it. How much is measured: the step
as it is, with every parameter moved by its last bit. What is within reach of that counts as the same.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clew.labs.profiler.attempts.trainee import StepWay, Trainee
from clew.labs.snapshot.step_batch import StepBatch
from clew.measure.nested_tensors import map_tensors, tensors_in

LAST_BIT = 2.0**-23  # of a float32, relative
REACH = 20.0  # times the difference that the last bit makes
ALWAYS_SAME = 1e-5  # relative differences below this are rounding, whatever the network


IN_EVALUATION = "compared in evaluation mode, because the step uses random numbers"
NOT_COMPARED = "not compared, because the step uses random numbers"


class ResultComparison:
    """The step as it is, and how much of a difference rounding makes to it: others are held against it."""

    def __init__(self, trainee: Trainee, way: StepWay) -> None:
        self._trainee, self._batch = trainee, trainee.subject.batch()
        self.note = ""
        self._evaluating = False
        self._base = self._computed(way)
        if self._random(way):  # what dropout hides in one way, another way need not hide
            self._evaluating, self.note = True, IN_EVALUATION
            self._base = self._computed(way)
            if self._random(way):
                self.note = NOT_COMPARED
        self._floor = differences(self._base, self._computed(way, jitter=True))

    def of(self, way: StepWay) -> tuple[dict[str, float], bool | None]:
        """How far another way is off, and whether that is rounding."""
        if self.note == NOT_COMPARED:
            return {}, None
        found = differences(self._base, self._computed(way))
        return found, only_rounding(found, self._floor)

    def _computed(self, way: StepWay, *, jitter: bool = False, seed: int = 0) -> Computed:
        with self._mode():
            return computed(self._trainee, way, self._batch, jitter=jitter, seed=seed)

    def _mode(self) -> contextlib.AbstractContextManager[None]:
        models = list(self._trainee.subject.models.values())
        return evaluating(models) if self._evaluating else contextlib.nullcontext()

    def _random(self, way: StepWay) -> bool:
        other = self._computed(way, seed=1)
        return any(value > ALWAYS_SAME for value in differences(self._base, other).values())


@contextlib.contextmanager
def evaluating(models: Sequence[nn.Module]) -> Iterator[None]:
    modes = [(module, module.training) for top in models for module in top.modules()]
    try:
        for module, _ in modes:
            module.training = False
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@dataclass(frozen=True)
class Computed:
    """What one step gave."""

    outputs: list[Tensor]
    loss: Tensor
    gradients: list[Tensor]
    update: list[Tensor]


def computed(
    trainee: Trainee, way: StepWay, batch: StepBatch, *, jitter: bool = False, seed: int = 0
) -> Computed:
    """One step from the first state on; `jitter` moves every parameter by its last bit before."""
    calls = model_calls(trainee, batch)
    with way.around():
        trainee.start(way, seed)
        outputs = _outputs(trainee, way, calls)
        optimizers = trainee.start(way, seed)
        parameters = trainee.subject.parameters()
        if jitter:
            _jitter(parameters)
        before = [p.detach().clone() for p in parameters]
        loss = trainee.step(batch, way, optimizers)
        return Computed(
            outputs,
            loss.double(),
            [p.grad.detach().double().clone() for p in parameters if p.grad is not None],
            [p.detach().double() - b.double() for p, b in zip(parameters, before, strict=True)],
        )


def differences(one: Computed, other: Computed) -> dict[str, float]:
    """Relative, of each kind; kinds that do not pair up are left out."""
    found = {
        "output": _apart(one.outputs, other.outputs),
        "loss": _apart([one.loss], [other.loss]),
        "gradient": _apart(one.gradients, other.gradients),
        "update": _apart(one.update, other.update),
    }
    return {name: value for name, value in found.items() if value is not None}


def only_rounding(found: dict[str, float], floor: dict[str, float]) -> bool:
    """Whether differences are what the last bit makes, up to a factor."""
    return all(value <= max(ALWAYS_SAME, REACH * floor.get(name, 0.0)) for name, value in found.items())


def model_calls(trainee: Trainee, batch: StepBatch) -> list[tuple[str, Any, Any]]:
    """What the outermost models are given in this step."""
    trainee.start(StepWay())
    seen = trainee.snapshot.observe(batch)
    return [(name, _cut(args), _cut(kwargs)) for name, args, kwargs in seen.inputs]


def _cut(tree: Any) -> Any:
    """Without graphs: a model may be given what another one made."""
    return map_tensors(tree, lambda tensor: tensor.detach())


def _outputs(trainee: Trainee, way: StepWay, calls: Sequence[tuple[str, Any, Any]]) -> list[Tensor]:
    found: list[Tensor] = []
    with torch.no_grad(), way.within():
        for name, args, kwargs in calls:
            leaves = tensors_in(trainee.subject.models[name](*args, **kwargs))
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


def _apart(one: Sequence[Tensor], other: Sequence[Tensor]) -> float | None:
    if len(one) != len(other) or not one or any(a.shape != b.shape for a, b in zip(one, other, strict=True)):
        return None
    apart = math.sqrt(sum(float((a - b).square().sum()) for a, b in zip(one, other, strict=True)))
    size = math.sqrt(sum(float(a.square().sum()) for a in one))
    return apart / size if size else apart
