"""How sure the numbers of a profile are: the standard errors of its medians and means."""

from __future__ import annotations

import math

from clew.records.step_costs import ModuleCost, Part, Profile

P95 = 1.645  # standard deviations between median and 95th percentile of a normal distribution
MEDIAN = 1.2533  # the median of normal values is by so much less sure than their mean
UNKNOWN = 0.1  # of the value: where nothing is known of the spread
INDEPENDENT = 100  # steps; neighbours are alike, so that more of them do not make a mean surer


def median_error(part: Part) -> float:
    return _of_median(part.median, part.p95, part.steps)


def step_error(profile: Profile) -> float:
    steps = max((part.steps for part in profile.parts), default=profile.detailed)
    return _of_median(profile.step_median, profile.step_p95, steps)


def mean_error(module: ModuleCost) -> float:
    """Of a module's time, from its spread over the steps."""
    if module.steps < 2 or module.spread <= 0:
        return UNKNOWN * module.total
    return module.spread / math.sqrt(min(module.steps, INDEPENDENT))


def piece_error(profile: Profile, seconds: float) -> float:
    """Of the mean of a piece of a step whose own spread is not known.

    What disturbs a step (the system runs something else) hits its pieces by chance, as often as they are
    long: a piece of a share f of the step has a share f of its variance, which is much for a small one.
    """
    spread = (profile.step_p95 - profile.step_median) / P95
    if spread <= 0:
        spread = UNKNOWN * profile.step_median
    if profile.detailed_step > 0 and profile.step_median > 0:
        spread *= max(profile.detailed_step / profile.step_median, 1.0)
    return spread * math.sqrt(min(profile.of_step(seconds), 1.0) / max(profile.detailed, 1))


def _of_median(median: float, p95: float, steps: int) -> float:
    """A long tail makes p95 large and the median look less sure than it is: the safe side."""
    if steps < 2 or p95 < median:
        return UNKNOWN * median
    return MEDIAN * (p95 - median) / P95 / math.sqrt(min(steps, INDEPENDENT))
