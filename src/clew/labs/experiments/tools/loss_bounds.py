"""The lowest loss that is possible, and the lowest that is possible without using the input.

Both come from torch's loss function itself, with the user's options: for the prediction that fits
the targets best, and for the one best constant prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from clew.labs.snapshot.step_snapshot import LossCall

TINY = 1e-6  # smaller shares are too small for a logarithm
INDICES = ("cross_entropy", "nll_loss")
BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
DISTANCES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


@dataclass(frozen=True)
class Bounds:
    """Of all calls in one step together; None where a kind of loss has no known bound."""

    value: float  # that they had
    floor: float | None
    constant: float | None  # of the best answer that ignores the input
    accuracy: float | None  # share of right answers, for classes


def bounds(calls: Sequence[LossCall]) -> Bounds | None:
    """None if no torch loss function was called, or one that does not return a single number."""
    values = [c.result for c in calls if isinstance(c.result, Tensor) and c.result.numel() == 1]
    if not calls or len(values) < len(calls):
        return None
    with torch.no_grad():
        known = [(_floor(c), _constant(c), _accuracy(c)) for c in calls]
    return Bounds(
        float(sum(float(v.detach()) for v in values)),
        _total([k[0] for k in known]),
        _total([k[1] for k in known]),
        _mean([k[2] for k in known]),
    )


def classes_of(call: LossCall) -> int | None:
    """How many classes the call tells apart by number, if it does."""
    if call.kind not in INDICES or call.target is None or call.target.is_floating_point():
        return None
    return int(call.prediction.shape[1 if call.prediction.dim() > 1 else 0])


def _total(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if len(known) == len(values) else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _floor(call: LossCall) -> float | None:
    ideal = _ideal(call)
    return None if ideal is None else _asked(call, ideal)


def _constant(call: LossCall) -> float | None:
    ideal = _best_constant(call)
    return None if ideal is None else _asked(call, ideal)


def _asked(call: LossCall, prediction: Tensor) -> float | None:
    """The user's own call with another prediction."""
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
    if call.kind in BINARY and target.shape == prediction.shape and _is_two_valued(target):
        threshold = 0.5 if call.kind == "binary_cross_entropy" else 0.0
        return float(((prediction > threshold) == (target > 0.5)).float().mean())
    return None


def _is_two_valued(target: Any) -> bool:
    return bool(((target == 0) | (target == 1)).all())
