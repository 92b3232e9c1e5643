"""How a size depends on the named sizes: finds a formula from a few forwards, and formats it.

Formats: `batch·time`, `8·(height//8)`, `ceil(height/2)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice, product
from math import gcd
from typing import Any

Sizes = dict[str, int]  # of the names
MOST_FORMS = 64  # combinations that are tried for one size

_SUM, _PRODUCT, _ATOM = 1, 2, 3  # operator precedence of an expression
_DIVISIONS = ("FloorDiv", "CleanDiv", "PythonMod", "Mod")
_SPELLED = {"Max": "max", "Min": "min", "TruncToInt": "int", "CeilToInt": "ceil", "FloorToInt": "floor"}


def fit_formula(tried: Sequence[Sizes], values: Sequence[int], known: Sequence[Any]) -> Any | None:
    """The simplest formula that gives all of the values; None if no simple one does.

    The first of the sizes tried is the one that the others vary. `known` are formulas that
    this network is known to have somewhere.
    """
    from sympy import Integer

    base = values[0]
    if all(value == base for value in values):
        return Integer(base)
    for formula in islice(_formulas(tried, values, known), MOST_FORMS):
        if all(evaluate(formula, sizes) == value for sizes, value in zip(tried, values, strict=True)):
            return formula
    return None


def evaluate(formula: Any, sizes: Sizes) -> Any:
    """Its value at these sizes."""
    return formula.xreplace({s: sizes[s.name] for s in formula.free_symbols if s.name in sizes})


def _formulas(tried: Sequence[Sizes], values: Sequence[int], known: Sequence[Any]) -> Iterator[Any]:
    from sympy import Rational, prod

    lines = {name: _along(name, tried, values) for name in tried[0]}
    lines = {name: line for name, line in lines.items() if any(v != line[0][1] for _, v in line)}
    choices = [list(_factors(name, line, known)) for name, line in lines.items()]
    for factors in product(*choices):
        together = prod(factors)
        here = evaluate(together, tried[0])
        number = Rational(values[0]) / here if here else Rational(0)
        if number and _fair(number, lines):
            yield number * together
    slopes = {name: _slope(line) for name, line in lines.items()}
    if all(slope is not None and slope.denominator == 1 for slope in slopes.values()):
        linear = sum(int(slope or 0) * symbol(name) for name, slope in slopes.items())
        yield linear + values[0] - evaluate(linear, tried[0])
    yield from known


def _along(name: str, tried: Sequence[Sizes], values: Sequence[int]) -> list[tuple[int, int]]:
    """Size and value where only this name was varied."""
    base = tried[0]
    return [
        (sizes[name], value)
        for sizes, value in zip(tried, values, strict=True)
        if all(size == base[other] for other, size in sizes.items() if other != name)
    ]


def _factors(name: str, line: list[tuple[int, int]], known: Sequence[Any]) -> Iterator[Any]:
    """What the values are proportional to when only this name is varied."""
    from sympy import Rational

    n = symbol(name)
    forms = [n, *(k for k in known if k.free_symbols == {n}), n**2]
    slope = _slope(line)
    if slope is not None and slope.denominator == 1:
        size, value = line[0]
        start = value - int(slope) * size
        shared = gcd(int(slope), start)
        forms.append(int(slope) // shared * n + start // shared)
    for form in forms:
        there = [evaluate(form, {name: size}) for size, _ in line]
        if all(there) and len({Rational(v) / t for (_, v), t in zip(line, there, strict=True)}) == 1:
            yield form


def _slope(line: list[tuple[int, int]]) -> Fraction | None:
    """The slope of a straight line through all points; two points alone prove nothing."""
    if len(line) < 3:
        return None
    (x, y), *others = line
    slopes = {Fraction(v - y, n - x) for n, v in others}
    slope = slopes.pop() if len(slopes) == 1 else None
    return slope or None


def _fair(number: Any, lines: dict[str, list[tuple[int, int]]]) -> bool:
    """Half of a size is accepted only if no odd size could be tried."""
    if number.q == 1:
        return True
    return any(all(size % number.q == 0 for size, _ in line) for line in lines.values())


def symbol(name: str) -> Any:
    """The same symbol for the same name."""
    from sympy import Symbol

    return Symbol(name, integer=True, positive=True)


# -- as text --


def format_size(expression: Any) -> str:
    """Expanded or factored, whichever is shorter."""
    from sympy import expand

    rounded = expression.replace(_is_floor, _rounded_up)
    return min((_words(expand(rounded))[0], _words(rounded)[0]), key=len)


def bracket_sums(sizes: tuple[str, ...]) -> tuple[str, ...]:
    """A sum gets brackets, so that it is not read across the neighbouring `×`."""
    if len(sizes) < 2:
        return sizes
    return tuple(f"({s})" if _is_loose(s) else s for s in sizes)


def _is_loose(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == " " and depth == 0:
            return True
    return False


def _is_floor(expression: Any) -> bool:
    return type(expression).__name__ in ("FloorDiv", "CleanDiv")


def _rounded_up(division: Any) -> Any:
    """`ceil(h/2)` for `(h - 1)//2 + 1`, which is how strided convolutions count."""
    from sympy import Function, expand

    divided, divisor = division.args
    above = expand(divided)
    if above.as_coeff_Add()[0] != -1:
        return division
    return Function("ceil")(above + 1, divisor) - 1


def _words(expression: Any) -> tuple[str, int]:
    name = type(expression).__name__
    if expression.is_Add:
        return _sum(expression)
    if expression.is_Mul:
        return _product(expression)
    if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
        return f"{_within(expression.base, _ATOM)}^{expression.exp}", _PRODUCT
    if expression.is_Rational and not expression.is_Integer:
        return str(expression), _PRODUCT
    if name in _DIVISIONS:
        sign = "//" if _is_floor(expression) else " % "
        divided, divisor = (_within(part, _ATOM) for part in expression.args)
        return f"{divided}{sign}{divisor}", _PRODUCT if sign == "//" else _SUM
    if name == "ceil":
        divided, divisor = (_within(part, _ATOM) for part in expression.args)
        return f"ceil({divided}/{divisor})", _ATOM
    if expression.args:
        return f"{_SPELLED.get(name, name)}({', '.join(_words(a)[0] for a in expression.args)})", _ATOM
    return str(expression), _ATOM


def _within(expression: Any, tightness: int) -> str:
    text, own = _words(expression)
    return text if own >= tightness else f"({text})"


def _sum(expression: Any) -> tuple[str, int]:
    text = ""
    for term in expression.as_ordered_terms():
        negative = term.could_extract_minus_sign()
        part = _within(-term if negative else term, _PRODUCT)
        if not text:
            text = f"-{part}" if negative else part
        else:
            text += f" - {part}" if negative else f" + {part}"
    return text, _SUM


def _product(expression: Any) -> tuple[str, int]:
    """The number first; divisors last."""
    number, rest = expression.as_coeff_Mul()
    factors = [_factor(f) for f in (rest.as_ordered_factors() if rest.is_Mul else [rest])]
    if abs(number.p) != 1:
        factors.insert(0, str(abs(number.p)))
    text = ("-" if number < 0 else "") + "·".join(factors)
    return (f"{text}/{number.q}" if number.q != 1 else text), _PRODUCT


def _factor(expression: Any) -> str:
    """A power needs no brackets in a product; a division does, as `8·h//8` could be read both ways."""
    return _words(expression)[0] if expression.is_Pow else _within(expression, _ATOM)
