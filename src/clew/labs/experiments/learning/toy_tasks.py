"""Which is the first in a series of harder and harder toy tasks that the model can't learn?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.loss_bounds import LossRange
from clew.labs.experiments.tools.short_training import TrainingSetting, dropouts, many, train_until
from clew.labs.snapshot.step_batch import BOTH, INPUT, TARGET, StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.records.facts.experiment_facts import SourceLine
from clew.records.facts.learning_experiment_facts import ToyRung, ToyTaskFailedFact

CONSTANT, TWO, COPY, LINEAR = "constant", "two samples", "copy", "linear rule"
WORDS = {
    CONSTANT: "give the same answer for every sample",
    TWO: "tell two samples apart",
    COPY: "tell whether one feature of the input is large",
    LINEAR: "follow a linear rule of the input",
}

PLAN = (
    TrainingSetting.calm(),
    TrainingSetting.calm("Adam", 1e-2),
    TrainingSetting.calm(rate=10.0),
    TrainingSetting.calm("Adam", 1e-3),
)


@dataclass(frozen=True)
class ToyLadder(Experiment):
    name = "toy-task-failed"
    question = "can the network learn simple tasks?"
    rank = 16

    samples: int = 32  # enough to show a rule, few enough to be memorised at worst
    steps: int = 100  # for each attempt
    learned: float = 0.3  # remaining share of the way at which a rung counts as passed

    def run(self, subject: Subject, clock: Clock) -> Result:
        subject.need_training()
        batch = many(subject, self.samples)
        values = values_of(target_of(batch))
        with subject.snapshot() as snapshot:
            dropouts(snapshot, batch)
        rungs: list[ToyRung] = []
        plots: list[Plot] = []
        for number, (name, task) in enumerate(TASKS.items()):
            clock.tick(number / len(TASKS))
            try:
                toy = task(batch, values)
            except CannotJudge:
                continue  # the data has no such rule to offer
            rung, losses = self._rung(subject, name, toy, clock)
            rungs.append(rung)
            plots = [Plot.of_losses(f"loss while the network learns to {WORDS[name]}", losses)]
            if not rung.taken:
                break
        if not rungs:
            raise CannotJudge("no toy task suits the data")
        line = SourceLine(*subject.line)
        return Result(ToyTaskFailedFact(rungs=tuple(rungs), samples=batch.size, line=line), plots)

    def _rung(self, subject: Subject, name: str, toy: StepBatch, clock: Clock) -> tuple[ToyRung, list[float]]:
        """The best of all attempts; the first attempt that passes the rung ends it."""
        tried = []
        for setting in PLAN:
            tried.append(self._attempt(subject, name, toy, setting, clock))
            if tried[-1][0].taken:
                return tried[-1]
        return min(tried, key=lambda attempt: attempt[0].remaining)

    def _attempt(
        self, subject: Subject, name: str, toy: StepBatch, setting: TrainingSetting, clock: Clock
    ) -> tuple[ToyRung, list[float]]:
        first, last, losses = train_until(
            subject,
            toy,
            self.steps,
            setting,
            clock,
            lambda first: LossRange.between(first, first).at(0.5 * self.learned, first.loss),
        )
        where = LossRange.between(first, last)
        left = where.remaining(first.loss, last.loss)
        rung = ToyRung(
            name=name,
            words=WORDS[name],
            how=setting.named(subject),
            steps=len(losses),
            start=first.loss,
            end=last.loss,
            floor=where.floor,
            accuracy=last.accuracy,
            remaining=left,
            taken=left <= self.learned or (last.accuracy or 0.0) >= 0.95,
        )
        return rung, losses


@dataclass(frozen=True)
class Values:
    """Two values that a sample's target may take: the usual one and another. A number, or a vector."""

    usual: Tensor
    other: Tensor


def target_of(batch: StepBatch) -> Tensor:
    """The one target tensor; raises where it can't be replaced."""
    found = batch.tensors(TARGET)
    if batch.tensors(BOTH) and not found:
        raise CannotJudge("the input is also the target: it can't be replaced by a toy target")
    if len(found) != 1:
        raise CannotJudge("no target was found" if not found else f"{len(found)} targets were found")
    if not found[0].dim() or found[0].is_complex() or found[0].shape[0] != batch.size:
        raise CannotJudge("the target has no entry per sample")
    return found[0]


def values_of(target: Tensor) -> Values:
    """The most common class and another; for numbers, two from inside their range; for vectors, two of
    the targets themselves, since what their numbers have in common (such as a sum of one) is not known."""
    if _is_vector(target):
        return _two_of(target)
    known = target[target >= 0] if not target.is_floating_point() else target[target.isfinite()]
    found, counts = known.double().unique(return_counts=True)
    if len(found) < 2:
        raise CannotJudge("all targets are the same")
    if not target.is_floating_point() or len(found) == 2:
        order = counts.argsort(descending=True, stable=True)
        return Values(found[order[0]], found[order[1]])
    middle, high = known.double().quantile(known.new_tensor([0.5, 0.9]).double())
    return Values(middle, high if high != middle else found[-1])


def _is_vector(target: Tensor) -> bool:
    return target.is_floating_point() and target.dim() == 2 and target.shape[1] > 1


def _two_of(target: Tensor) -> Values:
    """The target nearest to their mean, and one far from it though not the farthest."""
    rows = target.detach().double()
    rows = rows[rows.isfinite().all(1)]
    if not len(rows):
        raise CannotJudge("all targets are non-finite")
    usual = rows[(rows - rows.mean(0)).norm(dim=1).argmin()]
    far = (rows - usual).norm(dim=1)
    if not bool(far.any()):
        raise CannotJudge("all targets are the same")
    order = far.argsort(stable=True)
    other = order[int(0.9 * (len(rows) - 1))]
    return Values(usual, rows[other if far[other] > 0 else order[-1]])


def constant_task(batch: StepBatch, values: Values) -> StepBatch:
    """The other value, not the usual one: a network may begin at zero."""
    return _marked(batch, torch.ones(batch.size, dtype=torch.bool), values)


def two_samples_task(batch: StepBatch, values: Values) -> StepBatch:
    """Two samples that lie far apart, a few times each."""
    features = features_of(batch)
    apart = torch.cdist(features, features)
    first, second = divmod(int(apart.argmax()), len(features))
    if not float(apart.max()) > 0:
        raise CannotJudge("all samples have the same input")
    pair = batch.rows([first, second] * 4)
    return _marked(pair, torch.tensor([False, True] * 4), values)


def copy_task(batch: StepBatch, values: Values) -> StepBatch:
    """The feature that varies most; where every position has its own target, the input at that position."""
    target = target_of(batch)
    if _by_place(target):
        here = _input_by_place(batch, target)
        return _marked(batch, _upper_half(here), values)
    features = features_of(batch)
    column = features[:, int(features.var(0).argmax())]
    return _marked(batch, _upper_half(column), values)


def linear_task(batch: StepBatch, values: Values) -> StepBatch:
    """The direction in which the inputs vary most."""
    if _by_place(target_of(batch)):
        raise CannotJudge("the model need not see the whole input at every position")
    features = features_of(batch)
    centred = features - features.mean(0)
    _, _, directions = torch.linalg.svd(centred.double(), full_matrices=False)
    return _marked(batch, _upper_half(centred.double() @ directions[0]), values)


def features_of(batch: StepBatch) -> Tensor:
    """The inputs as rows of numbers; words and categories by how often each occurs."""
    parts = []
    for tensor in batch.tensors(INPUT):
        if tensor.dim() and tensor.shape[0] == batch.size and not tensor.is_complex():
            flat = tensor.detach().reshape(batch.size, -1)
            parts.append(flat.float() if flat.is_floating_point() else _histogram(flat))
    if not parts:
        raise CannotJudge("no input has an entry per sample")
    return torch.nan_to_num(torch.cat(parts, 1))


def _by_place(target: Tensor) -> bool:
    """Whether a sample has targets at many positions: pixels, words, time steps."""
    many = target.dim() > 1 and target[0].numel() > 1
    return many and (target.dim() > 2 or not target.is_floating_point())


def _input_by_place(batch: StepBatch, target: Tensor) -> Tensor:
    """The input at the position of each target, in the target's shape if possible."""
    for tensor in batch.tensors(INPUT):
        size, wanted = tensor.shape, target.shape
        value = tensor.detach().double()
        if size == wanted:
            return value
        if tensor.dim() > 2 and size[2:] == wanted[2:] and target.dim() == tensor.dim():
            return value.mean(1, keepdim=True).expand(wanted)  # channels
        if tensor.dim() > 2 and size[2:] == wanted[1:]:
            return value.mean(1)
        if tensor.dim() == 3 and size[:2] == wanted[:2]:
            return value.mean(2)  # features of each time step
    raise CannotJudge("the positions of the targets differ from those of the input")


def _histogram(flat: Tensor) -> Tensor:
    _, places = flat.unique(return_inverse=True)
    counts = torch.zeros(len(flat), int(places.max()) + 1)
    return counts.scatter_add(1, places.reshape(flat.shape), torch.ones(flat.shape))


def _upper_half(column: Tensor) -> Tensor:
    upper = column > column.median()
    if not bool(upper.any()):
        upper = column >= column.median()
    return upper


def _marked(batch: StepBatch, which: Tensor, values: Values) -> StepBatch:
    """The batch with the other value where it is marked, the usual one elsewhere."""
    return batch.map([TARGET], lambda t: _filled(t, which.to(t.device), values))


def _filled(target: Tensor, which: Tensor, values: Values) -> Tensor:
    """Each sample's value in its whole target; ignored positions (a class below 0) stay ignored."""
    which = which.reshape(*which.shape, *[1] * (target.dim() - which.dim()))
    usual, other = (v.to(target.device, target.dtype) for v in (values.usual, values.other))
    filled = torch.where(which, other, usual).expand_as(target).clone()
    return filled if target.is_floating_point() else torch.where(target < 0, target, filled)


TASKS = {CONSTANT: constant_task, TWO: two_samples_task, COPY: copy_task, LINEAR: linear_task}
