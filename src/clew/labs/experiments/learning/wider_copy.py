"""Can a wider copy of the network learn what the network itself can't?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import nn
from torch.optim import Adam

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.loss_bounds import LossRange, MeasuredLoss, measured
from clew.labs.experiments.tools.short_training import TrainingSetting, dropouts, many, train
from clew.labs.snapshot.snapshot import hooked
from clew.labs.snapshot.step_batch import BOTH, StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.records.facts.experiment_facts import SourceLine
from clew.records.facts.learning_experiment_facts import CapacityTooSmallFact, WidthTraining

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
CARRIERS = (nn.Linear, *CONVOLUTIONS, nn.RNNBase, nn.Embedding, nn.EmbeddingBag)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
OPTIONS = ("kernel_size", "stride", "padding", "output_padding", "dilation", "groups", "padding_mode")

UNKNOWN = "the lowest possible loss is not known"


@dataclass(frozen=True)
class WiderCopy(Experiment):
    name = "capacity-too-small"
    question = "can a wider network learn what this one can't?"
    rank = 40

    samples: int = 32  # to be memorised; noise among more samples need not be
    steps: int = 300  # for each attempt
    rates: tuple[float, ...] = (1e-2, 3e-3, 3e-2)  # of Adam, without dropout, decay and noise
    enough: float = 0.3  # remaining share of the way at which the network is large enough
    nothing: float = 0.98  # the same, above which something other than its width is wrong

    def run(self, subject: Subject, clock: Clock) -> Result:
        subject.need_training()
        batch = many(subject, self.samples)
        if batch.tensors(BOTH):
            raise CannotJudge("the input is also the target: a narrow layer may be intended")
        with subject.snapshot() as snapshot:
            first = measured(snapshot, batch)
            dropouts(snapshot, batch)
        if LossRange.between(first, first).floor is None:
            raise CannotJudge(UNKNOWN)
        narrow, losses = self._best(subject, batch, clock, lambda: None)
        found = CapacityTooSmallFact(line=SourceLine(*subject.line), samples=batch.size, narrow=narrow)
        plots = [_plot("as it is", losses)]
        if not narrow.enough:
            if narrow.remaining > self.nothing:
                raise CannotJudge("the network learns nothing from these samples: see cannot-overfit-batch")
            with subject.snapshot() as snapshot:
                layers = order_of_layers(snapshot, batch)
            width = hidden_width(layers)
            factor = 8 if width <= 8 else 4
            wide, losses = self._best(subject, batch, clock, lambda: widen(subject, layers, factor))
            found = replace(found, factor=factor, width=width, wide=wide)
            plots.append(_plot(f"{factor} times as wide", losses))
        return Result(found, plots)

    def _best(
        self, subject: Subject, batch: StepBatch, clock: Clock, change: Callable[[], None]
    ) -> tuple[WidthTraining, list[float]]:
        tried = []
        for number, rate in enumerate(self.rates):
            clock.tick(number / len(self.rates))
            tried.append(self._attempt(subject, batch, rate, clock, change))
            if tried[-1][0].enough:
                return tried[-1]
        return min(tried, key=lambda attempt: attempt[0].remaining)

    def _attempt(
        self, subject: Subject, batch: StepBatch, rate: float, clock: Clock, change: Callable[[], None]
    ) -> tuple[WidthTraining, list[float]]:
        setting = TrainingSetting.calm("Adam", rate)
        with subject.snapshot() as snapshot, setting.around(subject):
            try:
                change()
                first = measured(snapshot, batch)
            except RuntimeError as error:
                raise CannotJudge(
                    "a wider copy can't be built: the code depends on the layers' widths"
                ) from error
            low = LossRange.between(first, first).at(0.5 * self.enough, first.loss)
            optimizer = Adam([p for p in subject.model.parameters() if p.requires_grad], lr=rate)
            losses = train(
                snapshot,
                [batch],
                self.steps,
                setting,
                clock,
                until=lambda v: v <= low,
                optimizer=optimizer,
            )
            last = measured(snapshot, batch) if math.isfinite(losses[-1]) else MeasuredLoss(math.inf)
        return _summary(first, last, losses, rate, self.enough), losses


def _summary(
    first: MeasuredLoss, last: MeasuredLoss, losses: list[float], rate: float, enough: float
) -> WidthTraining:
    where = LossRange.between(first, last)
    if where.floor is None and math.isfinite(last.loss):
        raise CannotJudge(UNKNOWN)
    left = where.remaining(first.loss, last.loss)
    third = losses[-max(len(losses) // 3, 1)]
    still = third - losses[-1]  # by how much it fell in the last third
    above = losses[-1] - where.lowest
    return WidthTraining(
        rate=rate,
        start=first.loss,
        end=last.loss,
        remaining=left,
        accuracy=last.accuracy,
        falling=still / above if above > 0 else 0.0,
        steps=len(losses),
        enough=left <= enough or (last.accuracy or 0.0) >= 0.97,
    )


def _plot(how: str, losses: list[float]) -> Plot:
    return Plot.of_losses(f"loss on the same samples, {how}", losses)


def hidden_width(layers: list[tuple[str, nn.Module]]) -> int:
    """The narrowest layer except the last."""
    widths = [_width(module) for _, module in layers[:-1] if isinstance(module, CARRIERS)]
    return min(widths, default=0)


def order_of_layers(snapshot: StepSnapshot, batch: StepBatch) -> list[tuple[str, nn.Module]]:
    """Layers that can be widened, in execution order; raises if there are layers of other kinds."""
    model = snapshot.subject.model
    called: dict[str, nn.Module] = {}
    handles = [
        module.register_forward_hook(partial(_note_called, called, name))
        for name, module in model.named_modules()
        if not list(module.children())
    ]
    with hooked(*handles):
        snapshot.loss(batch)
    found = [(n, m) for n, m in called.items() if next(m.parameters(recurse=False), None) is not None]
    strange = [type(m).__name__ for _, m in found if not isinstance(m, (*CARRIERS, *NORMS))]
    known = {id(p) for _, m in found for p in m.parameters(recurse=False)}
    if strange or any(id(p) not in known for p in model.parameters()):
        raise CannotJudge(
            f"a wider copy can't be built: {(strange or ['its own parameters'])[0]} can't be widened"
        )
    if sum(isinstance(m, CARRIERS) for _, m in found) < 2:
        raise CannotJudge("there is no hidden layer to make wider")
    return found


def _note_called(called: dict[str, nn.Module], name: str, module: nn.Module, *_: Any) -> None:
    called.setdefault(name, module)


def widen(subject: Subject, layers: list[tuple[str, nn.Module]], factor: int) -> None:
    """Multiply all widths by `factor`, except the first input and the last output. Only inside a snapshot."""
    carriers = [n for n, (_, m) in enumerate(layers) if isinstance(m, CARRIERS)]
    begin, end = carriers[0], carriers[-1]  # before and after these, the input and the output are normalised
    for number, (path, module) in enumerate(layers[begin : end + 1], begin):
        first, last = number == begin, number == end
        wider = _wider(module, 1 if first else factor, 1 if last else factor)
        wider.train(module.training)
        parent, _, name = path.rpartition(".")
        owner = subject.model.get_submodule(parent) if parent else subject.model
        owner._modules[name] = wider.to(next(module.parameters()))


def _wider(module: Any, inside: int, outside: int) -> nn.Module:
    if isinstance(module, nn.Linear):
        return nn.Linear(module.in_features * inside, module.out_features * outside, module.bias is not None)
    if isinstance(module, CONVOLUTIONS):
        options = {name: getattr(module, name) for name in OPTIONS if hasattr(module, name)}
        if not type(module).__name__.startswith("ConvT"):
            options.pop("output_padding", None)
        kind: Any = type(module)
        made: nn.Module = kind(
            module.in_channels * inside,
            module.out_channels * outside,
            bias=module.bias is not None,
            **options,
        )
        return made
    if isinstance(module, nn.RNNBase):
        return _wider_recurrent(module, inside, outside)
    if isinstance(module, nn.Embedding):
        return nn.Embedding(module.num_embeddings, module.embedding_dim * outside, module.padding_idx)
    if isinstance(module, nn.EmbeddingBag):
        return nn.EmbeddingBag(module.num_embeddings, module.embedding_dim * outside, mode=module.mode)
    return type(module)(module.num_features * outside, affine=module.affine)  # type: ignore[no-any-return]


def _wider_recurrent(module: Any, inside: int, outside: int) -> nn.Module:
    if module.proj_size:
        raise CannotJudge("a wider copy can't be built: the recurrent layer projects its output")
    made: nn.Module = type(module)(
        module.input_size * inside,
        module.hidden_size * outside,
        module.num_layers,
        bias=module.bias,
        batch_first=module.batch_first,
        dropout=module.dropout,
        bidirectional=module.bidirectional,
    )
    return made


def _width(module: Any) -> int:
    for name in ("out_features", "out_channels", "hidden_size", "embedding_dim"):
        if hasattr(module, name):
            return int(getattr(module, name))
    return 0
