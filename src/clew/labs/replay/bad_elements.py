"""The elements and samples that are responsible for a non-finite result.

Only if an operation is elementwise does an element of the result point to one element of an
input. An element of a matrix product points to a row and a column.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from clew.labs.replay.microscope import NonFiniteEvent
from clew.labs.snapshot.nonfinite_values import MOST_ELEMENTS, Culprit, bad_indices, dense, element

CASTS = frozenset({"cast", "copy"})  # elementwise, though torch does not mark them so
FIRST_TWO = frozenset({"conv", "einsum"})  # operations whose factors come first
LAST_TWO = frozenset({"linear", "matmul"})  # the term added to the product comes before them
PRODUCTS = FIRST_TWO | LAST_TWO


@cache
def is_elementwise(op: str) -> bool:
    """Whether torch marks the operation of this name as elementwise."""
    packets = [getattr(torch.ops.aten, name, None) for name in (op, f"{op}_")]
    overloads = [getattr(p, name) for p in packets if p is not None for name in p.overloads()]
    return op in CASTS or any(torch.Tag.pointwise in overload.tags for overload in overloads)


def factors(op: str, inputs: list[Tensor]) -> list[Tensor]:
    """The factors of a product, without the bias that is added; all inputs of any other operation."""
    if op in FIRST_TWO:
        return inputs[:2]
    return inputs[-2:] if op in LAST_TWO else inputs


def with_elements(made: Culprit, event: NonFiniteEvent, batch: int | None) -> Culprit:
    """The culprit with its responsible elements."""
    indices, count = bad_indices(event.output)
    made = _with_samples(replace(made, bad_count=count), event, batch)
    position = responsible(event)
    if position is not None and indices:
        return _into_input(made, event, position)
    if indices and not indices[0]:  # a single number has no elements to point to
        return made
    notes = (*made.notes, *_largest_factors(event, indices[0])) if indices else made.notes
    return replace(made, elements=indices, element_count=count, elements_of="the result", notes=notes)


def _into_input(made: Culprit, event: NonFiniteEvent, position: int) -> Culprit:
    tensor = dense(event.inputs[position])
    places = _own_places(tensor, ~torch.isfinite(dense(event.output)))
    shown = tuple(tuple(int(i) for i in row) for row in places[:MOST_ELEMENTS])
    if shown and not shown[0]:
        return made
    name = made.op if event.phase == "forward" else f"{event.inner_op}, in the gradient of {made.op},"
    return replace(
        made,
        elements=shown,
        element_values=tuple(float(tensor[i]) for i in shown if not tensor.is_complex()),
        element_count=len(places),
        elements_of=f"input {position} of {name}",
    )


def _own_places(tensor: Tensor, bad: Tensor) -> Tensor:
    """The elements of an input, broadcast to the shape of the result, that produced the bad elements."""
    return bad.to(torch.float64).sum_to_size(tensor.shape).nonzero()


def responsible(event: NonFiniteEvent) -> int | None:
    """The input to point into: the divisor of a division, else the first with the result's shape."""
    shape = tuple(event.output.shape)
    op = event.inner_op
    if not is_elementwise(op) or not all(t.layout is torch.strided for t in (event.output, *event.inputs)):
        return None
    first = (0,) * len(shape)
    if op == "div" and len(event.inputs) > 1 and element(event.inputs[1], first, shape) is not None:
        return 1
    return next((n for n, t in enumerate(event.inputs) if tuple(t.shape) == shape), None)


def _largest_factors(event: NonFiniteEvent, index: tuple[int, ...]) -> list[str]:
    """For a product: the magnitude of the row and of the column that were multiplied there."""
    op = event.inner_op
    left, right = [*factors(op, list(event.inputs)), None, None][:2] if op in PRODUCTS else (None, None)
    if left is None or right is None or left.dim() < 2 or right.dim() < 2:
        return []
    numbers = [n for n, t in enumerate(event.inputs) if t is left or t is right]
    if op == "conv":
        parts = [(f"sample {index[0]}", left[index[0]]), (f"channel {index[1]}", right[index[1]])]
    elif len(index) >= 2 and left.dim() == right.dim() == len(index):
        row = index[:-1]
        column: Any = (*index[:-2], slice(None), index[-1])
        parts = [
            (f"row {list(row) if len(row) > 1 else row[0]}", left[row]),
            (f"column {index[-1]}", right[column]),
        ]
    else:
        return []
    parts_reached = [
        f"{what} of input {n} reaches {float(t.abs().max()):.4g}"
        for n, (what, t) in zip(numbers, parts, strict=False)
        if t.numel()
    ]
    return [f"there, {', '.join(parts_reached)}"] if parts_reached else []


def _with_samples(made: Culprit, event: NonFiniteEvent, batch: int | None) -> Culprit:
    rows = _rows(event, batch) if batch else None
    if rows is None or not len(rows):
        return made
    shown = tuple(int(row) for row in rows[:MOST_ELEMENTS])
    return replace(made, samples=shown, sample_count=len(rows), batch=batch or 0)


def _rows(event: NonFiniteEvent, batch: int) -> Tensor | None:
    """The samples of the batch with non-finite values, if the first dimension is the batch dimension."""
    values = _picked(event)
    values = event.output if values is None else values
    if values.layout is not torch.strided or not values.dim() or len(values) % batch or not len(values):
        return None
    # Several rows per sample, such as attention heads; a matrix with this many rows may be a weight.
    if len(values) != batch and (values.dim() < 3 or event.phase != "forward"):
        return None
    bad = ~torch.isfinite(dense(values)).reshape(batch, -1)
    return bad.any(1).nonzero().flatten()


def _picked(event: NonFiniteEvent) -> Tensor | None:
    """What a negative log-likelihood reads from the scores: one number per target."""
    if event.inner_op != "nll_loss" or len(event.inputs) < 2:
        return None
    scores, target = event.inputs[:2]
    if scores.dim() != 2 or target.dim() != 1 or target.is_floating_point() or len(target) != len(scores):
        return None
    known = (target >= 0) & (target < scores.shape[1])  # not those to be ignored
    taken: Any = scores.detach().gather(1, target.clamp(0, scores.shape[1] - 1)[:, None])[:, 0]
    return torch.where(known, taken, 0.0)
