"""Calls of torch's loss functions: their arguments and results; and losses written by hand."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clew.hooks.collect_layers.step_rows import SiteRows
from clew.hooks.collect_loop.batch_stats import Batches
from clew.hooks.collect_loop.loss_terms import Terms
from clew.hooks.collect_loop.model_outputs import Outputs
from clew.hooks.entry.sink import Sink, SiteTables
from clew.hooks.entry.user_line import user_line
from clew.measure.deferred_values import Late
from clew.measure.readable_tensors import has_values, shape_of
from clew.records import signals
from clew.records.facts.loss_facts import BroadcastFact, LossFact, LossFailedFact
from clew.records.site import Line, Site

MOST = 5  # failures reported: a program may catch them and go on

LOSSES = (
    "cross_entropy",
    "nll_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "kl_div",
    "gaussian_nll_loss",
    "poisson_nll_loss",
    "ctc_loss",
    "cosine_embedding_loss",
    "margin_ranking_loss",
    "hinge_embedding_loss",
    "triplet_margin_loss",
    "soft_margin_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
)
ELEMENTWISE = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"}  # these broadcast silently
INPUT_NAMES = (*signals.LOSS_INPUT.names, signals.LOSS_INPUT_SIMPLEX.name)
SIMPLEX = INPUT_NAMES.index(signals.LOSS_INPUT_SIMPLEX.name)
MOST_FACTS = 20  # per loss call: ragged batches change the shape every time
WALKED = 200  # autograd nodes between loss and model that are searched for a broadcast
WALKS = 8  # sampled steps in which that is done: the kinds of shapes in a program don't change


class Losses:
    """Records loss calls: facts once per call site and shape, statistics on sampled steps."""

    def __init__(self, sink: Sink, late: Late, batches: Batches, step: Callable[[], int]) -> None:
        self._sink = sink
        self._late = late
        self._batches = batches
        self._step = step
        self._signatures: dict[str, inspect.Signature] = {}
        self._facts: dict[Line, set[Any]] = {}
        self._pending = SiteRows(sink, late)
        self._broadcasts: set[Any] = set()
        self._walks = 0
        self._eval: dict[Site, list[float]] = {}
        self._tables = SiteTables(sink)
        self.outputs = Outputs(sink, late, step)
        self.terms = Terms(sink, late)
        self.failures = LossFailures(sink, step)

    def called(self, kind: str, function: Any, args: Any, kwargs: Any, result: Any, where: Line) -> None:
        """A loss function returned, in training and on a sampled step."""
        given = self._bind(kind, function, args, kwargs)
        prediction, target = given.get("input"), given.get("target")
        if not isinstance(prediction, Tensor):
            return
        site = Site(op=kind, file=where[0], line=where[1], phase="train")
        self._fact(site, kind, prediction, target, given)
        if has_values(prediction):
            self._measure(site, prediction, kind)
        if isinstance(target, Tensor):
            self._batches.targets(site, target)
        self.outputs.measure(site, kind, prediction, target, given, result)
        self.terms.note(site, result)

    def failed(self, kind: str, function: Any, args: Any, kwargs: Any, error: BaseException) -> None:
        """A loss function raised: the script is likely to end here."""
        self.failures.failed(kind, self._bind(kind, function, args, kwargs), error)

    def evaluated(self, kind: str, result: Any, where: Line) -> float:
        """A loss outside training; the section's mean is written at the next step. Returns the loss, or 0."""
        if isinstance(result, Tensor) and result.is_cpu and has_values(result) and result.numel() == 1:
            site = Site(op=kind, file=where[0], line=where[1], phase="eval")
            total = self._eval.setdefault(site, [0.0, 0.0])
            value = float(result.detach())
            total[0] += value
            total[1] += 1
            return value
        return 0.0

    def end_of_evaluation(self, step: int) -> None:
        for site, (total, count) in self._eval.items():
            self._sink.row(self._tables.table([signals.LOSS.name], site), step, (total / count,))
        self._eval.clear()

    def commit(self, step: int) -> None:
        self._pending.commit(step)
        self.outputs.commit(step)
        self.terms.commit(step)

    def discard(self) -> None:
        self._pending.discard()
        self.outputs.discard()
        self.terms.discard()

    def find_broadcast(self, loss: Tensor, outputs: list[Any], where: Line) -> None:
        """Find (N, 1) against (N,) in a hand-written loss, in the graph below the loss."""
        if self._walks >= WALKS or loss.grad_fn is None:
            return
        self._walks += 1
        for name, shape, result in hand_broadcasts(loss.grad_fn, outputs):
            self._broadcast(name, where, shape, other_side(shape), result)

    def _bind(self, kind: str, function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
        signature = self._signatures.get(kind)
        if signature is None:
            signature = self._signatures[kind] = inspect.signature(function)
        given = signature.bind_partial(*args, **kwargs).arguments
        for ours, theirs in (("input", "anchor"), ("input", "log_probs"), ("target", "targets")):
            if ours not in given and theirs in given:
                given[ours] = given[theirs]
        return dict(given)

    def _fact(self, site: Site, kind: str, prediction: Tensor, target: Any, given: dict[str, Any]) -> None:
        given_shape = shape_of(prediction)
        shape = list(shape_of(target)) if isinstance(target, Tensor) else None
        known = self._facts.setdefault((site.file, site.line), set())
        key = (given_shape[1:], tuple(shape[1:]) if shape else None)
        if key in known or len(known) >= MOST_FACTS:
            return
        known.add(key)
        fact = LossFact(
            kind=kind,
            file=site.file,
            line=site.line,
            input_shape=tuple(given_shape),
            input_dtype=str(prediction.dtype).removeprefix("torch."),
            target_shape=None if shape is None else tuple(shape),
            target_dtype=str(target.dtype).removeprefix("torch.") if isinstance(target, Tensor) else None,
            reduction=str(given.get("reduction", "mean")),
            options={
                k: v if isinstance(v, (int, float, str, bool)) else "given"
                for k, v in given.items()
                if k not in ("input", "target", "reduction") and v is not None
            },
        )
        fact.write(self._sink, self._step())
        if kind in ELEMENTWISE and shape is not None and grows(given_shape, tuple(shape)):
            result = torch.broadcast_shapes(given_shape, tuple(shape))
            self._broadcast(kind, (site.file, site.line), given_shape, tuple(shape), tuple(result))

    def _broadcast(self, kind: str, where: Line, shape: Any, target: Any, result: Any) -> None:
        key = (kind, *where)
        if key in self._broadcasts:
            return
        self._broadcasts.add(key)
        other = None if target is None else tuple(target)
        fact = BroadcastFact(kind, *where, tuple(shape), other, tuple(result))
        fact.write(self._sink, self._step())

    def _measure(self, site: Site, prediction: Tensor, kind: str) -> None:
        row = np.full(len(INPUT_NAMES), np.nan)
        self._late.stats(prediction.detach(), row)
        if kind in ("cross_entropy", "nll_loss"):
            self._late.number(simplex_share(prediction), partial(row.__setitem__, SIMPLEX))
        self._pending.put(INPUT_NAMES, site, row)


def grows(prediction: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether broadcasting creates more elements than either side has: never intended in a loss."""
    try:
        result = torch.broadcast_shapes(prediction, target)
    except RuntimeError:
        return False
    return _count(tuple(result)) > max(_count(prediction), _count(target))


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def simplex_share(prediction: Tensor) -> float | Tensor:
    """Share of rows over the class axis that are probabilities: none negative, sum one."""
    if prediction.dim() == 0 or prediction.shape[1 if prediction.dim() > 1 else 0] < 2:
        return float("nan")
    rows = prediction.detach()
    rows = rows.unsqueeze(0) if rows.dim() == 1 else rows[:256]
    sums = rows.float().sum(1)
    tolerance = 0.02 if prediction.dtype in (torch.float16, torch.bfloat16) else 1e-3
    good = ((sums - 1).abs() < tolerance) & (rows.amin(1) >= 0)
    return good.float().mean()


def hand_broadcasts(node: Any, outputs: list[Any]) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """Element-wise ops of the model's (N, 1) or (N,) output with a constant that return (N, N)."""
    heads = {fn: shape for fn, shape in outputs if is_column(shape)}
    if not heads:
        return
    # Not into the model: reading what its nodes saved could recompute a checkpoint.
    seen, queue = {fn for fn, _ in outputs}, [node]
    while queue and len(seen) < WALKED + len(outputs):
        node = queue.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        result = saved_shape(node)
        for child, _ in node.next_functions:
            queue.append(child)
            name = constant_operand(child)
            if name is None or result is None:
                continue
            for operand, _ in child.next_functions:
                shape = heads.get(operand)
                size = max(shape) if shape else 0
                if shape and size > 1 and result == (size, size):
                    yield name, shape, result


def other_side(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The other operand with which (N, 1) or (N,) gave (N, N).

    Autograd saves nothing of a subtracted constant. Labels come as (N,) rather than as (1, N), which gives
    the same result.
    """
    if len(shape) == 1:
        return (shape[0], 1)
    return (shape[0],) if shape[1] == 1 else None


def is_column(shape: tuple[int, ...]) -> bool:
    return len(shape) == 1 or (len(shape) == 2 and 1 in shape)


def constant_operand(node: Any) -> str | None:
    """The name of an element-wise binary op with only one differentiable side."""
    name = type(node).__name__.removesuffix("Backward0").lower() if node is not None else ""
    if name not in ("sub", "rsub", "add", "mul", "div"):
        return None
    return name if sum(operand is not None for operand, _ in node.next_functions) == 1 else None


def saved_shape(node: Any) -> tuple[int, ...] | None:
    """The shape of an autograd node's input, if the node saved it."""
    sizes = getattr(node, "_saved_self_sym_sizes", None)
    if sizes is not None:
        return tuple(int(s) for s in sizes)
    try:
        saved = getattr(node, "_saved_self", None)
    except RuntimeError:  # freed by an earlier backward
        return None
    return tuple(saved.shape) if isinstance(saved, Tensor) else None


class LossFailures:
    """Writes a `loss_failed` fact when a loss function raises."""

    def __init__(self, sink: Sink, step: Callable[[], int]) -> None:
        self._sink = sink
        self._step = step
        self._reported = 0

    def failed(self, kind: str, given: dict[str, Any], error: BaseException) -> None:
        if self._reported >= MOST:
            return
        self._reported += 1
        file, line = user_line()
        tensors = {**described("input", given.get("input")), **described("target", given.get("target"))}
        raised = type(error).__name__, str(error)[:500]
        LossFailedFact(kind, file, line, *raised, **tensors).write(self._sink, self._step())


def described(name: str, value: Any) -> dict[str, Any]:
    """Shape, dtype and range of a tensor; values are not read from a device that has just failed."""
    if not isinstance(value, Tensor):
        return {}
    data: dict[str, Any] = {
        f"{name}_shape": tuple(shape_of(value)),
        f"{name}_dtype": str(value.dtype).removeprefix("torch."),
    }
    if value.is_cpu and has_values(value) and value.numel() and not value.is_complex():
        flat = value.detach()
        data[f"{name}_min"] = float(flat.min())
        data[f"{name}_max"] = float(flat.max())
        if value.is_floating_point():
            data[f"{name}_nan"] = bool(flat.isnan().any())
    return data
