"""Derives how a size depends on the named sizes, from forwards at a few other sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice, product
from math import gcd
from typing import Any

Sizes = dict[str, int]  # of the names
MOST_FORMS = 64  # combinations that are looked at for one size


def fitted(tried: Sequence[Sizes], values: Sequence[int], known: Sequence[Any]) -> Any | None:
    """A formula that gives each of the values, the simplest first; None if no simple one does.

    The first of the sizes tried is what the others are varied from. `known` are formulas that
    this network is known to have somewhere.
    """
    from sympy import Integer

    base = values[0]
    if all(value == base for value in values):
        return Integer(base)
    for formula in islice(_formulas(tried, values, known), MOST_FORMS):
        if all(at(formula, sizes) == value for sizes, value in zip(tried, values, strict=True)):
            return formula
    return None


def at(formula: Any, sizes: Sizes) -> Any:
    """Its value at these sizes."""
    return formula.xreplace({s: sizes[s.name] for s in formula.free_symbols if s.name in sizes})


def _formulas(tried: Sequence[Sizes], values: Sequence[int], known: Sequence[Any]) -> Iterator[Any]:
    from sympy import Rational, prod

    lines = {name: _along(name, tried, values) for name in tried[0]}
    lines = {name: line for name, line in lines.items() if any(v != line[0][1] for _, v in line)}
    choices = [list(_factors(name, line, known)) for name, line in lines.items()]
    for factors in product(*choices):
        together = prod(factors)
        here = at(together, tried[0])
        number = Rational(values[0]) / here if here else Rational(0)
        if number and _fair(number, lines):
            yield number * together
    slopes = {name: _slope(line) for name, line in lines.items()}
    if all(slope is not None and slope.denominator == 1 for slope in slopes.values()):
        linear = sum(int(slope or 0) * symbol(name) for name, slope in slopes.items())
        yield linear + values[0] - at(linear, tried[0])
    yield from known


def _along(name: str, tried: Sequence[Sizes], values: Sequence[int]) -> list[tuple[int, int]]:
    """Size and value where nothing but this name was varied."""
    base = tried[0]
    return [
        (sizes[name], value)
        for sizes, value in zip(tried, values, strict=True)
        if all(size == base[other] for other, size in sizes.items() if other != name)
    ]


def _factors(name: str, line: list[tuple[int, int]], known: Sequence[Any]) -> Iterator[Any]:
    """What the values are proportional to, as this name alone is varied."""
    n = symbol(name)
    forms = [n, *(k for k in known if k.free_symbols == {n}), n**2]
    slope = _slope(line)
    if slope is not None and slope.denominator == 1:
        size, value = line[0]
        start = value - int(slope) * size
        shared = gcd(int(slope), start)
        forms.append(int(slope) // shared * n + start // shared)
    for form in forms:
        there = [at(form, {name: size}) for size, _ in line]
        if (
            all(there)
            and len({_rational(Fraction(v)) / t for (_, v), t in zip(line, there, strict=True)}) == 1
        ):
            yield form


def _slope(line: list[tuple[int, int]]) -> Fraction | None:
    """Of a straight line through all points; two points alone say nothing."""
    if len(line) < 3:
        return None
    (x, y), *others = line
    slopes = {Fraction(v - y, n - x) for n, v in others}
    slope = slopes.pop() if len(slopes) == 1 else None
    return slope or None


def _fair(number: Any, lines: dict[str, list[tuple[int, int]]]) -> bool:
    """A half of a size is believed only where no odd size could be tried."""
    if number.q == 1:
        return True
    return any(all(size % number.q == 0 for size, _ in line) for line in lines.values())


def _rational(number: Fraction) -> Any:
    from sympy import Rational

    return Rational(number.numerator, number.denominator)


def symbol(name: str) -> Any:
    """The same for the same name."""
    from sympy import Symbol

    return Symbol(name, integer=True, positive=True)
