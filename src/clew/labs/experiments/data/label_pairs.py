"""Do labels belong to their inputs? Compares pairs from training with pairs from the dataset.

A sample that is collated alone can't get the label of another sample, so these pairs serve as the
reference.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from clew.labs.experiments.base import Experiment, Result
from clew.labs.experiments.tools.labelled_samples import CLASSES, inputs_of, labels_of
from clew.labs.experiments.tools.reference_learners import features, learners, scores
from clew.labs.snapshot.sample_exhibits import exhibits
from clew.labs.snapshot.sample_pool import captured, drawn_alone, pool, rows_as_bytes
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.records.facts.data_experiment_facts import LabelsMisalignedFact, LearnablePairs, MatchedSamples
from clew.records.facts.experiment_facts import SourceLine

MOST_SHOWN = 6
SHOWN_DIGITS = 4


@dataclass(frozen=True)
class LabelPairs(Experiment):
    name = "labels-misaligned"
    question = "do the labels belong to the inputs?"
    rank = 13

    most: int = 500  # samples read one by one
    least: int = 20  # samples that must be found again
    learned: int = 150  # samples for the learners
    permutations: int = 40  # of the labels

    def run(self, subject: Subject, clock: Clock) -> Result:
        labels_of(subject, captured(subject).batch)  # raises with the reason if there are none
        alone = drawn_alone(subject, clock, self.most)
        known = _by_input(alone, labels_of(subject, alone).target)
        seen = captured(subject).batch
        loader = pool(subject, clock)
        sides = {"training": _compared(known, subject, seen)}
        if loader.drawn:
            sides["loader"] = _compared(known, subject, loader.batch)
        clock.tick(0.7)
        found = LabelsMisalignedFact(
            samples=alone.size,
            sides={name: side.counts for name, side in sides.items()},
            learners=self._learners(subject, alone, seen, sides),
            line=SourceLine(*subject.line),
        )
        worst = max(sides.values(), key=lambda side: len(side.other))
        notes = [
            f"loaded as {row.given}, labelled {row.known} in the dataset" for row in worst.other[:MOST_SHOWN]
        ]
        batch = seen if worst is sides["training"] else loader.batch
        return Result(
            found, exhibits=exhibits(batch, [r.row for r in worst.other[:MOST_SHOWN]], subject, notes)
        )

    def _learners(
        self, subject: Subject, alone: StepBatch, seen: StepBatch, sides: dict[str, _Side]
    ) -> LearnablePairs | None:
        """Where training samples can't be matched to the dataset: can learners learn as much from them?"""
        if sides["training"].matched >= self.least:
            return None
        if min(alone.size, seen.size) < self.learned:
            if any(side.matched >= self.least for side in sides.values()):
                return None
            raise CannotJudge(
                "the training samples were not found in the dataset, and "
                f"{min(alone.size, seen.size)} are too few to compare what can be learned from them "
                f"({self.learned} are needed)"
            )
        return LearnablePairs(
            dataset=self._deviations(subject, alone),
            training=self._deviations(subject, seen),
            samples=(alone.size, seen.size),
        )

    def _deviations(self, subject: Subject, batch: StepBatch) -> float:
        columns = labels_of(subject, batch).columns
        fitted = learners(features(inputs_of(batch)))
        return max(s.deviations for s in scores(fitted, columns, self.permutations))


@dataclass(frozen=True)
class _Row:
    row: int
    given: str
    known: str


@dataclass(frozen=True)
class _Side:
    """The samples of one side that were matched to the dataset."""

    matched: int
    other: list[_Row]  # of these, those with another label
    consistent: float  # share that one fixed renaming of the labels explains

    @property
    def counts(self) -> MatchedSamples:
        return MatchedSamples(self.matched, len(self.other), self.consistent)


def _by_input(batch: StepBatch, target: Tensor) -> dict[bytes, bytes]:
    """The label of each input, without inputs that occur more than once."""
    keys, labels = _keys(batch), rows_as_bytes(target)
    often = Counter(keys)
    return {key: label for key, label in zip(keys, labels, strict=True) if often[key] == 1}


def _keys(batch: StepBatch) -> list[bytes]:
    """All inputs of each sample together."""
    columns = [rows_as_bytes(t) for t in inputs_of(batch)]
    return [b"".join(row) for row in zip(*columns, strict=True)]


def _compared(known: dict[bytes, bytes], subject: Subject, batch: StepBatch) -> _Side:
    labels = labels_of(subject, batch)
    pairs = [
        (n, label, known[key])
        for n, (key, label) in enumerate(zip(_keys(batch), rows_as_bytes(labels.target), strict=True))
        if key in known
    ]
    readable = _readable(labels.target, whole=labels.kind == CLASSES)
    other = [_Row(n, readable(label), readable(wanted)) for n, label, wanted in pairs if label != wanted]
    return _Side(len(pairs), other, _consistent([(label, wanted) for _, label, wanted in pairs]))


def _consistent(pairs: Sequence[tuple[bytes, bytes]]) -> float:
    """Labels that are only renamed (counted from zero, say) still belong to their inputs."""
    given: dict[bytes, Counter[bytes]] = defaultdict(Counter)
    for label, wanted in pairs:
        given[wanted][label] += 1
    again = sum(c.total() - 1 for c in given.values())  # a label that occurs once proves nothing
    return sum(max(c.values()) - 1 for c in given.values()) / again if again else 0.0


def _readable(target: Tensor, *, whole: bool) -> Any:
    kind = target.cpu().dtype if target.dtype not in (torch.float16, torch.bfloat16) else torch.float32

    def words(row: bytes) -> str:
        values = torch.frombuffer(bytearray(row), dtype=kind).tolist()
        if whole and len(values) > 1:
            return str(max(range(len(values)), key=values.__getitem__))
        return ", ".join(str(int(v)) if whole else f"{v:.4g}" for v in values[:SHOWN_DIGITS])

    return words
