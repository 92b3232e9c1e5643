"""Why an operation gives NaN or infinity, in one sentence, with a fix.

One row for each way to fail: the operation, the direction, what must be true of its inputs, the
sentence and the fix. The first row that fits is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from clew.labs.replay.bad_elements import PRODUCTS as CONTRACTIONS
from clew.labs.replay.bad_elements import factors, is_elementwise
from clew.labs.replay.microscope import NonFiniteEvent
from clew.labs.snapshot.nonfinite_values import dense, element

BOTH = ("forward", "backward")


class FailedOp:
    """An operation that failed: its inputs at the elements of the result that are bad."""

    def __init__(self, event: NonFiniteEvent) -> None:
        self.event = event
        self.output = dense(event.output)
        self.inputs = [dense(t) for t in event.inputs]
        self.bad = ~torch.isfinite(self.output)
        self.scalars = event.scalars

    def at(self, number: int) -> Tensor:
        """An input at the bad elements; the whole input where the shapes don't match."""
        if number >= len(self.inputs):
            return torch.zeros(0)
        tensor = self.inputs[number]
        if element(tensor, (0,) * self.output.dim(), tuple(self.output.shape)) is None:
            return tensor.flatten()
        return tensor.expand_as(self.output)[self.bad]

    def any(self, number: int, test: Callable[[Tensor], Tensor]) -> bool:
        values = self.at(number)
        values = values.abs() if values.is_complex() else values  # which have no order
        return values.numel() > 0 and bool(test(values).any())

    def largest(self) -> float:
        """The magnitude of the input: at the bad elements, if known; for a product, of its factors."""
        numbers = range(len(self.inputs))
        if is_elementwise(self.event.inner_op):
            parts = [self.at(n) for n in numbers]
        elif self.event.inner_op in CONTRACTIONS:
            parts = factors(self.event.inner_op, self.inputs)
        else:
            parts = self.inputs[:2] if self.event.inner_op == "mse_loss" else self.inputs[:1]
        return max((_size(t) for t in parts), default=0.0)

    def highest(self) -> float:
        """The largest number with its sign, where the result is bad."""
        values = self.at(0)
        values = values[torch.isfinite(values)] if values.is_floating_point() else values
        return float(values.max()) if values.numel() and not values.is_complex() else self.largest()

    @property
    def limit(self) -> float:
        """The largest number that the result's dtype can represent."""
        floating = self.output.is_floating_point() or self.output.is_complex()
        return torch.finfo(self.event.output.dtype).max if floating else math.inf

    @property
    def dtype(self) -> str:
        return str(self.event.output.dtype).removeprefix("torch.")

    @property
    def wider(self) -> str:
        """What helps a number that is too large for a narrow dtype; float32 has no wider alternative."""
        narrow = self.dtype == "float16" or self.dtype.startswith("float8")
        return ", or compute this in float32" if narrow else ""


@dataclass(frozen=True)
class Reason:
    """One way to fail."""

    ops: tuple[str, ...]
    phases: tuple[str, ...]
    fits: Callable[[FailedOp], bool]
    why: str
    fix: str


def _size(values: Tensor) -> float:
    """The largest finite number, without its sign."""
    values = values.flatten().abs()
    values = values[torch.isfinite(values)]
    return float(values.max()) if values.numel() else 0.0


def _zero(values: Tensor) -> Tensor:
    return values == 0


def _negative(values: Tensor) -> Tensor:
    return values < 0


def _small(values: Tensor) -> Tensor:
    return values.abs() < 1e-30


def _zero_divisor(op: FailedOp) -> bool:
    if len(op.inputs) > 1:
        return op.any(1, _zero)
    return any(s == 0 for s in op.scalars)


def _both_zero(op: FailedOp) -> bool:
    return _zero_divisor(op) and op.any(0, _zero) and op.event.result == "nan"


def _overflows(op: FailedOp) -> bool:
    return op.event.result == "inf" or bool(torch.isinf(op.output).any())


def _masked_row(op: FailedOp) -> bool:
    return any(bool(torch.isneginf(t).any()) for t in op.inputs)


def _one_element(op: FailedOp) -> bool:
    return bool(op.inputs) and op.inputs[0].numel() <= max(op.output.numel(), 1)


def _empty(op: FailedOp) -> bool:
    return bool(op.inputs) and op.inputs[0].numel() == 0


def _any_zero(op: FailedOp) -> bool:
    return any(op.any(n, _small) for n in range(len(op.inputs))) or any(s == 0 for s in op.scalars)


def _has_infinity(op: FailedOp) -> bool:
    return any(bool(torch.isinf(t).any()) for t in op.inputs if t.is_floating_point())


def _gives_nan(op: FailedOp) -> bool:
    return op.event.result == "nan"


def _forward(*ops: str) -> dict[str, tuple[str, ...]]:
    return {"ops": ops, "phases": ("forward",)}


def _backward(*ops: str) -> dict[str, tuple[str, ...]]:
    return {"ops": ops, "phases": ("backward",)}


LOGS = ("log", "log2", "log10")
_HIGH_VALUES = "keep the values smaller (normalise, scale, clip){wider}"
_SAFE_LOG = "torch.log(x.clamp(min=1e-8)), or the stable form: log_softmax, logsigmoid, log1p"

REASONS: tuple[Reason, ...] = (
    Reason(
        **_forward(*LOGS),
        fits=lambda k: k.any(0, _negative),
        why="the logarithm of a negative number is undefined",
        fix="make the argument positive before the log: softplus, exp, or clamp(min=1e-8)",
    ),
    Reason(
        **_forward(*LOGS),
        fits=lambda k: k.any(0, _zero),
        why="the logarithm of 0 is -infinity",
        fix=_SAFE_LOG,
    ),
    Reason(
        **_forward("log1p"),
        fits=lambda k: k.any(0, lambda v: v <= -1),
        why="log1p of a number ≤ -1 is undefined",
        fix="clamp the argument: x.clamp(min=-1 + 1e-6)",
    ),
    Reason(
        **_forward("sqrt", "rsqrt"),
        fits=lambda k: k.any(0, _negative),
        why="the square root of a negative number is undefined",
        fix="clamp before the root: torch.sqrt(x.clamp(min=0) + 1e-8)",
    ),
    Reason(
        **_forward("rsqrt", "reciprocal"),
        fits=lambda k: k.any(0, _zero),
        why="one over 0 is infinite",
        fix="add a small number to the divisor: 1 / (x + 1e-8)",
    ),
    Reason(
        **_forward("div"),
        fits=_both_zero,
        why="0 divided by 0 is NaN",
        fix="add a small number to the divisor, x / (y + 1e-8), or divide only where it is not 0",
    ),
    Reason(
        **_forward("div"),
        fits=_zero_divisor,
        why="division by 0",
        fix="add a small number to the divisor, x / (y + 1e-8), or divide only where it is not 0",
    ),
    Reason(
        **_forward("div", "reciprocal"),
        fits=lambda k: len(k.inputs) > 1 and k.any(1, lambda v: v.abs() < 1e-6),
        why="division by a number so small that the result does not fit",
        fix="add a small number to the divisor: x / (y + 1e-8)",
    ),
    Reason(
        **_forward("exp", "exp2", "expm1"),
        fits=_overflows,
        why="the exponential of {highest:.4g} is more than {dtype} can hold ({exp_limit})",
        fix="subtract the maximum before exp, or use the stable form: softmax, logsumexp, softplus; or clamp",
    ),
    Reason(
        **_forward("sinh", "cosh"),
        fits=_overflows,
        why="{op} of a number of magnitude {largest:.4g} is more than {dtype} can hold ({exp_limit})",
        fix="clamp the argument",
    ),
    Reason(
        **_forward("cast"),
        fits=_overflows,
        why="{largest:.4g} does not fit into {dtype}, whose largest value is {limit:.5g}",
        fix="keep this part in float32 (autocast does for most such operations), use bfloat16, or scale down",
    ),
    Reason(
        **_forward("pow"),
        fits=lambda k: k.any(0, _zero) and any(s < 0 for s in k.scalars),
        why="0 to a negative power is infinite",
        fix="add a small number to the base: (x + 1e-8) ** p",
    ),
    Reason(
        **_forward("pow"),
        fits=lambda k: k.any(0, _negative) and k.event.result == "nan",
        why="a negative number to a fractional power is undefined",
        fix="make the base positive: x.abs() ** p, or x.clamp(min=0) ** p",
    ),
    Reason(
        **_forward("softmax", "log_softmax", "scaled_dot_product_attention", "logsumexp"),
        fits=_masked_row,
        why="a whole row is -infinity: all of it is masked, and softmax has nothing to choose from",
        fix="leave at least one position unmasked in every row, or mask with a large finite number (-1e9)",
    ),
    Reason(
        **_forward("nll_loss"),
        fits=_masked_row,
        why="the target's class has a probability of 0 (its logit is -infinity), and minus the log of that "
        "is infinite",
        fix="do not mask the class that is the target, or mask with a large finite number (-1e4)",
    ),
    Reason(
        **_forward("nll_loss"),
        fits=_gives_nan,
        why="the mean over no targets is 0 / 0: all are ignored (ignore_index), or the batch is empty",
        fix="skip batches without a target, or use reduction='sum' and divide by a count of at least 1",
    ),
    Reason(
        **_forward("mean", "nanmean"),
        fits=_empty,
        why="the mean of no elements is 0 / 0",
        fix="skip empty selections: if mask.any(), or divide the sum by count.clamp(min=1)",
    ),
    Reason(
        **_forward("var", "std", "var_mean", "std_mean", "batch_norm"),
        fits=_one_element,
        why="the variance of a single element is 0 / 0",
        fix="use unbiased=False (correction=0), or make sure there is more than one element (drop_last=True)",
    ),
    Reason(
        **_forward("acos", "asin", "acosh", "atanh"),
        fits=lambda k: True,
        why="{op} is undefined there: its argument has magnitude {largest:.6g}",
        fix="clamp the argument inside the edge: x.clamp(-1 + 1e-6, 1 - 1e-6)",
    ),
    Reason(
        **_forward("mul", "matmul", "linear"),
        fits=lambda k: _has_infinity(k) and k.event.result == "nan",
        why="0 times infinity is NaN: a masked value (-inf) was multiplied by 0",
        fix="use torch.where or masked_fill with a finite number instead of multiplying by a mask",
    ),
    Reason(
        **_forward("add", "sub"),
        fits=lambda k: _has_infinity(k) and k.event.result == "nan",
        why="infinity minus infinity is NaN",
        fix="mask with a large finite number (-1e9) instead of infinity",
    ),
    Reason(
        ops=tuple(CONTRACTIONS),
        phases=BOTH,
        fits=_overflows,
        why="the products add up to more than {dtype} can hold ({limit:.5g}); factors reach {largest:.4g}",
        fix=_HIGH_VALUES,
    ),
    Reason(
        ops=("sum", "mean", "mul", "add", "sub", "pow", "cumsum", "prod", "norm", "mse_loss", "cumprod"),
        phases=("forward",),
        fits=_overflows,
        why="the result is more than {dtype} can hold ({limit:.5g}); the inputs reach {largest:.4g}",
        fix=_HIGH_VALUES,
    ),
    Reason(
        **_backward("sqrt", "norm", "linalg_norm", "cdist"),
        fits=_any_zero,
        why="the derivative of a square root at 0 is infinite",
        fix="keep it away from 0: torch.sqrt(x + 1e-8); for a norm, (x * x).sum(dim).add(1e-8).sqrt()",
    ),
    Reason(
        **_backward("pow"),
        fits=_any_zero,
        why="the derivative of a power below 1 is infinite at 0",
        fix="keep the base away from 0: (x + 1e-8) ** p",
    ),
    Reason(
        **_backward(*LOGS, "reciprocal", "rsqrt"),
        fits=_any_zero,
        why="the derivative of {op} at 0 is infinite",
        fix="keep it away from 0 before the operation: x.clamp(min=1e-8)",
    ),
    Reason(
        **_backward("div"),
        fits=_any_zero,
        why="the derivative of a division is infinite where the divisor is 0",
        fix="replace the divisor before dividing: torch.where(y == 0, 1.0, y), or y + 1e-8",
    ),
    Reason(
        **_backward("acos", "asin", "atanh", "acosh"),
        fits=lambda k: True,
        why="the derivative of {op} is infinite at the edge, where its argument is 1 or -1",
        fix="clamp the argument inside the edge: x.clamp(-1 + 1e-6, 1 - 1e-6)",
    ),
    Reason(
        **_backward("std", "var", "batch_norm"),
        fits=_any_zero,
        why="the derivative of a standard deviation is infinite where all elements are equal, or there "
        "is only one",
        fix="torch.sqrt(x.var(...) + 1e-8), and more than one element",
    ),
    Reason(
        **_backward("cast"),
        fits=_overflows,
        why="the gradient, up to {largest:.4g}, does not fit into {dtype} (largest {limit:.5g})",
        fix="a lower loss scale (GradScaler finds it), bfloat16, or float32 for this part",
    ),
    Reason(
        **_backward(
            "mul", "exp", "add", "sum", "mean", "sqrt", "norm", "linalg_norm", "std", "var", *LOGS, "div"
        ),
        fits=_overflows,
        why="the gradient becomes more than {dtype} can hold ({limit:.5g})",
        fix="clip or scale the values before{wider}",
    ),
    Reason(
        **_backward("mul"),
        fits=_has_infinity,
        why="0 times infinity is NaN",
        fix="use torch.where with safe arguments instead of multiplying by a mask",
    ),
)

_EXP_LIMITS = {
    "float32": "above 88.7",
    "float16": "above 11.09",
    "bfloat16": "above 88.7",
    "float64": "above 709.8",
}


def explain(event: NonFiniteEvent) -> tuple[str, str]:
    """Why, and what to do about it."""
    op = FailedOp(event)
    words = {
        "op": event.spot.op,
        "dtype": op.dtype,
        "limit": op.limit,
        "largest": op.largest(),
        "highest": op.highest(),
        "wider": op.wider,
        "exp_limit": _EXP_LIMITS.get(op.dtype, ""),
    }
    if event.spot.custom is not None:
        what = "backward" if event.phase == "backward" else "forward"
        name = event.spot.custom
        return (
            f"the {what} of the custom function {name} produces it ({event.inner_op}) from finite values",
            f"check {name}.{what} where its input is 0 or very large; torch.autograd.gradcheck helps",
        )
    for reason in REASONS:
        if event.phase in reason.phases and event.spot.op in reason.ops and reason.fits(op):
            return reason.why.format(**words), reason.fix.format(**words)
    why, fix = _in_general(event, op)
    return why, fix.format(**words)


def _in_general(event: NonFiniteEvent, op: FailedOp) -> tuple[str, str]:
    if event.result == "inf":
        why = f"the result is more than {op.dtype} can hold ({op.limit:.5g})"
        return why, _HIGH_VALUES
    inner = f" ({event.inner_op} in it)" if event.phase == "backward" else ""
    why = f"finite inputs of magnitude up to {op.largest():.4g} give NaN{inner}"
    return why, "check the inputs below: one of them is outside the domain of this operation"
