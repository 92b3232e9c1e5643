"""Do the initial weights carry signals through, and would newly drawn weights learn better?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.learning.rate_races import SEEDS, Races, level
from clew.labs.experiments.tools.short_training import TrainingSetting, train
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock

WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


@dataclass
class Layer:
    """One layer before the first step, in the order of the forward pass."""

    module: str
    gain: float  # root mean square of its weights times the root of its fan-in: 1 keeps the scale
    alike: bool  # all units have the same weights
    output: float = math.nan  # standard deviation
    gradient: float = math.nan  # root mean square, of the weight


@dataclass(frozen=True)
class RedrawnWeights(Experiment):
    name: ClassVar[str] = "poor-initialisation"
    question: ClassVar[str] = "would new initial weights learn better?"
    rank: ClassVar[int] = 34

    large: float = 3.0  # gain of a layer above which a training is worthwhile; torch's default is 0.6
    small: float = 0.1  # and below which

    def run(self, subject: Subject, clock: Clock) -> Result:
        races = Races.of(subject)
        with subject.snapshot() as snapshot:
            layers = _layers(subject, snapshot)
        data: dict[str, Any] = {
            "line": list(subject.line),
            "steps": races.steps,
            "start": races.start,
            "layers": [vars(layer) for layer in layers],
            "ends": [],
            "fresh_ends": [],
        }
        spreads = [layer.output for layer in layers]
        plot = Plot(
            "standard deviation of the outputs along depth",
            list(range(len(spreads))),
            spreads,
            "layer",
            "spread",
        )
        if any(self._odd(layer) for layer in layers):
            for seed in range(SEEDS):
                data["ends"].append(races.start - races.course(1.0, seed, clock).gain)
                data["fresh_ends"].append(self._fresh(races, seed, clock))
        return Result(data, [plot])

    def _odd(self, layer: Layer) -> bool:
        return layer.alike or not self.small <= layer.gain <= self.large

    def _fresh(self, races: Races, seed: int, clock: Clock) -> float:
        """The final loss of the same training from newly drawn weights."""
        with races.subject.snapshot(seed=seed, fresh=True) as snapshot:
            order = races.order(seed)
            losses = train(races.subject, snapshot, order, races.steps, TrainingSetting(), clock, seed=seed)
            return level(snapshot, races.measured) if math.isfinite(losses[-1]) else math.inf


def _layers(subject: Subject, snapshot: StepSnapshot) -> list[Layer]:
    found: dict[nn.Module, Layer] = {}
    with _watched(subject, found):
        loss = snapshot.loss(subject.batch())
    weights = [m.weight for m in found if isinstance(m.weight, Tensor) and m.weight.requires_grad]
    gradients = snapshot.gradients(loss, weights) if weights else []
    by_weight = {id(w): g for w, g in zip(weights, gradients, strict=True)}
    for module, layer in found.items():
        gradient = by_weight.get(id(module.weight))
        if gradient is not None:
            layer.gradient = float(gradient.square().mean().sqrt())
    return list(found.values())


@contextmanager
def _watched(subject: Subject, found: dict[nn.Module, Layer]) -> Iterator[None]:
    handles = [
        module.register_forward_hook(_noting(found, name))
        for root in subject.models.values()
        for name, module in root.named_modules()
        if isinstance(module, WEIGHTED)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _noting(found: dict[nn.Module, Layer], name: str) -> Callable[..., None]:
    def noted(module: nn.Module, _: Any, output: Any) -> None:
        if module in found or not isinstance(module.weight, Tensor):
            return
        weight = module.weight.detach().float()
        fan_in = max(weight[0].numel(), 1)
        gain = float(weight.square().mean().sqrt()) * math.sqrt(fan_in)
        rows = weight.flatten(1)
        alike = len(rows) > 1 and bool((rows == rows[0]).all())
        spread = float(output.detach().float().std()) if isinstance(output, Tensor) else math.nan
        found[module] = Layer(name, gain, alike, spread)

    return noted
