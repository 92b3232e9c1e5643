from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.render.sparkline import BLOCKS, NOT_FINITE, PLAIN_BLOCKS, PLAIN_NOT_FINITE, sparkline

ANY_FLOATS = st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=200)


def test_a_rise_rises_from_the_lowest_to_the_highest_block() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == BLOCKS
    assert sparkline([7, 6, 5, 4, 3, 2, 1, 0]) == BLOCKS[::-1]


def test_nan_and_infinity_are_marked() -> None:
    assert sparkline([0.0, math.nan, 1.0, math.inf]) == f"▁{NOT_FINITE}█{NOT_FINITE}"
    assert sparkline([math.nan] * 3) == NOT_FINITE * 3


def test_one_nan_in_a_long_stretch_is_not_lost() -> None:
    values = [1.0] * 1000
    values[500] = math.nan
    assert sparkline(values, 20).count(NOT_FINITE) == 1


def test_one_spike_in_a_long_series_is_not_lost() -> None:
    for spike in (9.0, -9.0):
        values = [1.0] * 1000
        values[321] = spike
        drawn = sparkline(values, 20)
        assert len(set(drawn)) == 2
        assert drawn[6] != drawn[5]


def test_a_constant_is_level() -> None:
    assert len(set(sparkline([3.0] * 10))) == 1


def test_many_orders_of_magnitude_are_drawn_on_a_logarithmic_scale() -> None:
    assert sparkline([1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7]) == BLOCKS
    assert sparkline([1, 1e3, -1]).count("▁") == 2


def test_plain_form_is_ascii() -> None:
    assert sparkline([0, 1, math.nan], plain=True) == f"{PLAIN_BLOCKS[0]}{PLAIN_BLOCKS[-1]}{PLAIN_NOT_FINITE}"
    assert (PLAIN_BLOCKS + PLAIN_NOT_FINITE).isascii()


@pytest.mark.parametrize("width", [1, 7, 32])
@given(ANY_FLOATS)
def test_any_series_gives_at_most_the_width(width: int, values: list[float]) -> None:
    drawn = sparkline(values, width)
    assert len(drawn) == min(len(values), width)
    assert set(drawn) <= {*BLOCKS, NOT_FINITE}
