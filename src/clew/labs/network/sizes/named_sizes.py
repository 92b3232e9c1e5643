"""Runs the forward again with a symbol for each size that the user named.

Torch can't trace a symbol through everything: an LSTM's kernel needs numbers, and Python's `int()`
or `range()` specialise a symbol to its example number. What such a forward does to a size is then
found by running it on fake tensors at a few other sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from clew.labs.network.network_inputs import ForwardInputs
from clew.labs.network.sizes.resized_forward import RESULT, ResizedForwards, other_sizes
from clew.labs.network.sizes.size_formulas import bracket_sums, evaluate, fit_formula, format_size, symbol
from clew.labs.network.trace.op_tracer import ForwardTrace, ModuleCall
from clew.labs.network.trace.traced_forward import converter, without_computing
from clew.measure.nested_tensors import map_tensors, tensors_in

Sizes = list[tuple[Any, ...]]  # of each tensor of an output; numbers, or formulas of the names
Written = list[tuple[str, ...]]


class SizeNames:
    """The named sizes of every module call's outputs, or why there are none."""

    def __init__(self, model: nn.Module, given: ForwardInputs, trace: ForwardTrace) -> None:
        self.reason: str | None = None
        self._sizes: dict[Any, Sizes] = {}  # by path and number of the call
        if given.sizes:
            self._find(model, given, trace)

    def of_calls(self) -> dict[Any, Written]:
        """By path and number of the call."""
        return {key: _written(sizes) for key, sizes in self._sizes.items() if key is not RESULT}

    def of_result(self) -> Written:
        return _written(self._sizes.get(RESULT, []))

    def _find(self, model: nn.Module, given: ForwardInputs, trace: ForwardTrace) -> None:
        symbols = Symbols(model, given)
        lost = list(given.sizes) if symbols.error is not None else symbols.fixed()
        doubtful = lost or symbols.equated()
        forwards = ResizedForwards(model, given, trace) if doubtful else None
        if forwards is None or not forwards.possible:
            self._settle_for(symbols, lost)
            return
        forwards.vary(list(given.sizes) if lost else doubtful)
        sizes = symbols.sizes({name: given.sizes[name] for name in forwards.fixed})
        self._sizes = _checked(forwards, sizes, list(symbols.formulas()))
        if forwards.fixed:
            names = ", ".join(forwards.fixed)
            self.reason = (
                f"the model fixes {names}: it works with only one size, and failed with the others tried"
            )

    def _settle_for(self, symbols: Symbols, lost: list[str]) -> None:
        """What torch has found by itself."""
        if symbols.error is not None:
            self.reason = f"sizes could not be traced by name: {type(symbols.error).__name__}"
            return
        self._sizes = symbols.sizes({})
        if lost:
            self.reason = f"{', '.join(lost)} could not be traced by name"


class Symbols:
    """One forward in which torch tracks the names as symbols, as far as it can."""

    def __init__(self, model: nn.Module, given: ForwardInputs) -> None:
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self._given = given
        self._env = ShapeEnv()
        self._names: dict[Any, str] = {}
        self._raw: dict[Any, Sizes] = {}
        fake = FakeTensorMode(allow_non_fake_inputs=True, shape_env=self._env)
        plain = converter(fake)

        def convert(tensor: Tensor) -> Any:
            names = given.names.get(id(tensor))
            return self._symbolic(fake, tensor, names) if names and any(names) else plain(tensor)

        args, kwargs = map_tensors(given.args, convert), map_tensors(given.kwargs, convert)
        trace = without_computing(model, args, kwargs, ops=False, mode=fake, on_call=self._note)
        self.error = trace.error
        self._raw[RESULT] = [tuple(t.shape) for t in tensors_in(trace.result)]

    def _symbolic(self, fake: FakeTensorMode, tensor: Tensor, names: tuple[str | None, ...]) -> Any:
        from torch._dynamo.source import ConstantSource
        from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

        kinds = [DimDynamic.DYNAMIC if name else DimDynamic.STATIC for name in names]
        context: Any = StatelessSymbolicContext(dynamic_sizes=kinds)
        made = fake.from_tensor(
            tensor, symbolic_context=context, source=ConstantSource(f"input{len(self._names)}_{id(tensor)}")
        )
        sizes: tuple[Any, ...] = tuple(made.shape)
        for size, name in zip(sizes, names, strict=True):
            if name and type(size) is not int:
                self._names.setdefault(size.node.expr, name)
        return made

    def _note(self, call: ModuleCall, output: Any) -> None:
        self._raw[call.path, call.number] = [tuple(t.shape) for t in tensors_in(output)]

    def fixed(self) -> list[str]:
        """Names that were specialised to their example numbers; a 1 always is."""
        left = {n for s, n in self._names.items() if self._env.simplify(s).free_symbols}
        used = {name for names in self._given.names.values() for name in names}
        return [n for n in self._given.sizes if n in used and n not in left]

    def equated(self) -> list[str]:
        """Names for which torch assumed an equation that other sizes break.

        A layer's weight may require it, or torch just needed to know a number.
        """
        return [name for name, size in self._given.sizes.items() if self._breaks(name, size)]

    def _breaks(self, name: str, size: int) -> bool:
        others = [{**self._given.sizes, name: n} for n in other_sizes(size, set())]
        return any(evaluate(e, sizes) == False for e in self._equations(name) for sizes in others)  # noqa: E712 - sympy's own

    def _equations(self, name: str) -> set[Any]:
        guards = (g.expr.xreplace(self._known()) for g in getattr(self._env, "guards", ()))
        return {g for g in guards if type(g).__name__ == "Equality" and symbol(name) in g.free_symbols}

    def _known(self) -> dict[Any, Any]:
        return {s: symbol(n) for s, n in self._names.items()}

    def sizes(self, fixed: dict[str, int]) -> dict[Any, Sizes]:
        """The sizes of every call that torch reached, with numbers for the names that are fixed."""
        return {
            key: [tuple(self._formula(size, fixed) for size in shape) for shape in shapes]
            for key, shapes in self._raw.items()
        }

    def _formula(self, size: Any, fixed: dict[str, int]) -> Any:
        if type(size) is int:
            return size
        formula = evaluate(self._env.simplify(size.node.expr).xreplace(self._known()), fixed)
        return formula if self._speaks_names(formula) else None

    def formulas(self) -> Iterator[Any]:
        """All formulas found before torch lost a name."""
        sizes = (s for shapes in self._raw.values() for shape in shapes for s in shape if type(s) is not int)
        met = {s.node._expr.xreplace(self._known()) for s in sizes}
        yield from sorted((f for f in met if f.free_symbols and self._speaks_names(f)), key=str)

    def _speaks_names(self, formula: Any) -> bool:
        """And not a size that depends on values, which torch gives its own symbol."""
        return {s.name for s in formula.free_symbols} <= set(self._given.sizes)


def _checked(forwards: ResizedForwards, symbolic: dict[Any, Sizes], known: list[Any]) -> dict[Any, Sizes]:
    """Formulas that hold at all sizes tried: torch's own, or else a fitted one."""
    fits: dict[tuple[int, ...], Any] = {}

    def formula(torchs: Any, values: tuple[int, ...]) -> Any:
        if torchs is not None and _holds(torchs, forwards, values):
            return torchs
        if values not in fits:
            fits[values] = fit_formula(forwards.tried, values, known)
        return fits[values]

    sizes = dict(symbolic)
    for key in forwards.seen[0]:
        tensors = list(zip(*forwards.shapes(key), strict=True))  # each at all sizes tried
        seen = [list(zip(*shapes, strict=True)) for shapes in tensors]
        torchs = symbolic.get(key, [])
        if list(map(len, torchs)) != list(map(len, seen)):
            torchs = [(None,) * len(values) for values in seen]
        sizes[key] = [tuple(map(formula, *pair)) for pair in zip(torchs, seen, strict=True)]
    return sizes


def _holds(formula: Any, forwards: ResizedForwards, values: tuple[int, ...]) -> bool:
    if type(formula) is int:
        return all(value == formula for value in values)
    return all(evaluate(formula, sizes) == value for sizes, value in zip(forwards.tried, values, strict=True))


def _written(sizes: Sizes) -> Written:
    """An empty text is a size without a formula."""
    return [bracket_sums(tuple(_word(size) for size in shape)) for shape in sizes]


def _word(size: Any) -> str:
    if size is None:
        return ""
    return str(size) if type(size) is int else format_size(size)
