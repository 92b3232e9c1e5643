"""When to look at a run that is going on: by its steps while it is young, later by what looking costs.

Most faults show in the first steps, and a run of a few seconds has no others. So the first looks come
at given steps, ever further apart, out of a credit; those after it must have been earned by time gone
by. Looking is done on a thread of its own, but competes with the training for the interpreter lock.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST = 8  # steps: checks that need a window have nothing to say before
SPREAD = 1.5  # of each early look's step over the one before: 13 of them up to step 1,000
YOUNG = 2_000  # steps: later on, looks that time has earned come more often than the early ones would
PAUSE = 0.5  # seconds from any look to one that time has earned, at least


@dataclass
class Pace:
    """Seconds here are a processor's, but for the time of day."""

    credit: float = 0.4  # for the early looks; one at a small network takes a hundredth of a second
    share: float = 0.0015  # of one processor that later looks may take: every ten seconds at a small network
    early: int = FIRST  # the step from which on the next early look is due
    earned: float = 0.0  # when a later one is

    def is_early(self, step: int) -> bool:
        """Whether a look is due for the steps that were made, whatever the time."""
        return self.early <= step <= YOUNG and self.credit > 0.0

    def is_due(self, step: int, now: float) -> bool:
        return self.is_early(step) or (step >= FIRST and now >= self.earned)

    def looked(self, step: int, now: float, cost: float) -> None:
        """A look at so many steps is over."""
        if self.is_early(step):
            self.credit -= cost
        self.earned = now + max(PAUSE, cost / self.share)
        self.early = max(step + FIRST // 2, int(step * SPREAD))


# Who asks for the run to be ended at a finding wants it soon more than for nothing.
EAGER_CREDIT, EAGER_SHARE = 2.0, 0.02
