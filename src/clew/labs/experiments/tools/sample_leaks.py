"""Finds leaks between samples: a model's output for one sample that depends on the rest of the batch."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clew.labs.experiments.tools.op_tape import TapePlace, distance, first_difference, plain_kernels, taped
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.time_limit import Clock
from clew.labs.snapshot.users_step.model_calls import ModelCall, Others, sample_dim
from clew.measure.nested_tensors import tensors_in

SEED = 11
Change = Callable[[Tensor], Tensor]
_MEANT_NAMES = re.compile(r"in_?batch|(across|cross)_?batch|inter_?sample|mini_?batch_?(std|disc)", re.I)


@dataclass(frozen=True)
class Leak:
    """Sample `row`'s output changes with the other samples."""

    call: ModelCall
    row: int
    effect: float  # of replacing all others, relative to replacing the sample itself
    place: TapePlace | None
    by_sample: tuple[float, ...]  # the same for each sample alone; its own is 1


class Looking:
    """One model call, repeated in evaluation mode with the same random numbers."""

    def __init__(self, snapshot: StepSnapshot, call: ModelCall, count: int) -> None:
        self._snapshot = snapshot
        self.call = call
        self.count = count
        self.others = Others(call.tensors(), count)

    def reseed(self, seed: int = SEED) -> None:
        self._snapshot.seed(seed)

    def outputs(self, change: Change | None = None, seed: int = SEED) -> list[Tensor]:
        """The model's outputs by sample: tensors in which one dimension has the number of samples."""
        return [t for t in self.all_outputs(change, seed) if sample_dim(t, self.count) is not None]

    def all_outputs(self, change: Change | None = None, seed: int = SEED) -> list[Tensor]:
        call = self.call if change is None else self.call.changed(change)
        self.reseed(seed)
        with plain_kernels():
            return [t.detach() for t in tensors_in(call.again()) if t.is_floating_point()]

    def square(self) -> bool:
        """Whether the output compares every sample with every other."""
        return any(list(t.shape).count(self.count) == 2 for t in self.all_outputs())

    def steady(self) -> bool:
        """Whether the same call gives the same result twice."""
        first, second = self.outputs(), self.outputs()
        return len(first) == len(second) and all(map(torch.equal, first, second))

    def effect(self, base: list[Tensor], row: int, rows: list[int]) -> float:
        """How much of the output of `row` changes when those samples are replaced."""
        changed = self.outputs(self.others.replacing(rows))
        gaps = [_row_distance(a, b, row, self.count) for a, b in zip(base, changed, strict=False)]
        return max(gaps, default=0.0)

    def place(self, row: int) -> TapePlace | None:
        """The first op whose result for this sample depends on the others."""

        def keep(tensor: Tensor) -> Tensor | None:
            dim = sample_dim(tensor, self.count) if tensor.is_floating_point() else None
            return None if dim is None else tensor.select(dim, row)

        models = {self.call.name: self.call.module}
        others = self.call.changed(self.others.replacing([n for n in range(self.count) if n != row]))
        self.reseed()
        _, before = taped(models, keep, self.call.again)
        self.reseed()
        _, after = taped(models, keep, others.again)
        return first_difference(before, after, 1e-6)


def _row_distance(one: Tensor, other: Tensor, row: int, count: int) -> float:
    """Relative to the size of the whole output."""
    if one.shape != other.shape:
        return 0.0
    dim = sample_dim(one, count)
    assert dim is not None
    gap, _ = distance(one.select(dim, row), other.select(dim, row))
    size = float(one.to(torch.float64).abs().nan_to_num().max())
    return gap / size if size > 0 else 0.0


def leak_of(looking: Looking, clock: Clock, rounding: float) -> Leak | None:
    """The first sample among the last, the first and a middle one that depends on others."""
    base, count = looking.outputs(), looking.count
    for row in (count - 1, 0, count // 2):
        clock.tick()
        rest = [n for n in range(count) if n != row]
        gap = looking.effect(base, row, rest)
        if gap <= rounding:
            continue
        own = max(looking.effect(base, row, [row]), rounding)
        alone = [1.0 if n == row else looking.effect(base, row, [n]) / own for n in range(count)]
        return Leak(looking.call, row, gap / own, looking.place(row), tuple(alone))
    return None


def meant(leak: Leak) -> str | None:
    """Why samples may be meant to depend on each other there."""
    path = leak.place.module if leak.place else None
    module = module_at(leak.call.module, path)
    if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is None:
        return f"{path or 'a layer'} normalises with the statistics of each batch"
    names = (
        f"{leak.place.module if leak.place else ''} {type(module).__name__} {type(leak.call.module).__name__}"
    )
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
