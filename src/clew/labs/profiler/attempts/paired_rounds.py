"""Times two variants in alternation, so that noise on the machine affects both.

The halves of a round follow each other closely, in changing order (ABBA), and rounds are compared
with each other only through the ratio of their halves. A gain is clear if it is larger than the
noise of these ratios and nearly every round shows it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LEAST_ROUNDS = 5  # fewer say nothing about noise
MOST_ROUNDS = 15
LEAST_GAIN = 0.05  # share of the step's time below which nothing is said
HALF = 0.04  # seconds that a half should take: long against the clock and a scheduler's slice
MOST_STEPS = 20  # of a half
MEDIAN_ERROR = 1.2533  # standard error of a median, in standard deviations of the mean
FROM_MAD = 1.4826  # standard deviation, in median absolute deviations
CERTAIN = 3.0  # standard errors
EARLY = (
    1.5  # times the noise that a gain must have to end the rounds: looking often finds something by chance
)
ODD_ONES = 8  # one round in so many may say the opposite

Half = Callable[[int], float]  # makes so many steps, gives the seconds of a middling one


@dataclass(frozen=True)
class Pairs:
    """What came of timing two ways in turn."""

    before: tuple[float, ...]  # seconds per step, by round
    after: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        return [b / a for a, b in zip(self.before, self.after, strict=True) if a > 0]

    @property
    def gain(self) -> float:
        """Share of the time that the second way saves."""
        return 1.0 - statistics.median(self.ratios) if self.ratios else 0.0

    @property
    def noise(self) -> float:
        """How far off the gain may be."""
        if len(self.ratios) < LEAST_ROUNDS:
            return math.inf
        return CERTAIN * MEDIAN_ERROR * FROM_MAD * _deviation(self.ratios) / math.sqrt(len(self.ratios))

    @property
    def clear(self) -> bool:
        """Whether the second way is faster, or slower, beyond noise and by enough to speak of."""
        gain, ratios = self.gain, self.ratios
        if len(ratios) < LEAST_ROUNDS or abs(gain) < LEAST_GAIN or abs(gain) <= self.noise:
            return False
        against = sum((1.0 - ratio) * gain <= 0 for ratio in ratios)
        return against <= len(ratios) // ODD_ONES


def _settled(pairs: Pairs) -> bool:
    """Whether more rounds would hardly change the answer."""
    plainly = pairs.clear and abs(pairs.gain) > EARLY * pairs.noise
    return plainly or abs(pairs.gain) + pairs.noise < LEAST_GAIN


def _deviation(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    return statistics.median(abs(v - middle) for v in values)


def spread(values: Sequence[float]) -> float:
    """Half of the middle half."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2


def steps_of_half(seconds: float) -> int:
    """How many steps of so many seconds make a half."""
    return max(1, min(MOST_STEPS, round(HALF / max(seconds, 1e-9))))


def in_turn(
    before: Half,
    after: Half,
    steps: int,
    *,
    go_on: Callable[[int], bool] = lambda _: True,
    rounds: int = MOST_ROUNDS,
) -> Pairs:
    """Rounds of both, until the answer is plain, `go_on(rounds done)` is against it or there are enough."""
    taken: tuple[list[float], list[float]] = ([], [])
    while len(taken[0]) < rounds and go_on(len(taken[0])):
        order = (0, 1) if len(taken[0]) % 2 == 0 else (1, 0)
        for which in order:
            taken[which].append((before, after)[which](steps))
        pairs = Pairs(tuple(taken[0]), tuple(taken[1]))
        if len(taken[0]) > LEAST_ROUNDS + 1 and _settled(pairs):
            break
    return Pairs(tuple(taken[0]), tuple(taken[1]))
