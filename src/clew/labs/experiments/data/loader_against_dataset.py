"""Does the loader deliver what the dataset returns? Reads the same indices both ways, on two copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from clew.labs.experiments.base import Experiment, Result
from clew.labs.snapshot.dataset_copy import (
    DatasetSource,
    as_tensor,
    column,
    owned,
    reading,
    source,
    source_line,
)
from clew.labs.snapshot.sample_fields import is_container, sample_fields
from clew.labs.snapshot.sample_pool import random_order
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.records.facts.data_experiment_facts import DeliveredField, LoaderCorruptsDataFact
from clew.records.facts.experiment_facts import SourceLine

# How a field of a batch relates to the field that the dataset returned.
SAME = "same"  # except for dtype and shape
MADE = "made of it"  # other values: padded, scaled, encoded, random; not a fault in itself
LOST = "cut off"  # values lost in a cast
MOVED = "moved"  # the rows of the samples are in another order
REPEATED = "repeated"  # the rows of different samples are all equal
MIXED = "mixed"  # the values of the samples, but in the rows of others
SWAPPED = "swapped"  # the values of another field
MISSING = "missing"  # fewer rows than samples
ROUNDING = 1e-2  # of the largest value: the rounding of half precision


@dataclass(frozen=True)
class LoaderAgainstDataset(Experiment):
    name = "loader-corrupts-data"
    question = "does the loader return the dataset's data?"
    rank = 6

    batches: int = 4  # compared
    most: int = 64  # samples in each

    def run(self, subject: Subject, clock: Clock) -> Result:
        one, other = source(subject), source(subject)
        found: dict[str, list[DeliveredField]] = {}
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
        return Result(
            LoaderCorruptsDataFact(
                samples=compared,
                fields=tuple(map(_summed, found.values())),
                collate=getattr(subject.loader.collate_fn, "__qualname__", "collate_fn"),
                dataset=type(subject.dataset).__name__,
                line=source_line(subject.loader.collate_fn)
                or source_line(getattr(type(subject.dataset), "__getitem__", None))
                or SourceLine(*subject.line),
            )
        )

    def _indices(self, origin: DatasetSource) -> list[list[int]]:
        size = min(origin.batch_size, self.most)
        order = random_order(origin.length, 3).tolist()
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


def _compared(items: list[Any], batch: Any) -> list[DeliveredField]:
    """The fields that exist under the same key or position before and after."""
    samples = [_numbers(item) for item in items]
    delivered = _numbers(batch)
    if not is_container(items[0]) and len(delivered) == 1:
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


def _numbers(sample: Any) -> dict[str, Any]:
    """The fields, with every number of a list: collate creates a tensor for each."""
    return sample_fields(sample, rows=False, most=None)


def _summed(fields: list[DeliveredField]) -> DeliveredField:
    """The most frequent relation, among those that are more than a change of values."""
    counts = Counter(f.relation for f in fields)
    worst = max(fields, key=lambda f: (counts[f.relation], f.relation != MADE))
    return replace(worst, batches=counts[worst.relation], of=len(fields))


def relation(name: str, wanted: Tensor, delivered: Any, others: Mapping[str, Tensor]) -> DeliveredField:
    """How the column of one field changed; `others` are the columns of all fields."""
    found = as_tensor(delivered)
    if found is None or found.dim() == 0:
        return DeliveredField(name, MADE)
    if len(found) != len(wanted):
        return DeliveredField(name, MISSING if len(found) < len(wanted) else MADE, detail=f"{len(found)}")
    if found[0].numel() != wanted[0].numel():
        return _other_size(name, wanted, found)
    rows, given = wanted.reshape(len(wanted), -1), found.reshape(len(found), -1)
    if _near(rows, given):
        return DeliveredField(name, SAME)
    if _moved(rows, given):
        return DeliveredField(name, MOVED)
    for other, values in others.items():
        if other != name and values.shape == wanted.shape and _near(values.reshape(rows.shape), given):
            return DeliveredField(name, SWAPPED, detail=other)
    return _values(name, rows, given, delivered)


def _other_size(name: str, wanted: Tensor, found: Tensor) -> DeliveredField:
    alike = len(found) > 1 and bool((found == found[:1]).all()) and not bool((wanted == wanted[:1]).all())
    return DeliveredField(name, REPEATED if alike else MADE)


def _values(name: str, rows: Tensor, given: Tensor, delivered: Any) -> DeliveredField:
    if len(rows) > 1 and bool((given == given[:1]).all()) and not bool((rows == rows[:1]).all()):
        which = next((n for n, row in enumerate(rows) if _near(row, given[0])), None)
        if not _cut_off(rows, given):
            return DeliveredField(name, REPEATED, detail="" if which is None else str(which))
    if _cut_off(rows, given):
        return DeliveredField(name, LOST, detail=str(getattr(delivered, "dtype", "")).removeprefix("torch."))
    each = _near(rows.sort(1).values, given.sort(1).values)  # an image with its channels first
    if not each and _near(rows.flatten().sort().values, given.flatten().sort().values):
        return DeliveredField(name, MIXED)
    return DeliveredField(name, MADE)


def _near(a: Tensor, b: Tensor) -> bool:
    """Equal except for the rounding of a cast to lower precision."""
    if not bool((torch.isfinite(a) == torch.isfinite(b)).all()):
        return False
    ok = torch.isfinite(a)
    largest = float(a[ok].abs().max()) if bool(ok.any()) else 0.0
    return bool(((a[ok] - b[ok]).abs() <= ROUNDING * a[ok].abs() + 1e-3 * ROUNDING * largest).all())


def _moved(rows: Tensor, given: Tensor) -> bool:
    """All samples are present, in another order; for labels, each as often as before."""
    if rows.shape[1] == 1:
        return _near(rows.flatten().sort().values, given.flatten().sort().values)
    near = torch.cdist(given.nan_to_num(), rows.nan_to_num()).argmin(1)
    everyone = len(set(near.tolist())) == len(torch.unique(rows, dim=0))
    return everyone and _near(rows[near], given)


def _cut_off(rows: Tensor, given: Tensor) -> bool:
    """Whole numbers where there were fractions, or the remainder of large numbers in a small dtype."""
    whole = bool((given == given.round()).all())
    fractions = bool((rows != rows.round()).any())
    truncated = bool((rows.trunc() == given).all()) or bool((rows.round() == given).all())
    if not whole or (fractions and truncated):
        return whole
    # The remainder of a large or negative number in a small dtype; torch drops the fraction first.
    return any(bool((rows.trunc().remainder(m) == given.remainder(m)).all()) for m in (2**8, 2**16, 2**32))
