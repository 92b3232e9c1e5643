"""Does the model read tokens or padding? Adds noise to the embeddings of each and measures the output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from clew.hooks.collect_layers.attention_masks import padding_of
from clew.labs.experiments.base import Experiment, Result
from clew.labs.experiments.tools.op_tape import TapePlace, first_difference, plain_kernels, taped
from clew.labs.experiments.tools.sample_leaks import SEED
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.labs.snapshot.users_step.model_calls import (
    ModelCall,
    evaluating,
    few_samples,
    model_calls,
    sample_dim,
)
from clew.measure.nested_tensors import tensors_in

LEAST = 4  # real tokens of a sample: with fewer it is unclear which are read
LONGEST = 64  # positions that get noise, one by one


@dataclass(frozen=True)
class PaddingInfluence(Experiment):
    name = "mask-inverted"
    question = "does the model read the words or the padding?"
    rank = 14

    rounding: float = 1e-5  # of the output's size: single precision keeps seven digits

    def run(self, subject: Subject, clock: Clock) -> Result:
        batch = few_samples(_with_padding(subject))
        with subject.snapshot(seed=0) as snapshot, evaluating(subject.models.values()), plain_kernels():
            for call in model_calls(subject, snapshot, batch):
                shaking = _shaking(call, snapshot)
                if shaking is not None:
                    return self._look(shaking, clock)
        raise CannotJudge("no sample has padding that an embedding reads")

    def _look(self, shaking: _Shaking, clock: Clock) -> Result:
        if not shaking.base or not shaking.steady():
            raise CannotJudge("no reproducible output per sample")
        padding = shaking.effect(shaking.padding, None)
        read = []
        for position in range(shaking.shortest):
            clock.tick(position / shaking.shortest)
            read.append(shaking.effect(None, position) > self.rounding)
        found = padding > self.rounding and sum(read) <= (0 if shaking.by_position else 1)
        place = shaking.place() if found else None
        return Result(
            {
                "padding_effect": padding,
                "positions": len(read),
                "read": sum(read),
                "by_position": shaking.by_position,
                "share": float(shaking.padding.float().mean()),
                "place": place.to_json() if place else None,
            }
        )


def _with_padding(subject: Subject) -> Subject:
    """The subject with samples that have padding at the start; there may be few."""
    batch = subject.batch()
    padded = torch.zeros(batch.size, dtype=torch.bool)
    for tensor, dim in zip(batch.tensors(), batch.dims, strict=True):
        if dim == 0 and tensor.dim() == 2 and not tensor.is_floating_point() and tensor.dtype != torch.bool:
            padded |= (tensor[:, -1] == tensor[:, -1].mode().values).cpu()  # padding is the usual end
    order = torch.argsort(padded.int(), descending=True, stable=True)
    return replace(subject, batches=[batch.rows(order), *subject.batches[1:]])


def _shaking(call: ModelCall, snapshot: StepSnapshot) -> _Shaking | None:
    """The first embedding that reads padding."""
    seen: list[tuple[nn.Embedding, Tensor]] = []
    tables = [m for m in call.module.modules() if isinstance(m, nn.Embedding)]
    handles = [m.register_forward_hook(lambda m, a, _: seen.append((m, a[0]))) for m in tables]
    try:
        snapshot.seed(SEED)
        call.again()
    finally:
        for handle in handles:
            handle.remove()
    for table, tokens in seen:
        if tokens.dim() != 2 or tokens.shape[1] < LEAST:
            continue
        padding = padding_of(tokens, table.padding_idx)
        rows = padding.any(1) & ((~padding).sum(1) >= LEAST)
        if bool(rows.any()):
            return _Shaking(snapshot, call, table, padding, rows)
    return None


class _Shaking:
    """One call of a model, repeated with noise on an embedding's output at some positions."""

    def __init__(
        self, snapshot: StepSnapshot, call: ModelCall, table: nn.Embedding, padding: Tensor, rows: Tensor
    ) -> None:
        self._snapshot = snapshot
        self._call = call
        self._table = table
        self.padding = padding
        self._rows = rows
        self.shortest = min(int((~padding)[rows].sum(1).min()), LONGEST)
        self.base = self._outputs(None)

    @property
    def by_position(self) -> bool:
        """Whether there is an output for every token."""
        return bool(self.base) and all(self.padding.shape[1] in t.shape[1:] for t in self.base)

    def _outputs(self, places: Tensor | None) -> list[Tensor]:
        """The model's outputs for the samples with padding."""
        self._snapshot.seed(SEED)
        found = [t.detach() for t in tensors_in(self._shaken(places)()) if t.is_floating_point()]
        count = len(self.padding)
        dims = [(t, sample_dim(t, count)) for t in found]
        return [t.movedim(d, 0)[self._rows] for t, d in dims if d is not None]

    def _shaken(self, places: Tensor | None) -> Callable[[], Any]:
        if places is None:
            return self._call.again
        generator = torch.Generator().manual_seed(SEED)
        noise = torch.randn((*places.shape, self._table.embedding_dim), generator=generator)
        noise = (noise * places[..., None].cpu()).to(self.padding.device)

        def hook(_: nn.Module, args: Any, output: Tensor) -> Tensor:
            return output + noise.to(output.dtype) if args[0].shape == places.shape else output

        def again() -> Any:
            handle = self._table.register_forward_hook(hook)
            try:
                return self._call.again()
            finally:
                handle.remove()

        return again

    def steady(self) -> bool:
        return all(map(torch.equal, self.base, self._outputs(None)))

    def effect(self, places: Tensor | None, position: int | None) -> float:
        """How much the outputs of the other real tokens (or of the sample) change, relative to their size."""
        if places is None:
            places = torch.zeros_like(self.padding)
            places[:, position] = True
        changed = self._outputs(places)
        watched = ~self.padding[self._rows]
        if position is not None:
            watched = watched.clone()
            watched[:, position] = False
        gaps = [self._gap(a, b, watched) for a, b in zip(self.base, changed, strict=True)]
        return max(gaps, default=0.0)

    def _gap(self, one: Tensor, other: Tensor, watched: Tensor) -> float:
        gap = (one.double() - other.double()).abs().nan_to_num()
        time = sample_dim(one[0], watched.shape[1]) if self.by_position else None
        if time is not None:
            gap = gap.movedim(time + 1, 1) * watched.reshape(*watched.shape, *[1] * (gap.dim() - 2))
        size = float(one.double().abs().nan_to_num().max())
        return float(gap.max()) / size if size > 0 else 0.0

    def place(self) -> TapePlace | None:
        """The first op through which the padding reaches the output."""
        count, length = self.padding.shape

        def keep(tensor: Tensor) -> Tensor | None:
            if not tensor.is_floating_point():
                return None
            time = sample_dim(tensor, length)
            if time is not None:
                return tensor.narrow(time, 0, self.shortest)
            return tensor if sample_dim(tensor, count) is not None and length not in tensor.shape else None

        models = {self._call.name: self._call.module}
        still = self._shaken(torch.zeros_like(self.padding))
        self._snapshot.seed(SEED)
        _, before = taped(models, keep, still)
        self._snapshot.seed(SEED)
        _, after = taped(models, keep, self._shaken(self.padding))
        return first_difference(before, after, 1e-6)
