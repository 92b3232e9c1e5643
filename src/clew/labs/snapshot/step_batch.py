"""The batch of one training step: its tensors by role, to be cut, joined and replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from clew.measure.nested_tensors import map_tensors, tensors_in

INPUT = "input"  # goes into a model
TARGET = "target"  # goes into the loss
BOTH = "both"  # an autoencoder's
OTHER = "other"  # neither was seen


@dataclass(frozen=True)
class StepBatch:
    """The values that a step starts from, by name; `roles` and `dims` go with the tensors among them."""

    values: Mapping[str, Any]
    roles: tuple[str, ...]  # of the tensors, in the order of `tensors()`
    dims: tuple[int | None, ...]  # batch dimension of each tensor; None: it has none
    size: int  # samples
    indices: tuple[int, ...] | None = None  # indices of the samples in the dataset, where known

    @classmethod
    def of(cls, values: Mapping[str, Any], roles: Mapping[int, str], indices: Any = None) -> StepBatch:
        """`roles` is keyed by tensor id. The batch dimension is the first dimension of the inputs."""
        found = tensors_in(dict(values))
        kinds = tuple(roles.get(id(t), OTHER) for t in found)
        fed = [t for t, role in zip(found, kinds, strict=True) if role in (INPUT, BOTH) and t.dim()]
        size = int(fed[0].shape[0]) if fed else max((int(t.shape[0]) for t in found if t.dim()), default=0)
        dims = tuple(0 if t.dim() and t.shape[0] == size else None for t in found)
        return cls(values, kinds, dims, size, tuple(indices) if indices is not None else None)

    def tensors(self, *roles: str) -> list[Tensor]:
        """The tensors of these roles; of all roles if none are given."""
        found = tensors_in(dict(self.values))
        return [t for t, role in zip(found, self.roles, strict=True) if not roles or role in roles]

    def entries(self) -> list[tuple[Tensor, str, int | None]]:
        """All tensors, each with its role and batch dimension."""
        return list(zip(self.tensors(), self.roles, self.dims, strict=True))

    @property
    def inputs(self) -> list[Tensor]:
        return self.tensors(INPUT, BOTH)

    @property
    def targets(self) -> list[Tensor]:
        return self.tensors(TARGET, BOTH)

    def map(self, roles: Iterable[str], change: Callable[[Tensor], Tensor]) -> StepBatch:
        """The batch with the tensors of these roles replaced."""
        wanted = set(roles)
        return self.map_tensors(lambda t, role, _: change(t) if role in wanted else t)

    def rows(self, which: Tensor | Sequence[int]) -> StepBatch:
        """Only these samples, in this order."""
        index = torch.as_tensor(which, dtype=torch.long)
        cut = self.map_tensors(
            lambda t, _, dim: t if dim is None else t.index_select(dim, index.to(t.device))
        )
        kept = None if self.indices is None else tuple(self.indices[int(i)] for i in index)
        return replace(cut, size=len(index), indices=kept)

    def first(self, most: int) -> StepBatch:
        """The first samples, at most this many."""
        return self if self.size <= most else self.rows(range(most))

    def map_tensors(self, change: Callable[[Tensor, str, int | None], Tensor]) -> StepBatch:
        """The batch with each tensor replaced; `change` gets it with its role and batch dimension."""
        facts = iter(zip(self.roles, self.dims, strict=True))
        values = map_tensors(dict(self.values), lambda tensor: change(tensor, *next(facts)))
        return replace(self, values=values)


def joined(batches: Sequence[StepBatch]) -> StepBatch:
    """The samples of several batches as one; values that are not per sample come from the first batch."""
    first = batches[0]
    if len(batches) == 1:
        return first
    columns = [b.tensors() for b in batches]
    merged = iter(
        first_tensor if dim is None else torch.cat([column[n] for column in columns], dim)
        for n, (first_tensor, dim) in enumerate(zip(columns[0], first.dims, strict=True))
    )
    whole = first.map_tensors(lambda *_: next(merged))
    known = all(b.indices is not None for b in batches)
    indices = tuple(i for b in batches for i in b.indices or ()) if known else None
    return replace(whole, size=sum(b.size for b in batches), indices=indices)
