"""Does augmentation leave anything to learn? Short trainings with the random transforms on and off."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.labelled_samples import inputs_of
from clew.labs.experiments.tools.reference_learners import features
from clew.labs.experiments.tools.short_training import on_finite_steps
from clew.labs.snapshot.dataset_copy import DatasetSource, column, owned, reading, same_numbers, source
from clew.labs.snapshot.dataset_stages import SWITCH, TRANSFORM, DatasetStage, stages_of, switches_of
from clew.labs.snapshot.sample_exhibits import exhibits
from clew.labs.snapshot.sample_pool import Form, captured, cut, form_of, joined_raw, random_order
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.measure.rng import seed_all
from clew.records.facts.data_experiment_facts import AugmentationComparison, ExcessiveAugmentationFact
from clew.records.facts.experiment_facts import SourceLine

SEEDS = (11, 12, 13)  # under which a transform must differ from itself to be random


@dataclass(frozen=True)
class AugmentationOff(Experiment):
    name = "excessive-augmentation"
    question = "does augmentation leave enough to learn?"
    rank = 48

    least: int = 64  # samples in the dataset
    most: int = 320  # samples drawn, a quarter of them held out
    versions: int = 4  # of every sample, augmented
    steps: int = 50  # of each training
    seeds: int = 3
    seconds: float = 8.0  # for all trainings
    harmless: float = 0.6  # remaining share of the progress at which no further seed is needed

    def run(self, subject: Subject, clock: Clock) -> Result:
        origin = source(subject)
        order = random_order(origin.length, 2).tolist()
        with reading():
            if not is_random(origin, order[:2]):
                return Result(ExcessiveAugmentationFact(line=SourceLine(*subject.line)))
            if origin.length < self.least:
                raise CannotJudge(
                    f"the dataset has {origin.length} samples; the experiment needs {self.least}"
                )
            plain_origin, names = without_random_transforms(origin, order[:2])
            if not names:
                raise CannotJudge(
                    "the samples are random, but no transform that can be switched off was found",
                    "keep random transforms in an attribute of the dataset: self.transform",
                )
            plain, augmented = self._drawn(subject, origin, plain_origin, order[: self.most], clock)
        trials = self._trials(subject, plain, augmented, clock)
        found = ExcessiveAugmentationFact(
            random=True,
            transforms=tuple(names),
            distance=_distance(plain, augmented[0]),
            samples=plain.size,
            trials=tuple(_summed(off, on) for off, on in trials),
            line=SourceLine(*subject.line),
        )
        shown = [*exhibits(plain, [0, 1], subject, ["as it is"] * 2)]
        shown += exhibits(augmented[0], [0, 1], subject, ["augmented"] * 2)
        off, on = trials[0]
        lines = [
            Plot.of_losses(f"training loss {words}", arm.losses)
            for words, arm in (("with augmentation", on), ("without", off))
        ]
        return Result(found, lines, shown)

    def _drawn(
        self, subject: Subject, origin: DatasetSource, plain: DatasetSource, order: list[int], clock: Clock
    ) -> tuple[StepBatch, list[StepBatch]]:
        """The same samples without augmentation, and augmented several times."""
        form: Form | None = None
        made: list[StepBatch] = []
        for version in range(self.versions):
            leaves, shape = _read(origin, order, version, clock)
            form = form or form_of(captured(subject).batch, leaves, shape, whole=False)
            made.append(form.filled(leaves, order))
        assert form is not None
        leaves, _ = _read(plain, order, 0, clock)
        return form.filled(leaves, order), made

    def _trials(
        self, subject: Subject, plain: StepBatch, augmented: list[StepBatch], clock: Clock
    ) -> list[tuple[_Arm, _Arm]]:
        """For each seed a training without augmentation and one with it."""
        out = list(range(plain.size // 4))
        into = list(range(plain.size // 4, plain.size))
        held, size = plain.rows(out), min(subject.batch().size, len(into))
        parts = [plain.rows(into)], [a.rows(into) for a in augmented]
        # This is for the first training; the others run as many steps.
        steps, seconds = self.steps, min(self.seconds, clock.left / 2) / (2 * self.seeds)
        trials = []
        for seed in range(self.seeds):
            arms = []
            for versions in parts:
                batches = [b for version in versions for b in cut(version, size, seed)]
                with subject.snapshot(seed=seed) as snapshot:
                    start = snapshot.loss_value(held)
                    losses = snapshot.train(batches, steps, on_step=on_finite_steps(clock, seconds))
                    arms.append(_Arm(losses, start, snapshot.loss_value(held)))
                steps, seconds = len(losses), math.inf
            off, on = arms
            trials.append((off, on))
            gain = on.start - off.held
            if gain > 0 and on.start - on.held > self.harmless * gain:
                break
        return trials


@dataclass(frozen=True)
class _Arm:
    """A training: its losses, and those on the held-out samples before and after it."""

    losses: list[float]
    start: float
    held: float

    @property
    def end(self) -> float:
        return fmean(self.losses[-max(1, len(self.losses) // 5) :])


def _summed(off: _Arm, on: _Arm) -> AugmentationComparison:
    return AugmentationComparison(on.start, off.held, off.end, on.held, on.end, len(on.losses))


def _read(origin: DatasetSource, order: Sequence[int], version: int, clock: Clock) -> tuple[list[Any], Any]:
    raws = []
    for start in range(0, len(order), origin.batch_size):
        clock.tick()
        raws.append(origin.batch(order[start : start + origin.batch_size], seed=10_000 * version + start))
    return joined_raw(raws, len(order))


def _distance(plain: StepBatch, augmented: StepBatch) -> float:
    """How far samples are moved, as a share of the distance between different samples."""
    both = features([torch.cat([a, b]) for a, b in zip(inputs_of(plain), inputs_of(augmented), strict=True)])
    one, other = both[: plain.size], both[plain.size :]
    return _apart(one, other) / max(_apart(one, one.roll(1, 0)), 1e-12)


def _apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).pow(2).sum(1).mean().sqrt())


def is_random(origin: DatasetSource, indices: list[int]) -> bool:
    """Whether reading the same sample with another random seed gives another result."""
    return any(
        not _equal(origin.item(i, SEEDS[0]), origin.item(i, seed)) for i in indices for seed in SEEDS[1:]
    )


def without_random_transforms(origin: DatasetSource, indices: list[int]) -> tuple[DatasetSource, list[str]]:
    """The same source without the random transforms that can be removed, and their names."""
    plain = replace(origin, dataset=copy.deepcopy(origin.dataset))
    left_out: list[str] = []
    for stage in [*switches_of(plain.dataset), *stages_of(plain.dataset, None)]:
        if stage.kind == TRANSFORM and not _is_random_transform(stage, plain, indices[0]):
            continue
        if stage.kind not in (TRANSFORM, SWITCH) or stage.put is None:
            continue
        before = plain.item(indices[0], SEEDS[0])
        stage.put(False if stage.kind == SWITCH else _Same())
        if _same_form(before, plain, indices[0]):
            left_out.append(stage.name)
        else:
            stage.put(stage.value)
    return plain, left_out


class _Same:
    """A transform that does nothing."""

    def __call__(self, *values: Any) -> Any:
        return values[0] if len(values) == 1 else values


class _Listening:
    """A transform that records its input."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.given: tuple[Any, ...] | None = None

    def __call__(self, *values: Any) -> Any:
        self.given = owned(values)
        return self._inner(*values)


def _is_random_transform(stage: DatasetStage, plain: DatasetSource, index: int) -> bool:
    """Whether the same input gives another output with another random seed."""
    assert stage.put is not None
    listening = _Listening(stage.value)
    stage.put(listening)
    try:
        plain.item(index, SEEDS[0])
    finally:
        stage.put(stage.value)
    if listening.given is None:
        return False
    results = []
    for seed in SEEDS:
        seed_all(seed)
        results.append(owned(stage.value(*copy.deepcopy(listening.given))))
    return any(not _equal(results[0], other) for other in results[1:])


def _same_form(before: Any, plain: DatasetSource, index: int) -> bool:
    try:
        after = plain.item(index, SEEDS[0])
    except Exception:  # noqa: BLE001 - what follows in the user's code can't do without the transform
        return False
    one, other = tree_flatten(before), tree_flatten(after)
    return one[1] == other[1] and all(_kind(a) == _kind(b) for a, b in zip(one[0], other[0], strict=True))


def _kind(leaf: Any) -> Any:
    size = getattr(leaf, "size", None)  # of a PIL image; a tensor has a method of that name
    shape = getattr(leaf, "shape", None if callable(size) else size)
    return type(leaf), shape, getattr(leaf, "dtype", None)


def _equal(a: Any, b: Any) -> bool:
    one, other = tree_flatten(a), tree_flatten(b)
    return one[1] == other[1] and all(_same_leaf(x, y) for x, y in zip(one[0], other[0], strict=True))


def _same_leaf(a: Any, b: Any) -> bool:
    one, other = column([a]), column([b])
    if one is None or other is None:
        pixels = getattr(a, "tobytes", None)  # a PIL image
        return bool(pixels() == b.tobytes()) if callable(pixels) else type(a) is type(b)
    return same_numbers(one, other)
