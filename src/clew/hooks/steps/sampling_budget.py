"""Sampling budget: decides which steps are sampled, within a share of the step time.

Clew measures its own seconds on the training thread. An initial credit allows sampling the first steps
densely, because most faults show there, and a few more at growing intervals, so that short runs are sampled
to their end. After that, a sampled step must be earned: `budget` × elapsed time, minus the cost of the light
steps.
"""

from __future__ import annotations

import sys

DENSE_STEPS = 32  # sampled one by one while the credit lasts: windows of 20 fill early
CREDIT = 2.0  # seconds that these and the spaced ones after them may cost together
SPREAD = 1.25  # ratio of each later step on credit to the one before: three in each doubling
SPARSE_EVERY = 10  # least number of steps between later samples: neighbouring steps show little that is new
MOST_SAMPLES = 2_000  # the interval doubles each time this many samples were taken, to bound the log
FULL_EVERY = SPARSE_EVERY  # when every step is sampled: updates need copies, histograms change slowly
AIM = 0.75  # share of the budget to spend by our own clock, which misses our thread and torch's colder caches
LEAST_SHARE = 0.15  # share of the budget for sampling where light steps need all of it (a step of 1 ms)


class SamplingBudget:
    """Decides before each step whether it is sampled."""

    def __init__(self, budget: float = 0.02, every_step: bool = False) -> None:
        self._budget = budget
        self.every_step = every_step
        self._stopped = False
        self.paused = False  # temporarily: a measurement is running that must not be disturbed
        self._always: list[range] = []  # steps that are sampled in any case
        self._start = CREDIT
        self._next_on_start = 0
        self._credit = 0.0
        self._cost = 0.0  # smoothed cost of a sampled step beyond a light one
        self._light = 0.0  # smoothed cost of a light step
        self._light_total = 0.0  # smoothed duration of a light step
        self._next = 0
        self._taken = 0
        self.interval = SPARSE_EVERY
        self._excused = 0.0  # seconds of this step that the user asked for, outside the budget
        self.light_cost = 0.0  # seconds per step spent writing light steps
        self.spent = 0.0
        self.elapsed = 0.0

    def always(self, steps: range) -> None:
        """Sample these steps, whatever they cost."""
        self._always.append(steps)

    def excuse(self, seconds: float) -> None:
        """The user asked for work that took this long: it is no cost of the open step."""
        self._excused += seconds

    def stop(self) -> None:
        """Take no more samples in this run."""
        self._stopped = True

    def wants(self, step: int) -> bool:
        """Whether to sample this step."""
        return self.next_wanted(step) == step

    def next_wanted(self, step: int) -> int:
        """The first step from this one on that `wants` accepts, unless something is booked before."""
        if self._stopped or self.paused:
            return sys.maxsize
        found = [step] if self.every_step else []
        found += [max(step, steps.start) for steps in self._always if step < steps.stop]
        if self._credit > 0.0 and self._credit >= self._cost:
            found.append(max(step, self._next))
        if self._start > 0.0 and self._start >= self._cost:
            found.append(max(step, self._next_on_start))
        return min(found, default=sys.maxsize)

    def wants_all(self, step: int) -> bool:
        """Whether a sampled step also measures updates, histograms and the inputs of the loss."""
        return not self.every_step or step < DENSE_STEPS or step % FULL_EVERY == 0

    def account(self, step: int, sampled: bool, own: float, total: float) -> None:
        """Book Clew's own time in a step against the step's total time."""
        self.spent += own
        self.elapsed += total
        own, total, self._excused = own - self._excused, total - self._excused, 0.0
        self._earn(1, own, total)
        if sampled:
            # Part of the cost of a sample is not in our own time: torch's slower paths, cold caches.
            longer = min(total - self._light_total, 4 * own) if self._light_total else 0.0
            self._book_sample(step, max(own - self._light, longer, 0.0))
        else:
            self._book_light(own, total)
        self._credit = min(self._credit, 2 * self._cost)  # credit cannot be saved up for a burst

    def account_light(self, steps: int, own: float, total: float) -> None:
        """Book the total cost of several light steps."""
        self.spent += own
        self.elapsed += total
        self._earn(steps, own, total)
        self._book_light(own / steps, total / steps, steps)
        self._credit = min(self._credit, 2 * self._cost)

    def _earn(self, steps: int, own: float, total: float) -> None:
        earned = AIM * self._budget * max(total - own, 0.0)
        self._credit += max(earned - steps * self._light, LEAST_SHARE * earned)

    def _book_light(self, own: float, total: float, steps: int = 1) -> None:
        self._light = smoothed(self._light, own, steps)
        self._light_total = smoothed(self._light_total, total, steps)

    def _book_sample(self, step: int, extra: float) -> None:
        if step >= self._next_on_start and self._start >= self._cost:
            self._start -= extra
        else:
            self._credit -= extra
        self._cost = extra if self._taken == 0 else 0.7 * self._cost + 0.3 * extra
        self._taken += 1
        if self._taken % MOST_SAMPLES == 0:
            self.interval *= 2
        self._next = step + self.interval
        self._next_on_start = step + 1 if step < DENSE_STEPS - 1 else int(step * SPREAD) + 1


def smoothed(before: float, now: float, times: int = 1) -> float:
    """A running mean that a single slow step does not upset; `times` is the number of steps like this one."""
    if before == 0.0:
        return now
    while times and now > 3 * before:
        before, times = 0.9 * before + 0.1 * 3 * before, times - 1
    return float(now + (before - now) * 0.9**times)
