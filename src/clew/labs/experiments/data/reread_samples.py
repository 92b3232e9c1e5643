"""Does a sample stay what it is? Every index is read several times under the same random numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clew.labs.experiments.base import CannotJudge, Clock, Experiment, Plot, Result
from clew.labs.snapshot.dataset_copy import DEPTH, Source, reading, source, written_at
from clew.labs.snapshot.sample_fields import column, parts
from clew.labs.snapshot.subject import Subject


@dataclass(frozen=True)
class DatasetMutates(Experiment):
    name = "dataset-mutates"
    question = "does a sample stay the same when it is read again?"
    rank = 4

    samples: int = 16  # read again and again
    times: int = 4  # each

    def run(self, subject: Subject, clock: Clock) -> Result:
        origin = source(subject)
        order = torch.randperm(origin.length, generator=torch.Generator().manual_seed(5)).tolist()
        rounds, stored = self._rounds(origin, order[: self.samples], clock)
        changed = [_differs(rounds[0], later) for later in rounds[1:]]
        arrays = sorted({name for name, before in stored[0].items() if stored[-1].get(name) != before})
        fields = sorted({name for names in changed for name in names})
        if fields and not arrays:
            raise CannotJudge(
                "samples differ each time although the random numbers are the same: the dataset has its own "
                "random generator"
            )
        first = next((name for name in fields if name in rounds[0][0]), None)
        means = [_statistics(samples, first) for samples in rounds] if first else []
        data = {
            "dataset": type(subject.dataset).__name__,
            "samples": len(rounds[0]),
            "reads": self.times,
            "fields": fields,
            "arrays": arrays,
            "means": [m for m, _ in means],
            "deviations": [d for _, d in means],
            "line": written_at(getattr(type(subject.dataset), "__getitem__", None)) or list(subject.line),
        }
        course = [mean for mean, _ in means]
        line = Plot("mean of samples, read repeatedly", range(len(course)), course, "read", "mean")
        return Result(data, [line] if course else [])

    def _rounds(
        self, origin: Source, indices: list[int], clock: Clock
    ) -> tuple[list[list[dict[str, Tensor]]], list[dict[str, bytes]]]:
        """All samples once in every round, and the stored arrays before the first and after the last."""
        rounds: list[list[dict[str, Tensor]]] = []
        before = _stored(origin.dataset)
        with reading():
            for number in range(self.times):
                clock.tick(number / self.times)
                rounds.append([_sample(origin, index) for index in indices])
        if not rounds[0][0]:
            raise CannotJudge("the dataset's samples contain no numbers")
        return rounds, [before, _stored(origin.dataset)]


def _sample(origin: Source, index: int) -> dict[str, Tensor]:
    made = {name: column([value]) for name, value in parts(origin.item(index, seed=index)).items()}
    return {name: value for name, value in made.items() if value is not None}


def _differs(first: list[dict[str, Tensor]], later: list[dict[str, Tensor]]) -> set[str]:
    return {
        name
        for one, other in zip(first, later, strict=True)
        for name, value in one.items()
        if name not in other
        or value.shape != other[name].shape
        or not torch.equal(value.nan_to_num(), other[name].nan_to_num())
    }


def _statistics(samples: list[dict[str, Tensor]], name: str) -> tuple[float, float]:
    values = torch.cat([s[name].flatten() for s in samples if name in s])
    return float(values.mean()), float(values.std(correction=0))


def _stored(dataset: Any) -> dict[str, bytes]:
    """The arrays that a dataset holds, by name, as a sum of their bytes."""
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
