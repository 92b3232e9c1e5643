"""Does the same step give the same result twice from the same state and random seed?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clew.labs.experiments.base import Experiment, Result
from clew.labs.experiments.tools.op_tape import TapeEntry, differ, taped
from clew.labs.snapshot.module_state import PlainState
from clew.labs.snapshot.op_recorder import UNINITIALISED
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot, TrainingState
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock
from clew.labs.snapshot.users_step.model_calls import model_calls
from clew.measure.nested_tensors import tensors_in
from clew.records.facts.experiment_facts import CodePlace
from clew.records.facts.network_experiment_facts import NondeterministicStepFact

SEED = 2
MOST = 32  # samples: enough to see a difference
SAME, OUTSIDE, GENERATOR, KEPT, BACKWARD = "same", "outside", "generator", "kept", "backward"


@dataclass(frozen=True)
class RepeatedStep(Experiment):
    name = "nondeterministic-step"
    question = "does the same step give the same numbers twice?"
    rank = 10

    def run(self, subject: Subject, clock: Clock) -> Result:
        batch = subject.batch().first(MOST)
        with subject.snapshot(seed=SEED) as snapshot:
            tensors, plain = TrainingState.take(list(subject.models.values()), ()), _plain_state(subject)
            first = _run_step(snapshot, batch)
            clock.tick(0.3)
            kept = tuple(piece.name for piece in plain.changed() if piece.generator)
            tensors.put()  # running statistics are meant to move on
            again = _run_step(snapshot, batch)
        clock.tick(0.6)
        with subject.snapshot(seed=SEED) as snapshot:
            anew = _run_step(snapshot, batch)
        kind, other = _kind(first, again, anew, bool(kept))
        return Result(
            NondeterministicStepFact(
                kind=kind,
                whole=subject.step is not None,
                losses=(first.loss, other.loss),
                relative=_relative(first.loss, other.loss),
                generators=kept,
                place=_place(first, other) if kind != SAME else None,
            )
        )


@dataclass(frozen=True)
class _StepRun:
    """One run of the step."""

    loss: float
    gradients: list[Tensor | None]
    entries: list[TapeEntry]


def _plain_state(subject: Subject) -> PlainState:
    owners = [m for top in subject.models.values() for m in top.modules()]
    return PlainState.take([*owners, *(o for o in subject.owners if hasattr(o, "__dict__"))])


def _run_step(snapshot: StepSnapshot, batch: StepBatch) -> _StepRun:
    """One step, with a fingerprint of every result."""
    subject = snapshot.subject
    parameters = subject.parameters()
    snapshot.seed(SEED)
    loss, entries = taped(subject.models, _fingerprint, lambda: _number(snapshot, batch))
    gradients: list[Tensor | None] = []
    if loss.requires_grad and parameters:
        found = snapshot.gradients(loss, parameters)
        gradients = [None if g is None else _fingerprint(g.detach()) for g in found]
    return _StepRun(float(loss.detach()), gradients, [e for e in entries if e.place.op not in UNINITIALISED])


def _number(snapshot: StepSnapshot, batch: StepBatch) -> Tensor:
    """The loss; if it is not available, perhaps for this very reason, the mean of the model's output."""
    subject = snapshot.subject
    if subject.step is not None:
        return snapshot.loss(batch)
    outputs = [t for call in model_calls(snapshot, batch) for t in tensors_in(call.output)]
    means = [t.float().mean() for t in outputs if t.is_floating_point() and t.numel()]
    if not means:
        subject.need_step()
    return torch.stack(means).sum()


def _fingerprint(tensor: Tensor) -> Tensor | None:
    """Two sums, one of them weighted by position: different tensors rarely agree in both."""
    if tensor.is_complex() or not tensor.numel():
        return None
    flat = tensor.reshape(-1).to(torch.float64).nan_to_num()
    weights = torch.arange(1, len(flat) + 1, dtype=torch.float64, device=flat.device).sqrt()
    return torch.stack([flat.sum(), (flat * weights).sum()])


def _kind(first: _StepRun, again: _StepRun, anew: _StepRun, generator: bool) -> tuple[str, _StepRun]:
    if _other(first, anew):
        return (BACKWARD if first.loss == anew.loss and not _place(first, anew) else OUTSIDE), anew
    if _other(first, again):
        return (GENERATOR if generator else KEPT), again
    return SAME, again


def _other(one: _StepRun, other: _StepRun) -> bool:
    """Whether two results differ; NaN equals NaN here."""
    if one.loss != other.loss and not (one.loss != one.loss and other.loss != other.loss):
        return True
    return any(differ(a, b) for a, b in zip(one.gradients, other.gradients, strict=False))


def _place(one: _StepRun, other: _StepRun) -> CodePlace | None:
    """The first op with a different result, even if the two runs have different numbers of ops."""
    for a, b in zip(one.entries, other.entries, strict=False):
        if a.place.op != b.place.op:
            return b.place
        if any(differ(x, y) for x, y in zip(a.kept, b.kept, strict=False)):
            return b.place
    return None


def _relative(one: float, other: float) -> float:
    size = max(abs(one), abs(other))
    return abs(one - other) / size if size > 0 else 0.0
