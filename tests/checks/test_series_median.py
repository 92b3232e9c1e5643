from __future__ import annotations

import numpy as np
import pytest

from clew.checks.series import FEW, Series
from clew.records import Site


@pytest.mark.parametrize("count", [1, 2, 3, 100, 101, FEW, FEW + 1])
def test_the_median_is_numpys_of_the_finite_values(count: int) -> None:
    values = np.random.default_rng(count).standard_normal(count)
    series = Series("loss", Site(), np.arange(count), values)
    assert series.median == np.median(values)
    spoilt = np.append(values, [np.nan, np.inf])
    assert Series("loss", Site(), np.arange(count + 2), spoilt).median == np.median(values)


def test_of_nothing_it_is_nan() -> None:
    assert np.isnan(Series("loss", Site(), np.arange(1), np.array([np.nan])).median)
