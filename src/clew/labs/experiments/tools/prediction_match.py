"""Which output of a model a target speaks of, and what a better and a worse prediction would be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from clew.hooks.collect_layers.activation_origin import origin_of

CLASSES, BINARY, VALUES = "classes", "binary", "values"
LOGITS, CHANCES, LOG_CHANCES = "logits", "probabilities", "log-probabilities"
_BINARY_LOSSES = ("binary_cross_entropy", "binary_cross_entropy_with_logits")


@dataclass(frozen=True)
class Match:
    """An output and the target that it is to hit."""

    output: Tensor
    target: Tensor
    task: str  # CLASSES, BINARY or VALUES
    scale: str = LOGITS  # of the output, where it speaks of classes
    dim: int = 1  # that holds the classes

    def towards(self, strength: float, *, wrong: bool = False) -> Tensor:
        """A prediction of the target (or of the opposite) of this strength; 0 says nothing."""
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
    """All pairs that fit, classes first: a shape alone says less."""
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
    """Equal but for dimensions of one."""
    if [s for s in output.shape if s != 1] != [s for s in target.shape if s != 1]:
        return None
    zeros_and_ones = bool(((target == 0) | (target == 1)).all())
    if zeros_and_ones:
        limited = origin_of(output).limits() == (0.0, 1.0) and "binary_cross_entropy_with_logits" not in kinds
        return Match(output, target, BINARY, CHANCES if limited else LOGITS)
    if not target.is_floating_point() or kinds & set(_BINARY_LOSSES):
        return None  # soft labels: the lowest loss is not at the target itself but at its logit
    return Match(output, target, VALUES)
