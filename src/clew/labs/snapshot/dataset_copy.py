"""Reads a copy of a map-style dataset the way its loader does; the program's dataset is not touched.

Reading can change a dataset (a cache, a generator, an in-place transform), so nothing here
reads the user's object.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import IterableDataset
from torch.utils.data._utils.fetch import _MapDatasetFetcher

from clew.labs.snapshot.dataset_stages import written_at
from clew.labs.snapshot.snapshot import snapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, OutOfTime
from clew.measure.nested_tensors import map_tensors
from clew.measure.rng import seed_all
from clew.records.facts.experiment_facts import SourceLine

MOST_BYTES = 512 * 2**20  # of arrays copied with a dataset
DEPTH = 6  # of datasets inside datasets, and of their lists
LOADER_HINT = "train from a DataLoader over a map-style dataset"


@dataclass(frozen=True)
class DatasetSource:
    """A copy of a dataset, with the collate function of its loader."""

    dataset: Any
    collate: Any
    length: int
    batch_size: int

    def item(self, index: int, seed: int) -> Any:
        """One sample as the dataset returns it, with its own tensors and arrays."""
        seed_all(seed)
        return owned(self.dataset[index])

    def batch(self, indices: Sequence[int], seed: int) -> Any:
        """The loader's batch of these indices."""
        seed_all(seed)
        fetcher = _MapDatasetFetcher(self.dataset, True, self.collate, False)
        return fetcher.fetch(list(indices))


def source(subject: Subject) -> DatasetSource:
    """A fresh copy; raises CannotJudge if there is no dataset that can be read by index."""
    loader, dataset = subject.loader, subject.dataset
    if loader is None or dataset is None:
        raise CannotJudge(subject.reasons.get("loader", "no DataLoader was found"), LOADER_HINT)
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
        raise CannotJudge("the dataset can't be read by index", LOADER_HINT)
    if getattr(loader, "batch_sampler", None) is None:
        raise CannotJudge("the dataset creates its own batches")
    dataset, collate = copied((dataset, loader.collate_fn))
    try:
        length = len(dataset)
    except TypeError as error:
        raise CannotJudge("the length of the dataset is unknown") from error
    if length < 1:
        raise CannotJudge("the dataset is empty")
    size = getattr(loader, "batch_size", None) or (subject.batches[0].size if subject.batches else 16)
    return DatasetSource(dataset, collate, int(length), max(int(size), 1))


def copied(what: Any) -> Any:
    """A deep copy; memory-mapped files are shared."""
    memo: dict[int, Any] = {}
    if _bytes(what, memo, DEPTH, set()) > MOST_BYTES:
        raise CannotJudge("the dataset is too large to copy, and reading it might change it")
    try:
        return copy.deepcopy(what, memo)
    except Exception as error:  # a dataset may contain anything
        raise CannotJudge(
            f"the dataset can't be copied ({type(error).__name__}), and reading it might change it"
        ) from error


def _bytes(value: Any, memo: dict[int, Any], depth: int, seen: set[int]) -> int:
    if id(value) in seen or depth < 0:
        return 0
    seen.add(id(value))
    if isinstance(value, np.memmap):
        memo[id(value)] = value
        return 0
    if isinstance(value, (np.ndarray, Tensor)):
        return int(value.nbytes)
    if isinstance(value, dict):
        return sum(_bytes(v, memo, depth - 1, seen) for v in value.values())
    if isinstance(value, (list, tuple)):
        return _bytes_of_row(value, memo, depth, seen)
    inside = getattr(value, "__dict__", None)
    return _bytes(inside, memo, depth, seen) if isinstance(inside, dict) else 0


def _bytes_of_row(row: Sequence[Any], memo: dict[int, Any], depth: int, seen: set[int]) -> int:
    """For a long list, estimated from its first hundred items."""
    part = sum(_bytes(v, memo, depth - 1, seen) for v in row[:100])
    return part * max(1, len(row) // 100)


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Restore random generators, output and warnings afterwards; the dataset's errors are raised."""
    with snapshot():
        try:
            yield
        except (CannotJudge, OutOfTime):
            raise
        except Exception as error:
            raise CannotJudge(f"reading the dataset failed: {type(error).__name__}: {error}") from error


def source_line(function: Any) -> SourceLine | None:
    """Where the user's function is defined; None for functions of torch and other libraries."""
    place = written_at(function)
    return None if place[0] is None else SourceLine(*place)


def owned(value: Any) -> Any:
    """The same value with copies of all tensors and arrays: a dataset may reuse its memory."""
    return map_tensors(value, _own, kinds=(Tensor, np.ndarray))


def _own(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, Tensor) else leaf.copy()


def column(samples: Sequence[Any]) -> Tensor | None:
    """One field of all samples as a tensor; None if they can't be stacked."""
    tensors = [as_tensor(s) for s in samples]
    known = [t for t in tensors if t is not None]
    if len(known) != len(tensors) or len({t.shape for t in known}) != 1:
        return None
    return torch.stack(known)


def as_tensor(value: Any) -> Tensor | None:
    """The numbers of a field in double precision, on the CPU; None if it is not made of numbers."""
    if isinstance(value, Tensor):
        made = value.detach().cpu()
    elif isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "buif":
        made = torch.from_numpy(np.array(value))
    elif isinstance(value, (bool, int, float)):
        made = torch.tensor(value)
    else:
        return None
    return None if made.is_complex() or made.is_sparse else made.double()


def same_numbers(one: Tensor, other: Tensor) -> bool:
    """Whether two such tensors are equal; NaN equals NaN."""
    return one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num())


def stored_arrays(dataset: Any) -> dict[str, bytes]:
    """The arrays stored in a dataset, by name, each as a hash of its bytes."""
    return {name: _digest(array) for name, array in _arrays(dataset, "", DEPTH, set())}


def _arrays(value: Any, name: str, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if depth < 0 or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, (Tensor, np.ndarray)):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for n, part in enumerate(value):
            if isinstance(part, (Tensor, np.ndarray, list, tuple, dict)):
                yield from _arrays(part, f"{name}[{n}]", depth - 1, seen)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _arrays(part, f"{name}.{key}" if name else str(key), depth - 1, seen)
    elif isinstance(getattr(value, "__dict__", None), dict):
        yield from _arrays(vars(value), name, depth - 1, seen)


def _digest(array: Any) -> bytes:
    if isinstance(array, Tensor):
        plain = array.detach().cpu().contiguous()
        array = plain.view(torch.uint8).numpy() if plain.dim() else plain.reshape(1).view(torch.uint8).numpy()
    if array.dtype == object:
        return b""
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=8).digest()
