"""Compares autograd's directional derivative with finite differences at shrinking step sizes.

Near kinks the differences approach the derivative as the steps shrink, or disagree with each
other: then there is no verdict. Where they settle on a value and autograd gives another, autograd is
wrong. The user's own autograd functions are compared each alone, with the inputs it received in the step.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from clew.measure.nested_tensors import tensors_in
from clew.records.facts.network_experiment_facts import DerivativeComparison
from clew.records.site import Line

STEPS = (1e-5, 1e-6, 1e-7)  # of a tensor's size: in double precision all are exact to about 1e-8
JITTER = 1e-3  # of a tensor's size: away from the kinks at which weights often start, such as zero

SAME, WRONG, UNSURE = "same", "wrong", "unsure"


def size_of(tensor: Tensor) -> float:
    """The typical value, by which steps are scaled."""
    if not tensor.numel():
        return 1e-2
    return max(float(tensor.detach().double().square().mean().sqrt()), 1e-2)


def jitter(tensors: list[Tensor], generator: torch.Generator) -> None:
    with torch.no_grad():
        for tensor in tensors:
            tensor.add_(drawn(tensor, generator) * (JITTER * size_of(tensor)))


def drawn(tensor: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor.device)


def padding_rows(models: Iterable[nn.Module]) -> dict[int, int]:
    """The padding rows of embedding tables, by the id of their weights."""
    tables = [m for top in models for m in top.modules() if isinstance(m, (nn.Embedding, nn.EmbeddingBag))]
    return {id(m.weight): m.padding_idx for m in tables if m.padding_idx is not None}


def free_direction(tensor: Tensor, generator: torch.Generator, padding: Mapping[int, int]) -> Tensor:
    """A random direction in which it may move: an embedding's padding has no gradient by design."""
    direction = drawn(tensor, generator)
    if id(tensor) in padding:
        direction[padding[id(tensor)]] = 0.0
    return direction


def compared(
    tensor: Tensor,
    gradient: Tensor,
    direction: Tensor,
    value: Callable[[], float],
    tolerance: float,
    floor: float = 0.0,
) -> DerivativeComparison:
    """Compare `gradient` with finite differences of `value()`, moving `tensor`, which is restored.

    Slopes below `floor` count as zero.
    """
    size = size_of(tensor)
    slope = float((gradient.double() * direction).sum()) * size
    typical = max(float(gradient.double().norm()) * size, floor)
    found: list[float] = []
    for step in STEPS:
        found.append(_slope(tensor, direction * size, step, value))
        error = _relative(slope, found[-1], typical)
        if error <= tolerance:
            return DerivativeComparison(SAME, slope, found[-1], error)
    settled = all(abs(f - found[-1]) <= 0.1 * abs(found[-1] - slope) for f in found)
    return DerivativeComparison(WRONG if settled else UNSURE, slope, found[-1], error)


def _slope(tensor: Tensor, move: Tensor, step: float, value: Callable[[], float]) -> float:
    start = tensor.detach().clone()
    ends: list[float] = []
    try:
        for sign in (1.0, -1.0):
            with torch.no_grad():
                tensor.copy_(start + sign * step * move)
            ends.append(value())
    finally:
        with torch.no_grad():
            tensor.copy_(start)
    return (ends[0] - ends[1]) / (2 * step)


def _relative(slope: float, found: float, typical: float) -> float:
    scale = max(abs(slope), abs(found), typical)
    if scale == 0.0:
        return 0.0
    gap = abs(slope - found) / scale
    return gap if gap == gap else float("inf")


_MEANT = re.compile(
    r"ste$|straight|revers|quant|binar|round|sign|surrogate|spike|scale_?grad|grad_?scal", re.I
)
MOST = 4096  # elements of an input above which they are not tested one by one


@dataclass(frozen=True)
class FunctionCall:
    """One call of a Function: its arguments, in double precision."""

    function: type[Function]
    args: tuple[Any, ...]
    module: tuple[str | None, str | None]  # root and path
    needed: tuple[bool, ...]  # which arguments a gradient was wanted for


def functions_in(loss: Tensor) -> list[type[Function]]:
    """The user's Function classes in the graph of a loss."""
    found: dict[type[Function], None] = {}
    waiting: list[Any] = [loss.grad_fn]
    seen: set[Any] = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        kind = getattr(type(node), "_forward_cls", None)
        if kind is not None and not kind.__module__.startswith("torch."):
            found[kind] = None
        waiting += [child for child, _ in node.next_functions]
    return list(found)


@contextmanager
def recording(
    kinds: list[type[Function]], where: Callable[[], tuple[str | None, str | None]]
) -> Iterator[dict[type[Function], FunctionCall]]:
    """Records the first call of each of these while the step runs."""
    calls: dict[type[Function], FunctionCall] = {}
    own = [(kind, kind.__dict__.get("forward"), kind.forward) for kind in kinds]
    for kind, _, forward in own:
        kind.forward = staticmethod(_noting(kind, forward, calls, where))  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        for kind, written, _ in own:
            if written is None:
                del kind.forward
            else:
                kind.forward = written  # type: ignore[method-assign]


def _noting(kind: Any, forward: Any, calls: dict[Any, FunctionCall], where: Any) -> Callable[..., Any]:
    with_context = kind.setup_context is Function.setup_context

    def noted(*args: Any) -> Any:
        given = args[1:] if with_context else args
        if kind not in calls:
            needs = args[0].needs_input_grad if with_context else tuple(_floating(a) for a in given)
            kept = tuple(a.detach().clone() if isinstance(a, Tensor) else a for a in given)
            calls[kind] = FunctionCall(kind, kept, where(), tuple(needs))
        return forward(*args)

    return noted


def _floating(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def checked(call: FunctionCall, tolerance: float) -> tuple[DerivativeComparison | None, str | None]:
    """The worst of its inputs, and why a disagreement would be intended."""
    generator = torch.Generator().manual_seed(0)
    inputs = [a.detach().clone() if isinstance(a, Tensor) else a for a in call.args]
    wanted = [n for n, a in enumerate(inputs) if _floating(a) and call.needed[n]]
    for n in wanted:
        inputs[n] = inputs[n].double().requires_grad_()
    outputs = _outputs(call.function, inputs)
    if not outputs or not wanted:
        return None, None
    weights = [drawn(o, generator) for o in outputs]
    total = _weighted(outputs, weights)
    gradients = torch.autograd.grad(total, [inputs[n] for n in wanted], allow_unused=True)

    def value() -> float:
        return float(_weighted(_outputs(call.function, inputs), weights).detach())

    found = [
        compared(inputs[n], _or_zeros(g, inputs[n]), drawn(inputs[n], generator), value, tolerance)
        for n, g in zip(wanted, gradients, strict=True)
    ]
    worst = max(found, key=lambda c: (c.verdict == WRONG, c.verdict == UNSURE, c.error))
    return worst, _why_meant(call, inputs, wanted, outputs, worst)


def _or_zeros(gradient: Tensor | None, tensor: Tensor) -> Tensor:
    return torch.zeros_like(tensor) if gradient is None else gradient.detach()


def _outputs(function: Any, inputs: list[Any]) -> list[Tensor]:
    return [t for t in tensors_in(function.apply(*inputs)) if t.is_floating_point() and t.requires_grad]


def _weighted(outputs: list[Tensor], weights: list[Tensor]) -> Tensor:
    return torch.stack([(o.double() * w).sum() for o, w in zip(outputs, weights, strict=True)]).sum()


def _why_meant(
    call: FunctionCall,
    inputs: list[Any],
    wanted: list[int],
    outputs: list[Tensor],
    worst: DerivativeComparison,
) -> str | None:
    name = call.function.__name__
    if _MEANT.search(name):
        return "its name says that it changes the gradient"
    same = [inputs[n] for n in wanted if any(o.shape == inputs[n].shape for o in outputs)]
    if any(torch.equal(o.detach().double(), i.detach()) for o in outputs for i in same if o.shape == i.shape):
        return "its forward is the identity: it only changes the gradient"
    if abs(worst.finite) <= 1e-6 * abs(worst.autograd) or worst.verdict == UNSURE:
        return "its forward is a step function, which has no gradient"
    return None


def source_of(function: Any) -> Line:
    """File and line of a function's definition, below its decorators."""
    try:
        code = inspect.unwrap(function).__code__
    except AttributeError:
        return None, None
    first = code.co_firstlineno
    lines = (linecache.getline(code.co_filename, n) for n in range(first, first + 5))
    below = next((n for n, text in enumerate(lines) if text.lstrip().startswith(("def ", "async def "))), 0)
    return code.co_filename, first + below


def covers(function: Any, line: Line) -> bool:
    """Whether a line is in a function's body."""
    file, first = source_of(function)
    if first is None or line[1] is None or file != line[0]:
        return False
    lines = [number for *_, number in inspect.unwrap(function).__code__.co_lines() if number is not None]
    return first <= line[1] <= max(lines, default=first)
