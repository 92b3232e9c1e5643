"""Measures the loss, the lowest that is possible, and the lowest that is possible without using the input.

Both bounds come from torch's loss function itself, with the user's options: for the prediction that fits
the targets best, and for the one best constant prediction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import LossCall, StepSnapshot

TINY = 1e-6  # smaller shares are too small for a logarithm
INDICES = ("cross_entropy", "nll_loss")
BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
DISTANCES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


@dataclass(frozen=True)
class MeasuredLoss:
    """The user's loss of a batch at one moment, and how low it could be; None where that is not known."""

    loss: float
    known: float | None = None  # the part that torch's loss functions computed
    floor: float | None = None  # of that part
    constant: float | None = None  # of that part, for the best answer that ignores the input
    accuracy: float | None = None  # share of right answers, for classes


def measured(snapshot: StepSnapshot, batch: StepBatch, seed: int = 0) -> MeasuredLoss:
    """Bounds are known only if torch's loss functions were called, and each returned a single number."""
    snapshot.seed(seed)
    seen = snapshot.observe(batch)
    loss = float(seen.loss.detach())
    results = [c.result for c in seen.calls if isinstance(c.result, Tensor) and c.result.numel() == 1]
    if not seen.calls or len(results) < len(seen.calls):
        return MeasuredLoss(loss)
    with torch.no_grad():
        return MeasuredLoss(
            loss,
            sum(float(result.detach()) for result in results),
            _total([_asked(call, _ideal(call)) for call in seen.calls]),
            _total([_asked(call, _best_constant(call)) for call in seen.calls]),
            _mean([_accuracy(call) for call in seen.calls]),
        )


def mean_loss(snapshot: StepSnapshot, batches: Sequence[StepBatch]) -> float:
    """The mean loss of the batches, with fixed random numbers: only a training in between changes it."""
    return sum(measured(snapshot, batch, seed=99).loss for batch in batches) / len(batches)


@dataclass(frozen=True)
class LossRange:
    """The range of a loss: `floor` is the lowest possible, `constant` is reached without the input."""

    floor: float | None
    constant: float | None

    @classmethod
    def between(cls, first: MeasuredLoss, last: MeasuredLoss) -> LossRange:
        """Known if the user's loss is the known part times a number in both measurements."""
        ratios = [x.loss / x.known for x in (first, last) if x.known]
        same = len(ratios) == 2 and math.isclose(*ratios, rel_tol=1e-3) and ratios[0] > 0
        if not same or first.floor is None:
            return cls(None, None)
        constant = None if first.constant is None else first.constant * ratios[0]
        return cls(first.floor * ratios[0], constant)

    @property
    def lowest(self) -> float:
        return 0.0 if self.floor is None else self.floor

    def reference(self, start: float) -> float:
        """The start of the way: the constant prediction's loss, unless that is the answer already."""
        if self.constant is not None and self.constant - self.lowest > 1e-2 * abs(start):
            return min(start, self.constant)
        return start

    def at(self, share: float, start: float) -> float:
        """The loss at which this share of the way is left."""
        return self.lowest + share * max(self.reference(start) - self.lowest, 0.0)

    def remaining(self, start: float, end: float) -> float:
        """The share of the way that is left; infinite if training diverged."""
        if not math.isfinite(end):
            return math.inf
        way = self.reference(start) - self.lowest
        return (end - self.lowest) / way if way > 1e-3 else 0.0  # 0: it started at the answer


def classes_of(call: LossCall) -> int | None:
    """How many classes the call distinguishes by number, if it does."""
    if call.kind not in INDICES or call.target is None or call.target.is_floating_point():
        return None
    return int(call.prediction.shape[1 if call.prediction.dim() > 1 else 0])


def _total(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if len(known) == len(values) else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _asked(call: LossCall, prediction: Tensor | None) -> float | None:
    """The user's own call with another prediction."""
    if prediction is None:
        return None
    options = {k: v for k, v in call.options.items() if v is not None}
    with torch.autocast(call.prediction.device.type, enabled=False):
        try:
            value: Tensor = getattr(F, call.kind)(prediction, call.target, **options)
        except (RuntimeError, TypeError, ValueError):  # a shape that only the user's call has
            return None
    return float(value) if value.numel() == 1 else None


def _ideal(call: LossCall) -> Tensor | None:
    target = call.target
    if target is None:
        return None
    if call.kind in INDICES:
        shares = _shares(call)
        return None if shares is None else shares.clamp_min(1e-30).log()
    if call.kind in BINARY and target.shape == call.prediction.shape:
        return _as_binary(call, target.float())
    if call.kind in DISTANCES and target.shape == call.prediction.shape:
        return target.float()
    return None


def _best_constant(call: LossCall) -> Tensor | None:
    target = call.target
    if target is None or not target.numel():
        return None
    if call.kind in INDICES:
        shares = _shares(call)
        return None if shares is None else _marginal(call, shares).clamp_min(TINY).log()
    if target.shape != call.prediction.shape or not target.dim():
        return None
    if call.kind in BINARY:
        return _as_binary(call, target.float().mean(0, keepdim=True).expand_as(target))
    if call.kind in DISTANCES:
        values = target.float()
        middle = values.mean(0, keepdim=True) if call.kind == "mse_loss" else values.median(0, True).values
        return middle.expand_as(values)
    return None


def _as_binary(call: LossCall, share: Tensor) -> Tensor:
    if call.kind == "binary_cross_entropy":
        return share
    return torch.logit(share.clamp(1e-12, 1 - TINY), eps=None).clamp(-30, 30)


def _shares(call: LossCall) -> Tensor | None:
    """What share each class should have, in the prediction's shape."""
    target, prediction = call.target, call.prediction
    if target is None:
        return None
    if target.shape == prediction.shape and target.is_floating_point():
        return target.float()
    classes = classes_of(call)
    if classes is None or prediction.dim() != target.dim() + 1:
        return None
    ignored = int(call.options.get("ignore_index", -100))
    places = F.one_hot(torch.where(target == ignored, 0, target).clamp(0, classes - 1), classes).float()
    smoothing = float(call.options.get("label_smoothing") or 0.0)
    places = places * (1 - smoothing) + smoothing / classes
    return places.movedim(-1, 1 if prediction.dim() > 1 else 0)


def _marginal(call: LossCall, shares: Tensor) -> Tensor:
    """The shares over all that counts, the same everywhere."""
    dim = 1 if shares.dim() > 1 else 0
    rows = shares.movedim(dim, -1).reshape(-1, shares.shape[dim])
    target, ignored = call.target, call.options.get("ignore_index", -100)
    if target is not None and not target.is_floating_point():
        rows = rows[target.reshape(-1) != ignored]
    mean = rows.mean(0) if len(rows) else torch.full((shares.shape[dim],), 1.0 / shares.shape[dim])
    shape = [1] * shares.dim()
    shape[dim] = -1
    return mean.view(shape).expand_as(shares)


def _accuracy(call: LossCall) -> float | None:
    target, prediction = call.target, call.prediction.detach()
    if target is None or not target.numel():
        return None
    if classes_of(call) is not None and prediction.dim() == target.dim() + 1:
        counted = target != int(call.options.get("ignore_index", -100))
        right = prediction.argmax(1 if prediction.dim() > 1 else 0) == target
        return float(right[counted].float().mean()) if bool(counted.any()) else None
    if call.kind in BINARY and target.shape == prediction.shape and zeros_and_ones(target):
        threshold = 0.5 if call.kind == "binary_cross_entropy" else 0.0
        return float(((prediction > threshold) == (target > 0.5)).float().mean())
    return None


def zeros_and_ones(values: Tensor) -> bool:
    """Whether these are the targets of yes-or-no questions."""
    return bool(((values == 0) | (values == 1)).all())
