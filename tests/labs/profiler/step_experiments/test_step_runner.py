import random
from collections.abc import Callable

import pytest

from clew.labs.profiler.step_experiments.step_runner import (
    LEAST_ROUNDS,
    MOST_ROUNDS,
    Pairs,
    in_turn,
    spread,
    steps_of_half,
)


def taking(seconds: float, noise: float = 0.0, seed: int = 0) -> Callable[[int], float]:
    drawn = random.Random(seed)
    return lambda _: seconds * (1 + noise * drawn.uniform(-1, 1))


def test_a_gain_beyond_noise_is_clear():
    found = in_turn(taking(1.0, 0.02, 1), taking(0.8, 0.02, 2), 1)
    assert found.clear
    assert found.gain == pytest.approx(0.2, abs=0.03)


def test_a_slower_way_is_clearly_slower():
    found = in_turn(taking(1.0, 0.02, 1), taking(1.5, 0.02, 2), 1)
    assert found.clear
    assert found.gain == pytest.approx(-0.5, abs=0.05)


@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_the_same_way_twice_is_hardly_ever_clear_however_noisy(noise: float):
    found = [in_turn(taking(1.0, noise, n), taking(1.0, noise, n + 1000), 1) for n in range(200)]
    assert sum(pairs.clear for pairs in found) <= 4


def test_a_gain_of_less_than_five_percent_is_not_spoken_of():
    assert not in_turn(taking(1.0), taking(0.96), 1).clear
    assert in_turn(taking(1.0), taking(0.94), 1).clear


def test_a_disturbance_that_hits_both_halves_of_a_round_does_not_matter():
    slow = [1.0, 5.0, 1.0, 9.0, 1.0, 3.0, 1.0]
    found = Pairs(tuple(slow), tuple(0.5 * s for s in slow))
    assert found.clear
    assert found.gain == pytest.approx(0.5)
    assert found.noise == pytest.approx(0.0)


def test_fewer_rounds_than_five_say_nothing():
    few = LEAST_ROUNDS - 1
    assert not Pairs((1.0,) * few, (0.1,) * few).clear
    assert Pairs((1.0,) * LEAST_ROUNDS, (0.1,) * LEAST_ROUNDS).clear


def test_halves_change_places_from_round_to_round():
    order: list[str] = []

    def half(name: str) -> Callable[[int], float]:
        def run(_: int) -> float:
            order.append(name)
            return random.random()

        return run

    in_turn(half("a"), half("b"), 1, go_on=lambda rounds: rounds < 4)
    assert "".join(order) == "abbaabba"


def test_what_stays_unclear_is_timed_to_the_last_round():
    assert len(in_turn(taking(1.0, 0.5, 1), taking(1.0, 0.5, 2), 1).before) == MOST_ROUNDS
    assert len(in_turn(taking(1.0), taking(0.5), 1).before) < MOST_ROUNDS


def test_short_steps_are_timed_many_at_once():
    assert steps_of_half(1e-3) == 20
    assert steps_of_half(0.02) == 2
    assert steps_of_half(3.0) == 1


def test_the_spread_is_half_of_the_middle_half():
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(1.0)
    assert spread([1.0]) == 0.0
