"""Is the loss lowest at the correct prediction? Calls the user's loss with replaced model outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from clew.hooks.collect_loop.model_outputs import origin_of
from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.loss_bounds import zeros_and_ones
from clew.labs.experiments.tools.op_tape import taped
from clew.labs.snapshot.snapshot import hooked
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import ObservedStep, StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.measure.nested_tensors import map_tensors, tensors_in
from clew.records.facts.experiment_facts import CodePlace
from clew.records.facts.network_experiment_facts import LossPrefersWrongFact

CLASSES, BINARY, VALUES = "classes", "binary", "values"
LOGITS, CHANCES, LOG_CHANCES = "logits", "probabilities", "log-probabilities"
_BINARY_LOSSES = ("binary_cross_entropy", "binary_cross_entropy_with_logits")

SEED = 3
SHARES = (-1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0)  # of the way to the target
STRENGTHS = (-8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0)  # of logits: up to near certainty
_SHARE, _STRENGTH = "share of the way to the target", "strength of the right answer"
FAR = (100.0, 1000.0)  # where a loss without a bound shows


@dataclass(frozen=True)
class LossMinimum(Experiment):
    name = "loss-prefers-wrong"
    question = "is the loss lowest where the prediction is right?"
    rank = 8

    samples: int = 16  # that are tested

    def run(self, subject: Subject, clock: Clock) -> Result:
        subject.need_step()
        if len(subject.optimizers) > 1:
            raise CannotJudge("several optimizers alternate and may have opposing goals")
        batch = subject.batch().first(self.samples)
        with subject.snapshot(seed=0) as snapshot:
            replaced = _ReplacedOutput(snapshot, batch)
            clock.tick()
            found = _values(replaced) if replaced.match.task == VALUES else _answers(replaced)
            found = _with_slopes(replaced, found)
            found = replace(found, task=replaced.match.task, place=replaced.place())
        words = _SHARE if replaced.match.task == VALUES else _STRENGTH
        plot = Plot("the loss as the prediction moves to the target", found.x, found.y, words, "loss")
        return Result(found, [plot])


class _ReplacedOutput:
    """The step with the model's output replaced."""

    def __init__(self, snapshot: StepSnapshot, batch: StepBatch) -> None:
        self._subject = snapshot.subject
        self._snapshot = snapshot
        self._batch = batch
        seen = self._observed()
        self._root, output = _only_call(seen)
        self._outputs = tensors_in(output)
        self.match = _match(seen, self._outputs, batch)
        self._number = next(n for n, t in enumerate(self._outputs) if t is self.match.output)
        self.start = self.at(self.match.output.detach())
        moved = 0.9 * self.match.output.detach() + 0.01  # a probability stays one
        if math.isfinite(self.start) and self.at(moved) == self.start:
            raise CannotJudge("the loss does not read the model's output: it is computed inside the model")

    def _observed(self) -> ObservedStep:
        self._snapshot.seed(SEED)
        return self._snapshot.observe(self._batch)

    def loss(self, output: Tensor) -> Tensor:
        """The user's loss with this in place of the model's output."""
        handle = self._subject.models[self._root].register_forward_hook(self._replacing(output))
        with hooked(handle):
            self._snapshot.seed(SEED)
            return self._snapshot.loss(self._batch)

    def at(self, output: Tensor) -> float:
        return float(self.loss(output).detach())

    def _replacing(self, new: Tensor) -> Any:
        def hook(_: nn.Module, __: Any, output: Any) -> Any:
            wanted = tensors_in(output)[self._number]
            return map_tensors(output, lambda t: new if t is wanted else t)

        return hook

    def place(self) -> CodePlace:
        """The line on which the loss was computed: the last one outside the model."""
        self._snapshot.seed(SEED)
        _, entries = taped(self._subject.models, lambda _: None, lambda: self._snapshot.loss(self._batch))
        outside = [e.place for e in entries if e.place.root is None and e.place.file is not None]
        return outside[-1] if outside else CodePlace("", None, None, *self._subject.line)


def _only_call(seen: ObservedStep) -> tuple[str, Any]:
    if len(seen.outputs) != 1:
        count = len(seen.outputs)
        raise CannotJudge(
            f"the step calls its models {count} times: it is unknown which output is the prediction"
        )
    return seen.outputs[0]


def _match(seen: ObservedStep, outputs: list[Tensor], batch: StepBatch) -> Match:
    kinds = [call.kind for call in seen.calls]
    # The argument of torch's own loss functions is the target itself; else it is what came with the batch.
    direct = [
        c.target for c in seen.calls if c.target is not None and any(c.prediction is o for o in outputs)
    ]
    found = matched(outputs, direct, kinds) or matched(outputs, batch.targets, kinds)
    if not found:
        raise CannotJudge("no output of the model has the shape of a target")
    _no_signed_weights(found[0], batch)
    return found[0]


def _no_signed_weights(match: Match, batch: StepBatch) -> None:
    """Rewards reverse the sign of the loss for some samples, as they should."""
    for tensor, _, dim in batch.entries():
        per_sample = dim == 0 and tensor.is_floating_point() and tensor.numel() == batch.size
        if per_sample and tensor is not match.target and match.task == CLASSES and bool((tensor < 0).any()):
            raise CannotJudge("samples have signed weights (rewards?): some should become less likely")


def _answers(replaced: _ReplacedOutput) -> LossPrefersWrongFact:
    """Right answers against wrong ones of the same strength."""
    match = replaced.match
    y = tuple(replaced.at(match.towards(abs(s), wrong=s < 0)) for s in STRENGTHS)
    right, wrong = y[-2], y[1]
    if not (math.isfinite(right) and math.isfinite(wrong)):
        raise CannotJudge("the loss of a confident prediction is non-finite")
    far = tuple(replaced.at(match.towards(s)) for s in FAR if match.scale == LOGITS)
    return LossPrefersWrongFact(right=right, wrong=wrong, far=far, start=replaced.start, x=STRENGTHS, y=y)


def _values(replaced: _ReplacedOutput) -> LossPrefersWrongFact:
    """Along the line from the prediction to the target and beyond, and at the target's opposite."""
    match = replaced.match
    y = tuple(replaced.at(match.between(s)) for s in SHARES)
    target = match.target.to(match.output.dtype).reshape(match.output.shape)
    return LossPrefersWrongFact(
        right=y[SHARES.index(1.0)],
        mirrored=replaced.at(-target),
        far=tuple(replaced.at(match.between(s)) for s in FAR),
        start=replaced.start,
        x=SHARES,
        y=y,
    )


def _with_slopes(replaced: _ReplacedOutput, found: LossPrefersWrongFact) -> LossPrefersWrongFact:
    """How fast the loss falls toward the right prediction: by differences, and by autograd."""
    match = replaced.match
    start = match.output.detach()
    end = match.between(1.0) if match.task == VALUES else match.towards(4.0)
    move = end - start
    coarse, fine = (
        (replaced.at(start + h * move) - replaced.at(start - h * move)) / (2 * h) for h in (0.02, 0.01)
    )
    leaf = start.clone().requires_grad_()
    loss = replaced.loss(leaf)
    gradient = torch.autograd.grad(loss, leaf, allow_unused=True)[0] if loss.requires_grad else None
    slope = math.nan if gradient is None else float((gradient * move).sum())
    return replace(found, slope=fine, coarse_slope=coarse, autograd_slope=slope)


@dataclass(frozen=True)
class Match:
    """An output and the target it should reach."""

    output: Tensor
    target: Tensor
    task: str  # CLASSES, BINARY or VALUES
    scale: str = LOGITS  # of the output, where it has classes
    dim: int = 1  # dimension of the classes

    def towards(self, strength: float, *, wrong: bool = False) -> Tensor:
        """A prediction of the target (or of the opposite) of this strength; 0 is no prediction at all."""
        if self.task == BINARY:
            sign = self.target.to(self.output.dtype).reshape(self.output.shape) * 2 - 1
            push = -sign * strength if wrong else sign * strength
            return push if self.scale == LOGITS else torch.sigmoid(push)
        count = self.output.shape[self.dim]
        labels = self.target.clamp(0, count - 1)
        labels = (labels + 1) % count if wrong else labels
        marks = torch.nn.functional.one_hot(labels, count).to(self.output.dtype)
        push = marks.movedim(-1, self.dim) * strength
        if self.scale == LOGITS:
            return push
        chances = torch.log_softmax(push, self.dim)
        return chances if self.scale == LOG_CHANCES else chances.exp()

    def between(self, share: float) -> Tensor:
        """From the output (0) to the target (1) and beyond."""
        start = self.output.detach()
        end = self.target.to(start.dtype).reshape(start.shape)
        return start + share * (end - start)


def matched(outputs: Iterable[Tensor], targets: Iterable[Tensor], kinds: Iterable[str]) -> list[Match]:
    """All pairs that match, classes first: a shape alone is weaker evidence."""
    floats = [t for t in outputs if t.is_floating_point() and t.dim()]
    called = set(kinds)
    found: list[Match] = []
    for target in targets:
        for output in floats:
            match = _classes(output, target) or _same_shape(output, target, called)
            if match is not None:
                found.append(match)
    return sorted(found, key=lambda m: (CLASSES, BINARY, VALUES).index(m.task))


def _classes(output: Tensor, target: Tensor) -> Match | None:
    if target.is_floating_point() or target.dtype == torch.bool or output.dim() < 2 or not target.numel():
        return None
    for dim in (1, output.dim() - 1):
        rest = [s for d, s in enumerate(output.shape) if d != dim]
        count = output.shape[dim]
        if list(target.shape) == rest and count > 1 and int(target.max()) < count:
            return Match(output, target, CLASSES, _scale(output, dim), dim)
    return None


def _scale(output: Tensor, dim: int) -> str:
    values = output.detach().double()
    sums, logs = values.sum(dim), values.exp().sum(dim)
    if bool((values >= 0).all()) and bool((sums - 1).abs().max() < 1e-3):
        return CHANCES
    return LOG_CHANCES if bool((logs - 1).abs().max() < 1e-3) else LOGITS


def _same_shape(output: Tensor, target: Tensor, kinds: set[str]) -> Match | None:
    """Equal except for dimensions of size one."""
    if [s for s in output.shape if s != 1] != [s for s in target.shape if s != 1]:
        return None
    if zeros_and_ones(target):
        limited = origin_of(output).limits() == (0.0, 1.0) and "binary_cross_entropy_with_logits" not in kinds
        return Match(output, target, BINARY, CHANCES if limited else LOGITS)
    if not target.is_floating_point() or kinds & set(_BINARY_LOSSES):
        return None  # soft labels: the lowest loss is not at the target itself but at its logit
    return Match(output, target, VALUES)
