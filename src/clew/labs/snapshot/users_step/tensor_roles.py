"""What each tensor of a batch is: input or target, and which of its dimensions is the batch dimension.

The role is traced through one run of the step. A tensor of the batch is followed through views, casts and
arithmetic until it meets something that gradients flow through. Where that happens determines its role:
inside a model, as the target of a loss function, or outside any model, where only the loss is left to
compute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from clew.hooks.collect_loop.loss_calls import LOSSES
from clew.labs.snapshot.snapshot import hooked
from clew.labs.snapshot.step_batch import BOTH, INPUT, OTHER, TARGET
from clew.measure.nested_tensors import tensors_in

TIME_FIRST = (nn.RNNBase, nn.MultiheadAttention, nn.Transformer)  # unless they say `batch_first`


class RoleFlow(TorchFunctionMode):
    """Follows the tensors of a batch while the step runs."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        super().__init__()
        self._alive: list[Tensor] = []  # an id is valid only while its tensor lives
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
        with hooked(*handles), self:
            yield self

    def roles(self) -> tuple[str, ...]:
        """One for each tensor; one passed to a model without being seen in use there is an input too."""
        found = []
        for number, uses in enumerate(self._uses):
            kinds = uses or ({INPUT} if number in self._given else set())
            found.append(BOTH if len(kinds) == 2 else next(iter(kinds), OTHER))
        return tuple(found)

    def _mark(self, tensor: Tensor, marks: frozenset[int]) -> None:
        self._alive.append(tensor)
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


def sample_dims(
    batches: Sequence[Sequence[Tensor]],
    roles: Sequence[str],
    models: Iterable[nn.Module],
    batch_size: int | None,
    constant: Sequence[bool],
) -> tuple[int | None, ...]:
    """The batch dimension of each tensor of the batches (which are alike); None if it has none.

    `constant` are tensors that are the same objects in every batch, such as class weights.
    """
    main = _main(batches, roles, constant)
    if main is None:
        return tuple(None for _ in roles)
    dim = _of_main([b[main] for b in batches], batches, roles, models, batch_size)
    sizes = [int(b[main].shape[dim]) for b in batches]
    return tuple(
        None if constant[n] and not constant[main] else _alike([b[n] for b in batches], sizes, dim)
        for n in range(len(roles))
    )


def _main(batches: Sequence[Sequence[Tensor]], roles: Sequence[str], constant: Sequence[bool]) -> int | None:
    """The tensor that the batch size is read from: the first input that changes."""
    ranked = [
        (constant[n], role not in (INPUT, BOTH), role != TARGET, n)
        for n, role in enumerate(roles)
        if all(b[n].dim() for b in batches)
    ]
    return min(ranked)[-1] if ranked else None


def _of_main(
    tensors: Sequence[Tensor],
    batches: Sequence[Sequence[Tensor]],
    roles: Sequence[str],
    models: Iterable[nn.Module],
    batch_size: int | None,
) -> int:
    if min(t.dim() for t in tensors) < 2:
        return 0
    if batch_size is not None:
        fitting = [d for d in (0, 1) if _usual(tensors, d) == batch_size]
        if len(fitting) == 1:
            return fitting[0]
    labels = [n for n, role in enumerate(roles) if role == TARGET and batches[0][n].dim() == 1]
    lengths = [int(b[n].shape[0]) for b in batches for n in labels]
    if len(lengths) == len(tensors):
        fitting = [d for d in (0, 1) if [int(t.shape[d]) for t in tensors] == lengths]
        if len(fitting) == 1:
            return fitting[0]
    if batch_size is not None and _usual(tensors, 0) == batch_size:
        return 0
    return 1 if _takes_time_first(models) else 0


def _usual(tensors: Sequence[Tensor], dim: int) -> int:
    """The size of most batches: the last one of an epoch may be smaller."""
    return Counter(int(t.shape[dim]) for t in tensors).most_common(1)[0][0]


def _takes_time_first(models: Iterable[nn.Module]) -> bool:
    layers = [m for model in models for m in model.modules() if isinstance(m, TIME_FIRST)]
    return bool(layers) and not any(getattr(m, "batch_first", False) for m in layers)


def _alike(tensors: Sequence[Tensor], sizes: Sequence[int], dim: int) -> int | None:
    """The dimension whose sizes match those of the batches; if several do, the inputs' batch dimension."""
    fitting = [
        d
        for d in dict.fromkeys((dim, 0, 1))
        if all(t.dim() > d and int(t.shape[d]) == size for t, size in zip(tensors, sizes, strict=True))
    ]
    return fitting[0] if fitting else None
