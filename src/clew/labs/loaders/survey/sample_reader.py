"""Whether a dataset returns the same sample every time: yes, with random changes, or changed by reading.

Random augmentation makes two readings of one sample differ, and copies of one sample too. Without the
transforms, or under the same random numbers for every sample, copies stay copies and can be found.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from clew.labs.loaders.field_values import Leaf, split_fields
from clew.labs.loaders.readable_loader import ReadableLoader
from clew.labs.loaders.survey.content_hash import hash_content
from clew.labs.snapshot.dataset_copy import stored_arrays
from clew.labs.snapshot.dataset_stages import generators_in
from clew.measure.rng import generator_state, seed_all, set_generator_state
from clew.records.dataset_survey import Mutation

PROBES = 6  # samples that are read several times
SEED = 20  # of the readings that all have the same random numbers
SET_ASIDE = ("transform", "transforms", "augment", "augmentation", "augmentations", "aug", "tfm", "noise")
STEADY, SEEDED, UNSEEDED = "", "seeded", "unseeded"
PLAIN, BARE, SAME = "plain", "bare", "same"  # as they are; without transforms; with the same random numbers


@dataclass(frozen=True)
class Reader:
    """Reads samples for statistics, and again for comparison where that is needed."""

    readable: ReadableLoader
    random: str  # STEADY, SEEDED or UNSEEDED
    compare: Callable[[int], Any] | None  # reads a sample for comparison; None: the same reading is used
    reason: str = ""  # why samples can't be compared
    mutation: Mutation | None = None
    how: str = PLAIN  # how samples are read for comparison
    probes: tuple[int, ...] = ()

    def read(self, index: int) -> dict[str, Leaf]:
        return split_fields(self.readable.sample(index, seed=index))

    def without_transforms(self) -> Reader:
        """The same, but compares the input of the transforms: needed if another split does."""
        if self.how == BARE or self.reason:
            return self
        bare = _bare_reading(self.readable.parts().dataset, self.probes)
        return self if bare is None else replace(self, compare=bare, how=BARE)

    def is_comparable(self, other: Reader) -> bool:
        """Whether a sample that is in both would be equal in both."""
        if self.how == other.how:
            return True
        plain = next((r for r in (self, other) if r.how == PLAIN), None)
        return plain is not None and SAME not in (self.how, other.how) and not plain.has_transforms

    @property
    def has_transforms(self) -> bool:
        return any(True for _ in _without_transforms(self.readable.parts().dataset))

    def read_for_comparing(self, index: int) -> dict[str, Leaf] | None:
        """None: the result of `read` is compared."""
        return split_fields(self.compare(index)) if self.compare is not None else None


def probe(readable: ReadableLoader, indices: Sequence[int]) -> Reader:
    """Probe a few samples. Must be called within `readable.reading()`."""
    dataset = readable.parts().dataset
    steadily = _steadily(readable, dataset)
    before = stored_arrays(dataset)
    first = _contents(steadily, indices)
    other = _contents(lambda index: readable.sample(index, seed=SEED + 1 + index), indices)
    again = _contents(steadily, indices)
    probes = tuple(indices)
    if first == again == other:
        return Reader(readable, STEADY, None, probes=probes)
    if first == again:
        bare = _bare_reading(dataset, indices)
        how = SAME if bare is None else BARE
        return Reader(readable, SEEDED, bare or steadily, how=how, probes=probes)
    changed = tuple(
        name for name, digest in stored_arrays(dataset).items() if before.get(name, digest) != digest
    )
    if changed:
        why = "reading a sample changes it"
        return Reader(readable, STEADY, None, why, _course(steadily, indices, changed))
    bare = _bare_reading(dataset, indices)
    if bare is not None:
        return Reader(readable, UNSEEDED, bare, how=BARE, probes=probes)
    return Reader(readable, UNSEEDED, None, "a sample has different values each time it is read")


def _steadily(readable: ReadableLoader, dataset: Any) -> Callable[[int], Any]:
    """Reads with the same random seed every time, including the dataset's own generators."""
    states = [(g, copy.deepcopy(generator_state(g))) for g in generators_in(dataset)]

    def read(index: int) -> Any:
        for generator, state in states:
            set_generator_state(generator, copy.deepcopy(state))
        return readable.sample(index, seed=SEED)

    return read


def _contents(read: Callable[[int], Any], indices: Sequence[int]) -> list[bytes | str]:
    """The content of each sample; the error for one that can't be read."""
    found: list[bytes | str] = []
    for index in indices:
        try:
            found.append(hash_content(split_fields(read(index)).values()))
        except Exception as error:  # noqa: BLE001 - the dataset's own; counted in the pass itself
            found.append(type(error).__name__)
    return found


def _course(read: Callable[[int], Any], indices: Sequence[int], arrays: tuple[str, ...]) -> Mutation:
    """Mean and spread of the samples as they are read repeatedly."""
    means, deviations = [], []
    for _ in range(3):
        parts = [
            leaf.array.astype(np.float64).reshape(-1)
            for index in indices
            for leaf in list(split_fields(read(index)).values())[:1]
            if leaf.array is not None
        ]
        values = np.concatenate(parts) if parts else np.zeros(1)
        finite = values[np.isfinite(values)]
        means.append(float(finite.mean()) if len(finite) else 0.0)
        deviations.append(float(finite.std()) if len(finite) else 0.0)
    return Mutation(arrays, tuple(means), tuple(deviations))


# -- the dataset without its transforms --


def _bare_reading(dataset: Any, indices: Sequence[int]) -> Callable[[int], Any] | None:
    """Reads without transforms, if that works and gives the same numbers every time."""
    for bare in _without_transforms(dataset):
        first = _contents(bare, indices)
        same = first == _contents(partial(bare, seed=SEED + 1), indices)
        if same and any(isinstance(c, bytes) for c in first) and _gives_numbers(bare, indices):
            return bare
    return None


def _gives_numbers(read: Callable[[int], Any], indices: Sequence[int]) -> bool:
    """Not a file name that a transform would have opened."""
    for index in indices:
        with contextlib.suppress(Exception):
            leaves = list(split_fields(read(index)).values())
            return bool(leaves) and leaves[0].array is not None
    return False


def _without_transforms(dataset: Any) -> Iterator[Callable[..., Any]]:
    """The same dataset with its transforms removed, in each way that may work."""
    for instead in (None, _same):
        bare = _bare(dataset, instead)
        if bare is not None:
            yield partial(_seeded_item, bare)


def _seeded_item(dataset: Any, index: int, seed: int = SEED) -> Any:
    seed_all(seed)
    return dataset[index]


def _same(*given: Any) -> Any:
    return given[0] if len(given) == 1 else given


def _bare(dataset: Any, instead: Any, depth: int = 4) -> Any | None:
    """A shallow copy without transforms at any level; None if there are none."""
    if not isinstance(getattr(dataset, "__dict__", None), dict) or not depth:
        return None
    removed = [n for n in SET_ASIDE if vars(dataset).get(n) not in (None, False)]
    inner = _bare(vars(dataset).get("dataset"), instead, depth - 1)
    if not removed and inner is None:
        return None
    with contextlib.suppress(Exception):
        bare = copy.copy(dataset)
        for name in removed:
            vars(bare)[name] = instead if callable(vars(bare)[name]) else False
        if inner is not None:
            vars(bare)["dataset"] = inner
        return bare
    return None
