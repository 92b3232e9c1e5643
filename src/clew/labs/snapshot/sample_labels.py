"""The labels of samples, where each sample has exactly one label or row of numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clew.labs.snapshot.step_batch import BOTH, INPUT, TARGET, StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge

CLASSES, NUMBERS, TAGS = "classes", "numbers", "tags"
MOST_CLASSES = 200
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
    if target.dim() > 2 or (whole and rows.shape[1] > 1 and not _zeros_and_ones(rows)):
        raise CannotJudge("the targets are per position, not per sample")
    if rows.shape[1] == 1:
        return _single(rows.flatten(), target, numeric=bool(kinds & _OF_NUMBERS))
    if _zeros_and_ones(rows):
        if bool((rows.sum(1) == 1).all()):
            return SampleLabels(CLASSES, rows.argmax(1), target)
        return SampleLabels(TAGS, rows.float(), target)
    return SampleLabels(NUMBERS, _finite(rows.float()), target)


def _single(column: Tensor, target: Tensor, *, numeric: bool) -> SampleLabels:
    if not column.is_floating_point() and not numeric:
        if int(column.min()) < 0 or int(column.max()) >= MOST_CLASSES:
            raise CannotJudge("the targets are integers but not class indices")
        return SampleLabels(CLASSES, column.long(), target)
    if _zeros_and_ones(column) and not numeric:
        return SampleLabels(CLASSES, column.long(), target)
    return SampleLabels(NUMBERS, _finite(column.float().unsqueeze(1)), target)


def _finite(values: Tensor) -> Tensor:
    if not torch.isfinite(values).all():
        raise CannotJudge("some targets are non-finite")
    return values


def _zeros_and_ones(values: Tensor) -> bool:
    return bool(((values == 0) | (values == 1)).all())


def _target(batch: StepBatch) -> Tensor:
    by_sample = [
        (t, role) for t, role, dim in zip(batch.tensors(), batch.roles, batch.dims, strict=True) if dim == 0
    ]
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
    found = [
        t
        for t, role, dim in zip(batch.tensors(), batch.roles, batch.dims, strict=True)
        if role in (INPUT, BOTH) and dim == 0
    ]
    if not found:
        raise CannotJudge("no input per sample was found", PAIR_HINT)
    return found
