"""Samples with features and labels, in the form the data experiments need."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clew.labs.experiments.tools.reference_learners import Learner, features, learners
from clew.labs.snapshot.sample_labels import CLASSES, SampleLabels, inputs_of, labels_of
from clew.labs.snapshot.sample_pool import pool
from clew.labs.snapshot.step_batch import TARGET, StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock

MOST = 800  # samples for the learners: their cost grows with the cube


@dataclass(frozen=True)
class Material:
    """Samples for a cheap learner."""

    batch: StepBatch
    labels: SampleLabels
    features: Tensor
    learners: list[Learner]
    whole: bool  # they are the whole dataset


def material(subject: Subject, clock: Clock, least: int) -> Material:
    """Raises CannotJudge if there are fewer samples than `least`, or if they have no labels."""
    if "material" not in subject.cache:
        subject.cache["material"] = _made(subject, clock)
    made: Material = subject.cache["material"]
    if made.batch.size < least:
        raise CannotJudge(
            f"only {made.batch.size} samples are available; it takes {least}",
            "train from a DataLoader over a map-style dataset, so that more can be drawn",
        )
    return made


def _made(subject: Subject, clock: Clock) -> Material:
    drawn = pool(subject, clock)
    batch = drawn.batch
    if batch.size > MOST:
        order = torch.randperm(batch.size, generator=torch.Generator().manual_seed(1))
        batch = batch.rows(order[:MOST])
    labels = labels_of(subject, batch)
    if bool((labels.values == labels.values[:1]).all()):
        raise CannotJudge("all samples have the same target")
    clock.tick()
    data = features(inputs_of(batch))
    return Material(batch, labels, data, learners(data), drawn.whole)


def relabelled(batch: StepBatch, order: Tensor) -> StepBatch:
    """The same inputs with the targets of other samples."""
    return batch.map_tensors(
        lambda t, role, dim: t[order.to(t.device)] if role == TARGET and dim is not None else t
    )


def split(batch: StepBatch, share: float, seed: int = 0) -> tuple[StepBatch, StepBatch]:
    """Samples to train on, and this share of them held out."""
    order = torch.randperm(batch.size, generator=torch.Generator().manual_seed(seed))
    out = max(1, round(share * batch.size))
    return batch.rows(order[out:]), batch.rows(order[:out])


def chance(labels: SampleLabels) -> float:
    """The share of the most frequent class; 0 for other kinds."""
    return max(labels.counts) / len(labels.values) if labels.kind == CLASSES else 0.0
