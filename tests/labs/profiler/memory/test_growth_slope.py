"""What counts as growth: a line that goes on rising, and nothing that memory does anyway."""

from __future__ import annotations

import numpy as np
import pytest

from clew.labs.profiler.memory.growth_slope import steady_slope

MB = 1 << 20
STEPS = np.arange(0, 2_000, 10)
NOISE = np.random.default_rng(0).normal(0.0, 1.0, len(STEPS))


def slope(values: np.ndarray) -> float | None:
    found = steady_slope(list(zip(STEPS.tolist(), (500 * MB + values).tolist(), strict=True)))
    return None if found is None else found.rate


def test_a_steady_rise_is_measured() -> None:
    assert slope(0.1 * MB * STEPS) == pytest.approx(0.1 * MB, rel=0.01)


def test_so_is_one_in_noise_and_one_in_stairs() -> None:
    assert slope(0.1 * MB * STEPS + 3 * MB * NOISE) == pytest.approx(0.1 * MB, rel=0.1)
    assert slope(16 * MB * np.floor(STEPS / 160)) == pytest.approx(0.1 * MB, rel=0.2)


def test_the_rise_at_the_beginning_does_not_count() -> None:
    assert slope(300 * MB * (1 - np.exp(-STEPS / 100))) is None


@pytest.mark.parametrize(
    "values",
    [
        0.0 * STEPS,
        20 * MB * NOISE,
        np.where(STEPS > 1_000, 200.0 * MB, 0.0),
        40 * MB * (STEPS % 500) / 500,
        np.minimum(0.2 * MB * STEPS, 250 * MB),
        -0.1 * MB * STEPS,
        0.0005 * MB * STEPS,
    ],
    ids=["flat", "noise", "one jump", "saw", "fills up", "falls", "too little"],
)
def test_what_does_not_go_on_rising_is_no_growth(values: np.ndarray) -> None:
    assert slope(values) is None


def test_few_readings_give_no_verdict() -> None:
    assert steady_slope([]) is None
    assert steady_slope([(0, 1.0)] * 100) is None
    assert steady_slope([(n, float(n * MB)) for n in range(12)]) is None
