"""Sizes with names: the same forward once more, with symbols for the sizes that the user named."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from clew.model.forwards import converter, without_computing
from clew.model.inputs import Feed
from clew.model.tensors import replaced, tensors_in
from clew.model.tracing import Call

Sizes = list[tuple[Any, ...]]  # of each tensor of an output; numbers, or torch's symbols


class Naming:
    """The named sizes of every module call's outputs, or why there are none."""

    def __init__(self, model: nn.Module, feed: Feed) -> None:
        self.reason: str | None = None
        self.calls: list[tuple[str, int, Sizes]] = []
        self.result: Sizes = []
        self._symbols: dict[Any, str] = {}
        if feed.sizes:
            self._trace(model, feed)

    def _trace(self, model: nn.Module, feed: Feed) -> None:
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self._env = ShapeEnv()
        fake = FakeTensorMode(allow_non_fake_inputs=True, shape_env=self._env)
        plain = converter(fake)

        def convert(tensor: Tensor) -> Any:
            names = feed.names.get(id(tensor))
            return self._symbolic(fake, tensor, names) if names and any(names) else plain(tensor)

        args, kwargs = replaced(feed.args, convert), replaced(feed.kwargs, convert)
        trace = without_computing(model, args, kwargs, ops=False, mode=fake, on_call=self._note)
        if trace.error is not None:
            self.reason = f"sizes could not be traced by name: {type(trace.error).__name__}"
            return
        self.result = [tuple(t.shape) for t in tensors_in(trace.result)]
        fixed = [n for s, n in self._symbols.items() if not self._env.simplify(s).free_symbols]
        if fixed:
            self.reason = f"the model fixes {', '.join(fixed)}: it works for one size only"

    def _symbolic(self, fake: FakeTensorMode, tensor: Tensor, names: tuple[str | None, ...]) -> Any:
        from torch._dynamo.source import ConstantSource
        from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

        kinds = [DimDynamic.DYNAMIC if name else DimDynamic.STATIC for name in names]
        context: Any = StatelessSymbolicContext(dynamic_sizes=kinds)
        made = fake.from_tensor(
            tensor, symbolic_context=context, source=ConstantSource(f"input{len(self._symbols)}_{id(tensor)}")
        )
        sizes: tuple[Any, ...] = tuple(made.shape)
        for size, name in zip(sizes, names, strict=True):
            if name and type(size) is not int:
                self._symbols.setdefault(size.node.expr, name)
        return made

    def _note(self, call: Call, output: Any) -> None:
        self.calls.append((call.path, call.number, [tuple(t.shape) for t in tensors_in(output)]))

    def of_calls(self) -> dict[tuple[str, int], list[tuple[str, ...]]]:
        """By path and number of the call."""
        return {(path, number): self.written(sizes) for path, number, sizes in self.calls}

    def written(self, sizes: Sizes) -> list[tuple[str, ...]]:
        return [tuple(self._written(size) for size in shape) for shape in sizes]

    def _written(self, size: Any) -> str:
        if type(size) is int:
            return str(size)
        from sympy import Symbol, expand

        known = {s: Symbol(n, integer=True, positive=True) for s, n in self._symbols.items()}
        expression = self._env.simplify(size.node.expr).xreplace(known)
        return str(expand(expression.replace(_is_floor, _readable))).replace("**", "^").replace("*", "·")


def _is_floor(expression: Any) -> bool:
    return type(expression).__name__ in ("FloorDiv", "CleanDiv")


def _readable(division: Any) -> Any:
    """`ceil(h/2)` for `(h - 1)//2 + 1`, which is how strided convolutions count."""
    from sympy import Symbol, expand

    divided, divisor = division.args
    above = expand(divided)
    if above.as_coeff_Add()[0] == -1:
        return Symbol(f"ceil({_bracketed(above + 1)}/{divisor})", integer=True) - 1
    return Symbol(f"{_bracketed(above)}//{divisor}", integer=True)


def _bracketed(expression: Any) -> str:
    return str(expression) if expression.is_Atom else f"({expression})"
