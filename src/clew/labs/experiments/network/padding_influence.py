"""Does the model read tokens or padding? Adds noise to the embeddings of each and measures the output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from clew.hooks.collect_layers.attention_masks import padding_of
from clew.labs.experiments.base import Experiment, Result
from clew.labs.experiments.tools.op_tape import SEED, RepeatedCall, plain_kernels
from clew.labs.snapshot.snapshot import hooked
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.labs.snapshot.users_step.model_calls import (
    ModelCall,
    few_samples,
    in_mode,
    model_calls,
    sample_dim,
)
from clew.records.facts.experiment_facts import CodePlace
from clew.records.facts.network_experiment_facts import MaskInvertedFact

LEAST = 4  # real tokens of a sample: with fewer it is unclear which are read
LONGEST = 64  # positions that get noise, one by one


@dataclass(frozen=True)
class PaddingInfluence(Experiment):
    name = "mask-inverted"
    question = "does the model read the words or the padding?"
    rank = 15

    rounding: float = 1e-5  # of the output's size: single precision keeps seven digits

    def run(self, subject: Subject, clock: Clock) -> Result:
        batch = few_samples(_with_padding(subject))
        with (
            subject.snapshot(seed=0) as snapshot,
            in_mode(subject.models.values(), training=False),
            plain_kernels(),
        ):
            for call in model_calls(snapshot, batch):
                noisy = _noisy_embedding(call, snapshot)
                if noisy is not None:
                    return self._judged(noisy, clock)
        raise CannotJudge("no sample has padding that an embedding reads")

    def _judged(self, noisy: _NoisyEmbedding, clock: Clock) -> Result:
        if not noisy.base or not noisy.steady():
            raise CannotJudge("no model has a reproducible output per sample")
        padding = noisy.padding_effect()
        read = []
        for position in range(noisy.shortest):
            clock.tick(position / noisy.shortest)
            read.append(noisy.position_effect(position) > self.rounding)
        found = padding > self.rounding and sum(read) <= (0 if noisy.by_position else 1)
        return Result(
            MaskInvertedFact(
                padding_effect=padding,
                positions=len(read),
                positions_read=sum(read),
                by_position=noisy.by_position,
                share=float(noisy.padding.float().mean()),
                place=noisy.place() if found else None,
            )
        )


def _with_padding(subject: Subject) -> Subject:
    """The subject with samples that have padding at the start; there may be few."""
    batch = subject.batch()
    padded = torch.zeros(batch.size, dtype=torch.bool)
    for tensor, _, dim in batch.entries():
        if dim == 0 and tensor.dim() == 2 and not tensor.is_floating_point() and tensor.dtype != torch.bool:
            padded |= (tensor[:, -1] == tensor[:, -1].mode().values).cpu()  # padding is the usual end
    order = torch.argsort(padded.int(), descending=True, stable=True)
    return replace(subject, batches=[batch.rows(order), *subject.batches[1:]])


def _noisy_embedding(call: ModelCall, snapshot: StepSnapshot) -> _NoisyEmbedding | None:
    """The first embedding that reads padding."""
    seen: list[tuple[nn.Embedding, Tensor]] = []
    tables = [m for m in call.module.modules() if isinstance(m, nn.Embedding)]
    handles = [m.register_forward_hook(lambda m, a, _: seen.append((m, a[0]))) for m in tables]
    with hooked(*handles):
        snapshot.seed(SEED)
        call.again()
    for table, tokens in seen:
        if tokens.dim() != 2 or tokens.shape[1] < LEAST:
            continue
        padding = padding_of(tokens, table.padding_idx)
        rows = padding.any(1) & ((~padding).sum(1) >= LEAST)
        if bool(rows.any()):
            return _NoisyEmbedding(snapshot, call, table, padding, rows)
    return None


class _NoisyEmbedding(RepeatedCall):
    """One call of a model, repeated with noise on an embedding's output at some positions."""

    def __init__(
        self, snapshot: StepSnapshot, call: ModelCall, table: nn.Embedding, padding: Tensor, rows: Tensor
    ) -> None:
        super().__init__(snapshot, call)
        self._table = table
        self.padding = padding
        self._rows = rows
        self.shortest = min(int((~padding)[rows].sum(1).min()), LONGEST)

    @property
    def by_position(self) -> bool:
        """Whether there is an output for every token."""
        return bool(self.base) and all(self.padding.shape[1] in t.shape[1:] for t in self.base)

    def outputs(self, places: Tensor | None = None) -> list[Tensor]:
        """The model's outputs for the samples with padding, with noise at these places."""
        run = self.call.again if places is None else self._noisy(places)
        dims = [(t, sample_dim(t, len(self.padding))) for t in self.results(run)]
        return [t.movedim(d, 0)[self._rows] for t, d in dims if d is not None]

    def _noisy(self, places: Tensor) -> Callable[[], Any]:
        generator = torch.Generator().manual_seed(SEED)
        noise = torch.randn((*places.shape, self._table.embedding_dim), generator=generator)
        noise = (noise * places[..., None].cpu()).to(self.padding.device)

        def hook(_: nn.Module, args: Any, output: Tensor) -> Tensor:
            return output + noise.to(output.dtype) if args[0].shape == places.shape else output

        def again() -> Any:
            with hooked(self._table.register_forward_hook(hook)):
                return self.call.again()

        return again

    def padding_effect(self) -> float:
        """How much noise on the padding changes the outputs of the real tokens (or of the sample)."""
        return self._effect(self.padding, ~self.padding[self._rows])

    def position_effect(self, position: int) -> float:
        """How much noise on this position changes the outputs of the other real tokens (or of the sample)."""
        places = torch.zeros_like(self.padding)
        places[:, position] = True
        watched = ~self.padding[self._rows]
        watched[:, position] = False
        return self._effect(places, watched)

    def _effect(self, places: Tensor, watched: Tensor) -> float:
        """The change of the watched outputs, relative to their size."""
        changed = self.outputs(places)
        gaps = [self._gap(a, b, watched) for a, b in zip(self.base, changed, strict=True)]
        return max(gaps, default=0.0)

    def _gap(self, one: Tensor, other: Tensor, watched: Tensor) -> float:
        gap = (one.double() - other.double()).abs().nan_to_num()
        time = sample_dim(one[0], watched.shape[1]) if self.by_position else None
        if time is not None:
            gap = gap.movedim(time + 1, 1) * watched.reshape(*watched.shape, *[1] * (gap.dim() - 2))
        size = float(one.double().abs().nan_to_num().max())
        return float(gap.max()) / size if size > 0 else 0.0

    def place(self) -> CodePlace | None:
        """The first op through which the padding reaches the output."""
        count, length = self.padding.shape

        def keep(tensor: Tensor) -> Tensor | None:
            if not tensor.is_floating_point():
                return None
            time = sample_dim(tensor, length)
            if time is not None:
                return tensor.narrow(time, 0, self.shortest)
            return tensor if sample_dim(tensor, count) is not None and length not in tensor.shape else None

        no_noise = self._noisy(torch.zeros_like(self.padding))  # with the same ops
        return self.first_change(keep, self._noisy(self.padding), run=no_noise)
