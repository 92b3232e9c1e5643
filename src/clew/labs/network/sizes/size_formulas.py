"""Formats a size in terms of the named sizes: `batch·time`, `8·(height//8)`, `ceil(height/2)`."""

from __future__ import annotations

from typing import Any

_SUM, _PRODUCT, _ATOM = 1, 2, 3  # how tightly an expression holds together
_DIVISIONS = ("FloorDiv", "CleanDiv", "PythonMod", "Mod")
_SPELLED = {"Max": "max", "Min": "min", "TruncToInt": "int", "CeilToInt": "ceil", "FloorToInt": "floor"}


def size_words(expression: Any) -> str:
    """Multiplied out, or not, whichever is shorter."""
    from sympy import expand

    rounded = expression.replace(_is_floor, _rounded_up)
    return min((_words(expand(rounded))[0], _words(rounded)[0]), key=len)


def in_a_shape(sizes: tuple[str, ...]) -> tuple[str, ...]:
    """A sum gets brackets, so that it is not read across the `×` beside it."""
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
    """The number first; what is divided by last."""
    number, rest = expression.as_coeff_Mul()
    factors = [_factor(f) for f in (rest.as_ordered_factors() if rest.is_Mul else [rest])]
    if abs(number.p) != 1:
        factors.insert(0, str(abs(number.p)))
    text = ("-" if number < 0 else "") + "·".join(factors)
    return (f"{text}/{number.q}" if number.q != 1 else text), _PRODUCT


def _factor(expression: Any) -> str:
    """A power needs no brackets in a product; a division does, as `8·h//8` could be read both ways."""
    return _words(expression)[0] if expression.is_Pow else _within(expression, _ATOM)
