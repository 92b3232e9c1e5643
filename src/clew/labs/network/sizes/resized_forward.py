"""Runs the same forward at a few other sizes: does it work there, and what are the output shapes?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import gcd
from typing import Any

import torch
from torch import Tensor, nn

from clew.labs.network.network_inputs import ForwardInputs
from clew.labs.network.sizes.size_formulas import Sizes
from clew.labs.network.tensor_info import described
from clew.labs.network.trace.op_tracer import ForwardTrace, ModuleCall
from clew.labs.network.trace.traced_forward import can_compute, for_real, without_computing
from clew.measure.nested_tensors import map_tensors, tensors_in

ENOUGH = 2  # other sizes of a name: with the first they show whether a size follows it in a straight line
MOST_TRIED = 10  # sizes per name; a model that fails at this many works for one only
MOST_NAMES = 4  # keeps the total near forty forwards on fake tensors, at worst
CHEAP = 10**9  # FLOPs of a forward that may be repeated with real values: a tenth of a second on one core

Shapes = list[tuple[int, ...]]
Seen = dict[Any, Shapes]  # by path and number of a call; RESULT for the result
RESULT = None


class ResizedForwards:
    """What was tried: sizes, and their output shapes. The first is what the user asked for."""

    def __init__(self, model: nn.Module, given: ForwardInputs, trace: ForwardTrace) -> None:
        self._model = model
        self._given = given
        self._run = self._runner(trace)
        self.tried: list[Sizes] = []
        self.seen: list[Seen] = []
        self.fixed: list[str] = []  # names for which other sizes fail

    @property
    def possible(self) -> bool:
        return self._run is not None and len(self._given.sizes) <= MOST_NAMES

    def vary(self, names: list[str]) -> None:
        """Each name alone, then all of them together."""
        base = self._given.sizes
        if not self.tried:
            self._try(base)
        first: Sizes = {}
        for name in names:
            worked = 0
            for size in other_sizes(base[name], self._taken()):
                if worked < ENOUGH and self._try({**base, name: size}):
                    worked += 1
                    first.setdefault(name, size)
            if not worked:
                self.fixed.append(name)
        if len(first) > 1:
            self._try({**base, **first})

    def shapes(self, key: Any) -> list[Shapes]:
        """The shapes of one call at all sizes tried; empty if it did not run the same way everywhere."""
        found = [seen[key] for seen in self.seen if key in seen]
        ranks = {tuple(map(len, shapes)) for shapes in found}
        return found if len(found) == len(self.seen) and len(ranks) == 1 else []

    def _taken(self) -> set[int]:
        return {n for p in self._model.parameters() for n in p.shape} | set(self._given.sizes.values())

    def _runner(self, trace: ForwardTrace) -> Callable[..., ForwardTrace] | None:
        """On fake tensors if that works; else with values if that is cheap."""
        model, given = self._model, (self._given.args, self._given.kwargs)
        if not trace.computed or without_computing(model, *given, ops=False).error is None:
            return without_computing
        flops = trace.calls[0].flops if trace.calls else 0
        return for_real if flops <= CHEAP and can_compute(model, *given) else None

    def _try(self, sizes: Sizes) -> bool:
        seen: Seen = {}

        def note(call: ModuleCall, output: Any) -> None:
            seen[call.path, call.number] = [described(t).shape for t in tensors_in(output)]

        assert self._run is not None
        try:
            args, kwargs = resized(self._given, sizes)
            trace = self._run(self._model, args, kwargs, ops=False, on_call=note)
        except (RuntimeError, IndexError):  # an input that can't be resized
            return False
        if trace.error is not None:
            return False
        seen[RESULT] = [t.shape for t in trace.outputs]
        self.tried.append(sizes)
        self.seen.append(seen)
        return True


def resized(given: ForwardInputs, sizes: Sizes) -> tuple[Any, Any]:
    """The inputs at other sizes; they grow by repeating their contents, so that ids stay in range."""

    def resize(tensor: Tensor) -> Tensor:
        for dim, name in enumerate(given.names.get(id(tensor), ())):
            if name and sizes[name] != given.sizes[name]:
                places = torch.arange(sizes[name], device=tensor.device) % tensor.shape[dim]
                tensor = tensor.detach().index_select(dim, places)
        return tensor

    return map_tensors(given.args, resize), map_tensors(given.kwargs, resize)


def other_sizes(size: int, taken: set[int]) -> Iterator[int]:
    """In the order in which they are tried.

    A prime and, at twice the size, an even number: then neither a rounded half nor a quotient
    that changes slowly can look like a straight line. Multiples for a network that must halve
    its input, smaller and near ones for one with a limit. Never 1: it would broadcast.
    """
    doubled = next(n for n in range(2 * size + 2, 4 * size + 64) if _even(n, size) and n not in taken)
    primes = [n for n in range(size + 1, 4 * size + 64) if _is_prime(n) and n not in taken]
    below = [n for n in range(size - 1, 1, -1) if _is_prime(n) and n not in taken]
    half = [size // 2] if size % 2 == 0 and size > 2 else []
    wanted = [primes[0], doubled, primes[1], 2 * size, 3 * size, *below[:2], *half, size + 1, size - 1]
    yield from [n for n in dict.fromkeys(wanted) if n > 1][:MOST_TRIED]


def _even(number: int, size: int) -> bool:
    return number % 2 == 0 and gcd(number, size) == (2 if size % 2 == 0 else 1)


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % n for n in range(2, int(number**0.5) + 1))
