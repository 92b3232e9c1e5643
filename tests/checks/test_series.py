from __future__ import annotations

import numpy as np
import pytest

from clew.checks.series import FEW, Series
from clew.records.site import Site


@pytest.mark.parametrize("count", [1, 2, 3, 100, 101, FEW, FEW + 1])
def test_the_median_is_numpys_of_the_finite_values(count: int) -> None:
    values = np.random.default_rng(count).standard_normal(count)
    series = Series("loss", Site(), np.arange(count), values)
    assert series.median == np.median(values)
    spoilt = np.append(values, [np.nan, np.inf])
    assert Series("loss", Site(), np.arange(count + 2), spoilt).median == np.median(values)


def test_of_nothing_it_is_nan() -> None:
    assert np.isnan(Series("loss", Site(), np.arange(1), np.array([np.nan])).median)


def test_it_covers_as_many_steps_as_there_were_whatever_was_recorded_of_each() -> None:
    def span(*steps: int) -> int:
        return Series("loss", Site(), np.array(steps, np.int64), np.zeros(len(steps))).span

    assert span() == 0
    assert span(7) == 1
    assert span(0, 0, 1, 1, 2, 2) == 3  # two micro-batches a step
    assert span(0, 10, 20) == 21  # rows between were dropped
