"""Samples and their labels, where each sample has exactly one label or row of numbers.

The data experiments give the features of the samples and their labels to cheap learners.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clew.labs.experiments.tools.loss_bounds import zeros_and_ones
from clew.labs.experiments.tools.reference_learners import Learner, features, learners
from clew.labs.snapshot.sample_pool import pool, random_order
from clew.labs.snapshot.step_batch import BOTH, INPUT, TARGET, StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock

CLASSES, NUMBERS, TAGS = "classes", "numbers", "tags"
MOST_CLASSES = 200
MOST = 800  # samples for the learners: their cost grows with the cube
PAIR_HINT = "clew.examine(model, loss_fn, (inputs, targets))"
_OF_NUMBERS = frozenset(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "poisson_nll_loss"))


@dataclass(frozen=True)
class SampleLabels:
    """`values` is (samples,) of class numbers, or (samples, columns) of numbers or of tags, 0 or 1."""

    kind: str
    values: Tensor
    target: Tensor  # as it is in the batch

    @property
    def columns(self) -> Tensor:
        """As numbers to predict: one column per class."""
        if self.kind != CLASSES:
            return self.values.double()
        return torch.nn.functional.one_hot(self.values, self.classes).double()

    @property
    def classes(self) -> int:
        return int(self.values.max()) + 1

    @property
    def counts(self) -> list[int]:
        """Samples of each class."""
        return torch.bincount(self.values, minlength=self.classes).tolist()


def labels_of(subject: Subject, batch: StepBatch) -> SampleLabels:
    """Raises CannotJudge where the targets are of another kind."""
    target = _target(batch)
    kinds = _losses(subject)
    rows = target.detach().cpu().reshape(len(target), -1)
    whole = not rows.is_floating_point()
    if target.dim() > 2 or (whole and rows.shape[1] > 1 and not zeros_and_ones(rows)):
        raise CannotJudge("the targets are per position, not per sample")
    if rows.shape[1] == 1:
        return _single(rows.flatten(), target, numeric=bool(kinds & _OF_NUMBERS))
    if zeros_and_ones(rows):
        if bool((rows.sum(1) == 1).all()):
            return SampleLabels(CLASSES, rows.argmax(1), target)
        return SampleLabels(TAGS, rows.float(), target)
    return SampleLabels(NUMBERS, _finite(rows.float()), target)


def _single(column: Tensor, target: Tensor, *, numeric: bool) -> SampleLabels:
    if not column.is_floating_point() and not numeric:
        if int(column.min()) < 0 or int(column.max()) >= MOST_CLASSES:
            raise CannotJudge("the targets are integers but not class indices")
        return SampleLabels(CLASSES, column.long(), target)
    if zeros_and_ones(column) and not numeric:
        return SampleLabels(CLASSES, column.long(), target)
    return SampleLabels(NUMBERS, _finite(column.float().unsqueeze(1)), target)


def _finite(values: Tensor) -> Tensor:
    if not torch.isfinite(values).all():
        raise CannotJudge("some targets are non-finite")
    return values


def _target(batch: StepBatch) -> Tensor:
    by_sample = [(t, role) for t, role, dim in batch.entries() if dim == 0]
    found = [t for t, role in by_sample if role == TARGET]
    if len(found) == 1:
        return found[0]
    if found:
        raise CannotJudge("there are several targets")
    if any(role == BOTH for _, role in by_sample):
        raise CannotJudge("the input is also the target: there are no labels")
    raise CannotJudge("no target per sample was found", PAIR_HINT)


def _losses(subject: Subject) -> set[str]:
    """The kinds of torch loss functions that the step calls; cached."""
    if "losses" not in subject.cache:
        subject.need_step()
        with subject.snapshot() as snapshot:
            seen = snapshot.observe(subject.batch())
        subject.cache["losses"] = {call.kind for call in seen.calls}
    kinds: set[str] = subject.cache["losses"]
    return kinds


def inputs_of(batch: StepBatch) -> list[Tensor]:
    """The models' inputs, sample by sample."""
    found = [t for t, role, dim in batch.entries() if role in (INPUT, BOTH) and dim == 0]
    if not found:
        raise CannotJudge("no input per sample was found", PAIR_HINT)
    return found


@dataclass(frozen=True)
class LabelledSamples:
    """Samples for a cheap learner."""

    batch: StepBatch
    labels: SampleLabels
    learners: list[Learner]


def labelled_samples(subject: Subject, clock: Clock, least: int) -> LabelledSamples:
    """Raises CannotJudge if there are fewer samples than `least`, or if they have no labels."""
    if "labelled_samples" not in subject.cache:
        subject.cache["labelled_samples"] = _made(subject, clock)
    made: LabelledSamples = subject.cache["labelled_samples"]
    if made.batch.size < least:
        raise CannotJudge(
            f"only {made.batch.size} samples are available; at least {least} are needed",
            "train from a DataLoader over a map-style dataset, so that more can be drawn",
        )
    return made


def _made(subject: Subject, clock: Clock) -> LabelledSamples:
    batch = pool(subject, clock).batch
    if batch.size > MOST:
        batch = batch.rows(random_order(batch.size, 1)[:MOST])
    labels = labels_of(subject, batch)
    if bool((labels.values == labels.values[:1]).all()):
        raise CannotJudge("all samples have the same target")
    clock.tick()
    return LabelledSamples(batch, labels, learners(features(inputs_of(batch))))


def relabelled(batch: StepBatch, order: Tensor) -> StepBatch:
    """The same inputs with the targets of other samples."""
    return batch.map_tensors(
        lambda t, role, dim: t[order.to(t.device)] if role == TARGET and dim is not None else t
    )


def split(batch: StepBatch, share: float, seed: int = 0) -> tuple[StepBatch, StepBatch]:
    """Samples to train on, and this share of them held out."""
    order = random_order(batch.size, seed)
    out = max(1, round(share * batch.size))
    return batch.rows(order[out:]), batch.rows(order[:out])


def chance(labels: SampleLabels) -> float:
    """The share of the most frequent class; 0 for other kinds."""
    return max(labels.counts) / len(labels.values) if labels.kind == CLASSES else 0.0
