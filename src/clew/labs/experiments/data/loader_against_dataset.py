"""Does the loader deliver what the dataset returns? Reads the same indices both ways, on two copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from clew.labs.experiments.base import Experiment, Result
from clew.labs.snapshot.dataset_copy import DatasetSource, owned, reading, source, written_at
from clew.labs.snapshot.sample_fields import MADE, Field, column, parts, relation
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock


@dataclass(frozen=True)
class LoaderAgainstDataset(Experiment):
    name = "loader-corrupts-data"
    question = "does the loader return the dataset's data?"
    rank = 6

    batches: int = 4  # compared
    most: int = 64  # samples in each

    def run(self, subject: Subject, clock: Clock) -> Result:
        one, other = source(subject), source(subject)
        found: dict[str, list[Field]] = {}
        compared = 0
        with reading():
            for number, indices in enumerate(self._indices(one)):
                clock.tick(number / self.batches)
                items, batch = _pair(one, other, indices, seed=number)
                fields = _compared(items, batch)
                compared += len(indices)
                for field in fields:
                    found.setdefault(field.name, []).append(field)
        if not found:
            raise CannotJudge(
                "the loader's batches can't be compared with the dataset's samples, which differ in shape or "
                "are rearranged"
            )
        data = {
            "samples": compared,
            "fields": [_summed(name, fields) for name, fields in found.items()],
            "collate": getattr(subject.loader.collate_fn, "__qualname__", "collate_fn"),
            "dataset": type(subject.dataset).__name__,
            "line": written_at(subject.loader.collate_fn)
            or written_at(getattr(type(subject.dataset), "__getitem__", None))
            or list(subject.line),
        }
        return Result(data)

    def _indices(self, origin: DatasetSource) -> list[list[int]]:
        size = min(origin.batch_size, self.most)
        order = torch.randperm(origin.length, generator=torch.Generator().manual_seed(3)).tolist()
        made = [order[start : start + size] for start in range(0, len(order), size)]
        full = [indices for indices in made if len(indices) >= min(4, size)]
        if not full:
            raise CannotJudge(f"the dataset has {origin.length} samples; the experiment needs 4")
        return full[: self.batches]


def _pair(one: DatasetSource, other: DatasetSource, indices: list[int], seed: int) -> tuple[list[Any], Any]:
    """Samples read one by one, each copied immediately, and the loader's batch of them."""
    items = [
        one.item(index, seed) if n == 0 else owned(one.dataset[index]) for n, index in enumerate(indices)
    ]
    return items, other.batch(indices, seed)


def _compared(items: list[Any], batch: Any) -> list[Field]:
    """The fields that exist under the same key or position before and after."""
    samples = [parts(item) for item in items]
    delivered = parts(batch)
    if not isinstance(items[0], (Mapping, list, tuple)) and len(delivered) == 1:
        delivered = {"sample": next(iter(delivered.values()))}
    columns: dict[str, Tensor] = {}
    for name in samples[0]:
        made = column([s.get(name) for s in samples])
        if made is not None:
            columns[name] = made
    named = isinstance(items[0], Mapping)
    others = columns if named and isinstance(batch, Mapping) else {}
    if not named and len(delivered) != len(samples[0]):
        return []
    return [
        relation(name, made, delivered[name], others) for name, made in columns.items() if name in delivered
    ]


def _summed(name: str, fields: list[Field]) -> dict[str, Any]:
    """The most frequent relation, among those that are more than a change of values."""
    counts = Counter(f.relation for f in fields)
    worst = max(fields, key=lambda f: (counts[f.relation], f.relation != MADE))
    return {
        "name": name,
        "relation": worst.relation,
        "batches": counts[worst.relation],
        "of": len(fields),
        "detail": worst.detail,
    }
