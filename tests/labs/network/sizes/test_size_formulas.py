"""Formulas for sizes, from a few examples."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sympy import Symbol

from clew.labs.network.sizes.resized_forward import other_sizes
from clew.labs.network.sizes.size_formulas import bracket_sums, fit_formula, format_size, symbol

TRIED = [
    {"batch": 3, "time": 5},
    {"batch": 7, "time": 5},
    {"batch": 8, "time": 5},
    {"batch": 3, "time": 7},
    {"batch": 3, "time": 12},
    {"batch": 7, "time": 7},
]


def words(size: Callable[[int, int], int]) -> str | None:
    found = fit_formula(TRIED, [size(*sizes.values()) for sizes in TRIED], [])
    return None if found is None else format_size(found)


@pytest.mark.parametrize(
    ("size", "written"),
    [
        (lambda b, t: 6, "6"),
        (lambda b, t: t, "time"),
        (lambda b, t: 4 * t, "4·time"),
        (lambda b, t: t + 1, "time + 1"),
        (lambda b, t: 2 * t - 3, "2·time - 3"),
        (lambda b, t: b * t, "batch·time"),
        (lambda b, t: 2 * b * t, "2·batch·time"),
        (lambda b, t: b * (t + 1), "batch·(time + 1)"),
        (lambda b, t: (b + 1) * (t - 1), "(batch + 1)·(time - 1)"),
        (lambda b, t: b + 2 * t + 1, "batch + 2·time + 1"),
        (lambda b, t: b * t * t, "batch·time^2"),
        (lambda b, t: 20 - t, "20 - time"),
    ],
)
def test_simple_formulas_are_found(size: Callable[[int, int], int], written: str) -> None:
    found = words(size)
    assert found is not None
    assert found == written


@pytest.mark.parametrize(
    "size",
    [
        lambda b, t: t // 2,
        lambda b, t: -(-t // 2),
        lambda b, t: t // 4 + 1,
        lambda b, t: b * (t // 3),
        lambda b, t: max(t, 6),
        lambda b, t: 9 if t == 12 else 8,
        lambda b, t: b * t + (b > 3 and t > 5),
    ],
)
def test_others_are_not_mistaken_for_simple_ones(size: Callable[[int, int], int]) -> None:
    assert words(size) is None


def test_two_points_make_no_line() -> None:
    assert fit_formula([{"time": 5}, {"time": 7}], [6, 8], []) is None


def test_a_half_is_believed_only_where_no_odd_size_works() -> None:
    even = fit_formula([{"time": 6}, {"time": 12}, {"time": 18}], [3, 6, 9], [])
    assert even is not None
    assert format_size(even) == "time/2"


def test_formulas_that_the_network_has_elsewhere_are_recognised() -> None:
    ceil = fit_formula(
        TRIED,
        [s["batch"] * -(-s["time"] // 2) for s in TRIED],
        [(symbol("time") + 1) // 2],
    )
    assert ceil is not None
    assert ceil.free_symbols == {symbol("batch"), symbol("time")}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 17, 96, 224])
def test_other_sizes_are_other_and_never_one(size: int) -> None:
    tried = list(other_sizes(size, set()))
    assert len(tried) == len(set(tried)) >= 3
    assert not {1, size} & set(tried)
    assert {n % 2 for n in (size, *tried[:2])} == {0, 1}


def test_only_sums_are_bracketed_in_a_shape() -> None:
    assert bracket_sums(("b", "t + 1", "8·(h//8)", "ceil((h - 1)/2)")) == (
        "b",
        "(t + 1)",
        "8·(h//8)",
        "ceil((h - 1)/2)",
    )
    assert bracket_sums(("t + 1",)) == ("t + 1",)
    assert format_size(Symbol("a") * (Symbol("b") - 1) ** 2).count("^") == 1
