"""Does a sample stay the same? Reads every index several times with the same random seed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.snapshot.dataset_copy import (
    DatasetSource,
    column,
    reading,
    same_numbers,
    source,
    source_line,
    stored_arrays,
)
from clew.labs.snapshot.sample_fields import sample_fields
from clew.labs.snapshot.sample_pool import random_order
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.records.facts.data_experiment_facts import DatasetMutatesFact
from clew.records.facts.experiment_facts import SourceLine


@dataclass(frozen=True)
class RereadSamples(Experiment):
    name = "dataset-mutates"
    question = "does a sample stay the same when it is read again?"
    rank = 4

    samples: int = 16  # read again and again
    times: int = 4  # each

    def run(self, subject: Subject, clock: Clock) -> Result:
        origin = source(subject)
        order = random_order(origin.length, 5).tolist()
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
        statistics = [_statistics(samples, first) for samples in rounds] if first else []
        means, deviations = zip(*statistics, strict=True) if statistics else ((), ())
        found = DatasetMutatesFact(
            dataset=type(subject.dataset).__name__,
            samples=len(rounds[0]),
            reads=self.times,
            fields=tuple(fields),
            arrays=tuple(arrays),
            means=means,
            deviations=deviations,
            line=source_line(getattr(type(subject.dataset), "__getitem__", None))
            or SourceLine(*subject.line),
        )
        line = Plot("mean of samples, read repeatedly", range(len(means)), means, "read", "mean")
        return Result(found, [line] if means else [])

    def _rounds(
        self, origin: DatasetSource, indices: list[int], clock: Clock
    ) -> tuple[list[list[dict[str, Tensor]]], list[dict[str, bytes]]]:
        """Every sample once per round, and the stored arrays before the first round and after the last."""
        rounds: list[list[dict[str, Tensor]]] = []
        before = stored_arrays(origin.dataset)
        with reading():
            for number in range(self.times):
                clock.tick(number / self.times)
                rounds.append([_sample(origin, index) for index in indices])
        if not rounds[0][0]:
            raise CannotJudge("the dataset's samples contain no numbers")
        return rounds, [before, stored_arrays(origin.dataset)]


def _sample(origin: DatasetSource, index: int) -> dict[str, Tensor]:
    fields = sample_fields(origin.item(index, seed=index), rows=False, most=None)
    made = {name: column([value]) for name, value in fields.items()}
    return {name: value for name, value in made.items() if value is not None}


def _differs(first: list[dict[str, Tensor]], later: list[dict[str, Tensor]]) -> set[str]:
    return {
        name
        for one, other in zip(first, later, strict=True)
        for name, value in one.items()
        if name not in other or not same_numbers(value, other[name])
    }


def _statistics(samples: list[dict[str, Tensor]], name: str) -> tuple[float, float]:
    values = torch.cat([s[name].flatten() for s in samples if name in s])
    return float(values.mean()), float(values.std(correction=0))
