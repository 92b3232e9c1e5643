"""One model call, repeated with some samples replaced: whose output depends on the others in its batch.

Other samples are replaced by equally plausible ones, in evaluation mode and with the same random numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clew.labs.experiments.tools.op_tape import SEED, Keep, RepeatedCall, relative_change
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.time_limit import Clock
from clew.labs.snapshot.users_step.model_calls import ModelCall, sample_dim
from clew.records.facts.experiment_facts import CodePlace

TIME_FIRST = "it is unknown which dimension holds the samples: the data may be time-first"
_MEANT_NAMES = re.compile(r"in_?batch|(across|cross)_?batch|inter_?sample|mini_?batch_?(std|disc)", re.I)


@dataclass(frozen=True)
class Leak:
    """Sample `row`'s output changes with the other samples."""

    call: ModelCall
    row: int
    effect: float  # of replacing all others, relative to replacing the sample itself
    place: CodePlace | None
    by_sample: tuple[float, ...]  # the same for each sample alone; its own is 1


class ReplacedSamples(RepeatedCall):
    """One model call, repeated with some samples replaced by other, equally plausible ones."""

    def __init__(self, snapshot: StepSnapshot, call: ModelCall, count: int) -> None:
        super().__init__(snapshot, call)
        self.count = count
        tensors = [t for t in call.tensors() if sample_dim(t, count) is not None]
        self._changed = [t for t in tensors if _varies(t)] or [t for t in tensors if _is_index(t)]

    @property
    def possible(self) -> bool:
        """Whether any tensor of the call can be replaced sample by sample."""
        return bool(self._changed)

    def outputs(self, change: Callable[[Tensor], Tensor] | None = None, seed: int = SEED) -> list[Tensor]:
        """The model's outputs by sample: tensors in which one dimension has the number of samples."""
        call = self.call if change is None else self.call.changed(change)
        return [t for t in self.results(call.again, seed) if sample_dim(t, self.count) is not None]

    def square(self) -> bool:
        """Whether the output compares every sample with every other."""
        return any(list(t.shape).count(self.count) == 2 for t in self.results(self.call.again))

    def replacing(self, rows: Iterable[int]) -> Callable[[Tensor], Tensor]:
        """A change of the call's tensors in which these samples are replaced."""
        which = torch.tensor(sorted(rows), dtype=torch.long)
        ids = {id(t) for t in self._changed}

        def change(tensor: Tensor) -> Tensor:
            if id(tensor) not in ids:
                return tensor
            dim = sample_dim(tensor, self.count)
            assert dim is not None
            place = which.to(tensor.device)
            return tensor.detach().index_copy(dim, place, _other(tensor, dim).index_select(dim, place))

        return change

    def effect(self, row: int, rows: list[int]) -> float:
        """How much of the output of `row` changes when those samples are replaced."""
        changed = self.outputs(self.replacing(rows))
        gaps = [_row_change(a, b, row, self.count) for a, b in zip(self.base, changed, strict=False)]
        return max(gaps, default=0.0)

    def of_row(self, row: int) -> Keep:
        """What is kept of a result: the part of one sample."""

        def keep(tensor: Tensor) -> Tensor | None:
            dim = sample_dim(tensor, self.count) if tensor.is_floating_point() else None
            return None if dim is None else tensor.select(dim, row)

        return keep

    def place(self, row: int) -> CodePlace | None:
        """The first op whose result for this sample depends on the others."""
        others = self.call.changed(self.replacing([n for n in range(self.count) if n != row]))
        return self.first_change(self.of_row(row), others.again)


def _varies(tensor: Tensor) -> bool:
    """Features, or rows of tokens; a single number per sample may be its length."""
    if tensor.dtype == torch.bool:
        return False
    return tensor.is_floating_point() or tensor.is_complex() or tensor.dim() > 1


def _is_index(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() and tensor.dtype != torch.bool


def _other(tensor: Tensor, dim: int) -> Tensor:
    """Every sample replaced by its neighbour, with noise; tokens stay tokens, padding stays in place."""
    moved = tensor.detach().roll(1, dim)
    if tensor.is_floating_point() or tensor.is_complex():
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randn(tensor.shape, generator=generator).to(tensor.device, tensor.dtype)
        spread = tensor.detach().float().std() if tensor.is_floating_point() else tensor.abs().std()
        noisy = moved + drawn * (0.5 * spread).clamp(min=1e-3).to(tensor.dtype)
        if tensor.is_complex() or not bool(torch.isfinite(tensor).all()):
            return noisy
        return noisy.clamp(tensor.min(), tensor.max())  # it may be an index, or its root be taken
    if tensor.dim() > 1:
        last = tensor.dim() - 1 if dim != tensor.dim() - 1 else 0
        moved = moved.roll(1, last)
    return torch.where((tensor != 0) & (moved != 0), moved, tensor) if tensor.dim() > 1 else moved


def _row_change(one: Tensor, other: Tensor, row: int, count: int) -> float:
    """Relative to the size of the whole output."""
    if one.shape != other.shape:
        return 0.0
    dim = sample_dim(one, count)
    assert dim is not None
    return relative_change(one.select(dim, row), other.select(dim, row), one)


def leak_of(repeated: ReplacedSamples, clock: Clock, rounding: float) -> Leak | None:
    """The first sample among the last, the first and a middle one that depends on others."""
    count = repeated.count
    for row in (count - 1, 0, count // 2):
        clock.tick()
        gap = repeated.effect(row, [n for n in range(count) if n != row])
        if gap <= rounding:
            continue
        own = max(repeated.effect(row, [row]), rounding)
        alone = [1.0 if n == row else repeated.effect(row, [n]) / own for n in range(count)]
        return Leak(repeated.call, row, gap / own, repeated.place(row), tuple(alone))
    return None


def meant(leak: Leak) -> str | None:
    """Why samples may be meant to depend on each other there."""
    path = leak.place.module if leak.place else None
    module = module_at(leak.call.module, path)
    if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is None:
        return f"{path or 'a layer'} normalises with the statistics of each batch"
    names = f"{path or ''} {type(module).__name__} {type(leak.call.module).__name__}"
    if _MEANT_NAMES.search(names):
        return f"{type(module).__name__} compares the samples of a batch, according to its name"
    if any(_connects(t) for t in leak.call.tensors()):
        return "the model's input says which samples are connected"
    return None


def _connects(tensor: Tensor) -> bool:
    """Edges of a graph between samples (2, E), or a table of all with all."""
    if tensor.dim() != 2:
        return tensor.layout is not torch.strided
    edges = not tensor.is_floating_point() and tensor.shape[0] == 2 and tensor.shape[1] > 2
    return edges or tensor.layout is not torch.strided


def module_at(root: nn.Module, path: str | None) -> nn.Module:
    try:
        return root.get_submodule(path or "")
    except AttributeError:
        return root


def time_first_module(leak: Leak) -> tuple[str, str] | None:
    """The torch sequence layer, and its path, that got the samples where it expects time."""
    if leak.place is None:
        return None
    path = leak.place.module or ""
    while True:
        module = module_at(leak.call.module, path)
        if expects_time_first(module):
            return type(module).__name__, path
        if not path:
            return None
        path = path.rpartition(".")[0]


def expects_time_first(module: nn.Module) -> bool:
    if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
        return not module.batch_first
    attention: Any = getattr(module, "self_attn", None)
    torchs = type(module).__module__.startswith("torch.nn")
    return torchs and isinstance(attention, nn.MultiheadAttention) and not attention.batch_first
