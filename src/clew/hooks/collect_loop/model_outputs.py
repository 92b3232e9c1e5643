"""Model outputs as they go into the loss, on sampled steps: their activation, spread, range and accuracy.

Everything is computed as one small tensor without reading a single number, so that an accelerator need not
wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clew.hooks.collect_layers.step_rows import SiteRows
from clew.hooks.entry.sink import Sink
from clew.measure.deferred_values import Late
from clew.measure.readable_tensors import has_values, shape_of
from clew.records import signals
from clew.records.facts.loss_facts import OutputFact
from clew.records.signal_types import names
from clew.records.site import Site

OUTPUT_NAMES = names(
    signals.LOSS_CALL_VALUE,
    signals.LOSS_CALL_CHANCE,
    signals.LOSS_INPUT_AXIS,
    signals.LOSS_INPUT_LOGSUM,
    signals.LOSS_INPUT_ENDS,
    signals.PREDICTION_TOP_SHARE,
    signals.PREDICTION_CLASSES,
    signals.PREDICTION_ACCURACY,
    signals.PREDICTION_TARGET_TOP_SHARE,
    signals.PREDICTION_SPREAD,
    signals.TARGET_OUTSIDE,
    signals.TARGET_WHOLE,
)
CLASSES = ("cross_entropy", "nll_loss")
BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
REGRESSION = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
MOST = 1 << 18  # elements of an output that are read: as many whole samples as fit
LISTED = 1 << 14  # labels that are counted
MARGIN = 0.02  # share of an activation's range by which a target must exceed it to count as outside
NAN = float("nan")

DEEPEST = 12  # nodes followed from the loss's input
# These move, select or cast values without changing them.
_MOVES = {
    "View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Transpose", "T", "Permute", "Slice",
    "Select", "Index", "Clone", "Alias", "ToCopy", "Expand", "Narrow", "AsStrided", "_DDPSink",
    "IndexSelect", "Gather", "Unbind", "Split", "SplitWithSizes",
}  # fmt: skip
_MADE = {
    "Sigmoid": "sigmoid",
    "Relu": "relu",
    "Tanh": "tanh",
    "Softmax": "softmax",
    "LogSoftmax": "log_softmax",
    "LogSigmoid": "logsigmoid",
    "Hardsigmoid": "hardsigmoid",
    "Softplus": "softplus",
    "Exp": "exp",
}
_PICKS = {"Slice", "Select", "Index", "Narrow", "IndexSelect", "Gather", "Unbind", "Split", "SplitWithSizes"}


class Outputs:
    """Measures the predictions that go into torch's loss functions."""

    def __init__(self, sink: Sink, late: Late, step: Callable[[], int]) -> None:
        self._sink = sink
        self._late = late
        self._step = step
        self._pending = SiteRows(sink, late)
        self._origins: set[Any] = set()

    def measure(
        self, site: Site, kind: str, prediction: Tensor, target: Any, given: dict[str, Any], result: Any
    ) -> None:
        """A loss function was called with these arguments and returned this result."""
        origin = origin_of(prediction)
        self._fact(site, kind, prediction, origin)
        if not isinstance(target, Tensor) or not has_values(target) or not has_values(prediction):
            return
        if not prediction.is_floating_point() or not prediction.numel():
            return
        with torch.no_grad():
            values = outputs_row(kind, prediction.detach(), target.detach(), given, result, origin)
        self._pending.put(OUTPUT_NAMES, site, self._late.row(values))

    def _fact(self, site: Site, kind: str, prediction: Tensor, origin: Origin) -> None:
        """Once per place and activation."""
        key = (site, origin)
        if key in self._origins or len(self._origins) > 200:
            return
        self._origins.add(key)
        fact = OutputFact(
            kind=kind,
            file=site.file,
            line=site.line,
            made_by=origin.name,
            dim=origin.dim,
            logged=origin.logged,
            clamped=origin.clamped,
            picked=origin.picked,
            shape=tuple(shape_of(prediction)),
        )
        fact.write(self._sink, self._step())

    def commit(self, step: int) -> None:
        self._pending.commit(step)

    def discard(self) -> None:
        self._pending.discard()


def outputs_row(
    kind: str, prediction: Tensor, target: Tensor, given: dict[str, Any], result: Any, origin: Origin
) -> Tensor:
    """The numbers of `OUTPUT_NAMES`; NaN where one makes no sense for this loss."""
    values: dict[str, Any] = {
        signals.LOSS_CALL_VALUE.name: mean_value(kind, result, target, given),
        signals.LOSS_CALL_CHANCE.name: chance(kind, prediction, target, given),
    }
    samples = max(MOST * len(prediction) // prediction.numel(), 2) if prediction.dim() else 1
    if target.dim() and prediction.dim() and len(target) == len(prediction):
        prediction, target = prediction[:samples], target[:samples]
    prediction = prediction.float()
    if prediction.dim() >= 2:
        values[signals.LOSS_INPUT_AXIS.name] = normalised_axis(prediction)
    if kind in CLASSES:
        values.update(class_numbers(kind, prediction, target, given))
    elif kind in BINARY and prediction.shape == target.shape:
        values.update(binary_numbers(kind, prediction, target))
    elif kind in REGRESSION and prediction.shape == target.shape:
        values.update(regression_numbers(prediction, target.float(), origin))
    return torch.stack([_number(values.get(name, NAN), prediction.device) for name in OUTPUT_NAMES])


def _number(value: Any, device: torch.device) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach().to(torch.float32).reshape(())
    return torch.full((), float(value), dtype=torch.float32, device=device)


def mean_value(kind: str, result: Any, target: Tensor, given: dict[str, Any]) -> Any:
    """The result of the loss call per element (in a classification: per label)."""
    if not isinstance(result, Tensor) or not has_values(result) or not result.numel():
        return NAN
    value = result.detach().float()
    if given.get("reduction", "mean") == "mean" or given.get("reduce") is not None:
        return value.mean()
    if given.get("weight") is not None or given.get("pos_weight") is not None:
        return NAN
    if kind in CLASSES and not target.is_floating_point():
        return value.sum() / (target != given.get("ignore_index", -100)).sum().clamp(min=1)
    if kind in CLASSES:
        return value.sum() / max(target.numel() // max(target.shape[class_axis(target)], 1), 1)
    return value.sum() / max(target.numel(), 1)


def chance(kind: str, prediction: Tensor, target: Tensor, given: dict[str, Any]) -> Any:
    """The loss of a model that knows nothing: it predicts evenly, or always zero."""
    weighted = given.get("weight") is not None or given.get("pos_weight") is not None
    if kind in CLASSES:
        return float(np.log(max(prediction.shape[class_axis(prediction)], 1))) if prediction.dim() else NAN
    if kind in BINARY:
        return NAN if weighted else float(np.log(2.0))
    if kind == "mse_loss":
        return target.float().square().mean()
    if kind == "l1_loss":
        return target.float().abs().mean()
    return NAN


def class_axis(prediction: Tensor) -> int:
    return 1 if prediction.dim() > 1 else 0


def normalised_axis(values: Tensor) -> Tensor:
    """The axis along which (the exponentials of) the values sum to one: preferably the class axis.

    -1 if there is none.
    """
    is_log = (values <= 1e-4).all()
    is_share = (values >= 0).all()
    weights = torch.where(is_log, values.exp(), values)
    axis = torch.full((), -1.0, device=values.device)
    for candidate in [n for n in range(values.dim()) if n != 1] + [1]:
        if values.shape[candidate] < 2:
            continue
        sums = weights.sum(candidate)
        fits = ((sums - 1).abs() < 2e-3).float().mean() > 0.99
        axis = torch.where(fits & (is_log | is_share), torch.full_like(axis, float(candidate)), axis)
    return axis


def class_numbers(kind: str, scores: Tensor, target: Tensor, given: dict[str, Any]) -> dict[str, Any]:
    """How the class scores are spread, and how often the highest one is right."""
    axis = class_axis(scores)
    numbers: dict[str, Any] = {}
    if kind == "nll_loss":
        numbers[signals.LOSS_INPUT_LOGSUM.name] = scores.logsumexp(axis).abs().median()
    if scores.shape[axis] < 2:
        return numbers
    guess = scores.argmax(axis)
    numbers.update(spread_over_classes(guess))
    if target.is_floating_point() and target.shape == scores.shape:
        target = target.argmax(axis)
    if target.shape == guess.shape and not target.is_floating_point():
        known = target != given.get("ignore_index", -100)
        right = (guess == target) & known
        numbers[signals.PREDICTION_ACCURACY.name] = right.sum() / known.sum().clamp(min=1)
        numbers[signals.PREDICTION_TARGET_TOP_SHARE.name] = _top_share(target)
    return numbers


def spread_over_classes(labels: Tensor) -> dict[str, Any]:
    """Share of the most frequent label, and the number of different labels."""
    ordered = labels.reshape(-1)[:LISTED].sort().values
    if ordered.numel() < 2:
        return {signals.PREDICTION_TOP_SHARE.name: NAN, signals.PREDICTION_CLASSES.name: NAN}
    top = (ordered == ordered.mode().values).float().mean()
    return {
        signals.PREDICTION_TOP_SHARE.name: top,
        signals.PREDICTION_CLASSES.name: 1 + (ordered[1:] != ordered[:-1]).sum(),
    }


def _top_share(labels: Tensor) -> Any:
    return spread_over_classes(labels)[signals.PREDICTION_TOP_SHARE.name]


def binary_numbers(kind: str, values: Tensor, target: Tensor) -> dict[str, Any]:
    """Same as `class_numbers` for binary targets; targets outside 0…1 are not binary."""
    middle = 0.5 if kind == "binary_cross_entropy" else 0.0
    guess, truth = (values > middle).long(), (target > 0.5).long()
    numbers = spread_over_classes(guess)
    numbers[signals.PREDICTION_ACCURACY.name] = (guess == truth).float().mean()
    numbers[signals.PREDICTION_TARGET_TOP_SHARE.name] = _top_share(truth)
    numbers[signals.LOSS_INPUT_ENDS.name] = ((values == 0) | (values == 1)).float().mean()
    numbers[signals.TARGET_OUTSIDE.name] = ((target < -MARGIN) | (target > 1 + MARGIN)).float().mean()
    return numbers


def regression_numbers(values: Tensor, target: Tensor, origin: Origin) -> dict[str, Any]:
    """How much the predictions of a batch differ from each other, and the targets out of their range."""
    low, high = origin.limits()
    margin = MARGIN * ((high - low) if np.isfinite(high - low) else target.abs().mean())
    numbers: dict[str, Any] = {
        signals.TARGET_OUTSIDE.name: ((target < low - margin) | (target > high + margin)).float().mean(),
        signals.TARGET_WHOLE.name: (target == target.round()).float().mean(),
    }
    if values.dim() and len(values) > 1:
        apart = target.std(0).mean()
        numbers[signals.PREDICTION_SPREAD.name] = values.std(0).mean() / apart.clamp(min=1e-30)
    return numbers


@dataclass(frozen=True)
class Origin:
    """The activation at the end of a model, what was applied to it since, and the axis of a softmax."""

    name: str  # "sigmoid", "clamp", …; "" if it is none of these
    dim: int | None = None  # of a softmax, as the program gave it; negative values count from the end
    logged: bool = False  # a logarithm was applied since
    clamped: bool = False
    picked: bool = False  # only a part of it is left

    def limits(self) -> tuple[float, float]:
        """The range of values that it can take."""
        if self.logged:
            return float("-inf"), float("inf")
        if self.name in ("sigmoid", "softmax", "hardsigmoid"):
            return 0.0, 1.0
        if self.name == "tanh":
            return -1.0, 1.0
        return (0.0 if self.name in ("relu", "softplus", "exp") else float("-inf")), float("inf")


def origin_of(tensor: Tensor) -> Origin:
    """Follow a tensor back through views and casts to the activation that computed its values.

    Reads only node names and plain numbers saved in nodes, never a saved tensor: accessing one could
    recompute a checkpointed part of the model.
    """
    node: Any = tensor.grad_fn
    logged = clamped = picked = False
    for _ in range(DEEPEST):
        kind = node_kind(node)
        if kind in _MADE:
            return Origin(_MADE[kind], softmax_dim(node, kind), logged, clamped, picked)
        if kind == "Log":
            logged = True
        elif kind == "Clamp" or (kind == "Add" and logged and _one_sided(node)):
            clamped = clamped or kind == "Clamp"  # as in log(p + eps), which is what a clamp is for
        elif kind not in _MOVES:
            break
        picked = picked or kind in _PICKS
        node = next((child for child, _ in node.next_functions if child is not None), None)
    return Origin("clamp" if clamped else "", None, logged, clamped, picked)


def node_kind(node: Any) -> str:
    """`Softmax` for a SoftmaxBackward0; an empty string for a leaf."""
    return "" if node is None else re.sub(r"Backward\d*$", "", type(node).__name__)


def softmax_dim(node: Any, kind: str) -> int | None:
    """The axis of a softmax; torch stores negative axes as unsigned numbers."""
    if kind not in ("Softmax", "LogSoftmax"):
        return None
    dim = int(node._saved_dim)
    return dim - (1 << 64) if dim >= 1 << 63 else dim


def _one_sided(node: Any) -> bool:
    return sum(child is not None for child, _ in node.next_functions) == 1
