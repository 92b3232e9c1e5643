"""Which tensors of a batch go into a model and which into the loss: traced through one run of the step.

A tensor of the batch is followed through views, casts and arithmetic until it meets something that
gradients flow through. Where that happens tells its role: inside a model, as the target of a loss
function, or outside any model, where only the loss is left to compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from clew.hooks.collect_loop.loss_calls import LOSSES
from clew.labs.snapshot.step_batch import BOTH, INPUT, OTHER, TARGET
from clew.measure.nested_tensors import tensors_in


class RoleFlow(TorchFunctionMode):
    """Follows the tensors of a batch while the step runs."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        super().__init__()
        self._held: list[Tensor] = []  # an id is valid only while its tensor lives
        self._marks: dict[int, frozenset[int]] = {}
        self._storages: dict[int, frozenset[int]] = {}
        self._uses: list[set[str]] = [set() for _ in tensors]
        self._given: set[int] = set()  # to a model as it was
        self._depth = 0
        for number, tensor in enumerate(tensors):
            self._mark(tensor, frozenset([number]))
            place = _place(tensor)
            if place:
                self._storages[place] = self._storages.get(place, frozenset()) | {number}

    @contextmanager
    def watching(self, models: Mapping[str, nn.Module]) -> Iterator[RoleFlow]:
        """Enter the mode, with the models' boundaries known."""
        handles = [m.register_forward_pre_hook(self._enter, with_kwargs=True) for m in models.values()]
        handles += [m.register_forward_hook(self._leave, always_call=True) for m in models.values()]
        try:
            with self:
                yield self
        finally:
            for handle in handles:
                handle.remove()

    def roles(self) -> tuple[str, ...]:
        """One for each tensor; one passed to a model without being seen in use there is an input too."""
        found = []
        for number, uses in enumerate(self._uses):
            kinds = uses or ({INPUT} if number in self._given else set())
            found.append(BOTH if len(kinds) == 2 else next(iter(kinds), OTHER))
        return tuple(found)

    def _mark(self, tensor: Tensor, marks: frozenset[int]) -> None:
        self._held.append(tensor)
        self._marks[id(tensor)] = marks | self._marks.get(id(tensor), frozenset())

    def _marks_of(self, values: Any) -> frozenset[int]:
        leaves = tensors_in(values)
        return frozenset().union(*(self._marks_on(leaf) for leaf in leaves))

    def _marks_on(self, tensor: Tensor) -> frozenset[int]:
        known = self._marks.get(id(tensor))
        if known is None and not tensor.requires_grad:  # it may have come through an array
            known = self._storages.get(_place(tensor))
        return known or frozenset()

    def _enter(self, _: nn.Module, args: Any, kwargs: Any) -> None:
        self._depth += 1
        self._given |= self._marks_of((args, kwargs))

    def _leave(self, *_: Any) -> None:
        self._depth = max(self._depth - 1, 0)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        marks = self._marks_of((args, kwargs))
        if marks:
            self._follow(func, args, kwargs, result, marks)
        return result

    def _follow(self, func: Any, args: Any, kwargs: Any, result: Any, marks: frozenset[int]) -> None:
        if getattr(func, "__name__", "") in LOSSES:
            targets = (args[1:], {k: v for k, v in kwargs.items() if k not in ("input", "weight")})
            self._use(self._marks_of(targets), TARGET)
            self._use(self._marks_of((args[:1], kwargs.get("input"))), self._role(args, kwargs))
            return
        outputs = tensors_in(result)
        if any(out.requires_grad for out in outputs):
            self._use(marks, self._role(args, kwargs))
            return
        for out in outputs:
            self._mark(out, marks)

    def _role(self, args: Any, kwargs: Any) -> str:
        if self._depth:
            return INPUT
        leaves = tensors_in((args, kwargs))
        computed = any(leaf.grad_fn is not None for leaf in leaves)
        return TARGET if computed else INPUT  # with bare parameters it is a model without a module

    def _use(self, marks: frozenset[int], role: str) -> None:
        for number in marks:
            self._uses[number].add(role)


def _place(tensor: Tensor) -> int:
    """The address of its memory; 0 if it has no ordinary storage."""
    if type(tensor) is not Tensor or tensor.layout is not torch.strided:
        return 0
    return tensor.untyped_storage().data_ptr()
