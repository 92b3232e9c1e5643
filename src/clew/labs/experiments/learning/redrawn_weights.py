"""Do the initial weights carry signals through, and would newly drawn weights learn better?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor, nn

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.loss_bounds import mean_loss
from clew.labs.experiments.tools.rate_trainings import SEEDS, RateTrainings
from clew.labs.experiments.tools.short_training import TrainingSetting, train
from clew.labs.snapshot.snapshot import hooked
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock
from clew.records.facts.experiment_facts import SourceLine
from clew.records.facts.learning_experiment_facts import InitialLayer, PoorInitialisationFact

WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


@dataclass(frozen=True)
class RedrawnWeights(Experiment):
    name = "poor-initialisation"
    question = "would new initial weights learn better?"
    rank = 34

    large: float = 3.0  # gain of a layer above which a training is worthwhile; torch's default is 0.6
    small: float = 0.1  # and below which

    def run(self, subject: Subject, clock: Clock) -> Result:
        trainings = RateTrainings.of(subject)
        with subject.snapshot() as snapshot:
            layers = _layers(snapshot)
        ends, fresh_ends = [], []
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
                ends.append(trainings.start - trainings.run(1.0, seed, clock).gain)
                fresh_ends.append(self._fresh(trainings, seed, clock))
        found = PoorInitialisationFact(
            line=SourceLine(*subject.line),
            steps=trainings.steps,
            start=trainings.start,
            layers=tuple(layers),
            ends=tuple(ends),
            fresh_ends=tuple(fresh_ends),
        )
        return Result(found, [plot])

    def _odd(self, layer: InitialLayer) -> bool:
        return layer.alike or not self.small <= layer.gain <= self.large

    def _fresh(self, trainings: RateTrainings, seed: int, clock: Clock) -> float:
        """The final loss of the same training from newly drawn weights."""
        with trainings.subject.snapshot(seed=seed, fresh=True) as snapshot:
            order = trainings.order(seed)
            losses = train(snapshot, order, trainings.steps, TrainingSetting(), clock, seed=seed)
            return mean_loss(snapshot, trainings.measured) if math.isfinite(losses[-1]) else math.inf


def _layers(snapshot: StepSnapshot) -> list[InitialLayer]:
    """In the order of the forward pass."""
    subject = snapshot.subject
    found: dict[nn.Module, InitialLayer] = {}
    handles = [
        module.register_forward_hook(partial(_note_layer, found, name))
        for root in subject.models.values()
        for name, module in root.named_modules()
        if isinstance(module, WEIGHTED)
    ]
    with hooked(*handles):
        loss = snapshot.loss(subject.batch())
    weights = [m.weight for m in found if isinstance(m.weight, Tensor) and m.weight.requires_grad]
    gradients = snapshot.gradients(loss, weights) if weights else []
    by_weight = {id(w): g for w, g in zip(weights, gradients, strict=True)}
    for module, layer in found.items():
        gradient = by_weight.get(id(module.weight))
        if gradient is not None:
            found[module] = replace(layer, gradient=float(gradient.square().mean().sqrt()))
    return list(found.values())


def _note_layer(
    found: dict[nn.Module, InitialLayer], name: str, module: nn.Module, _: Any, output: Any
) -> None:
    if module in found or not isinstance(module.weight, Tensor):
        return
    weight = module.weight.detach().float()
    fan_in = max(weight[0].numel(), 1)
    gain = float(weight.square().mean().sqrt()) * math.sqrt(fan_in)
    rows = weight.flatten(1)
    alike = len(rows) > 1 and bool((rows == rows[0]).all())
    spread = float(output.detach().float().std()) if isinstance(output, Tensor) else math.nan
    found[module] = InitialLayer(name, gain, alike, spread)
