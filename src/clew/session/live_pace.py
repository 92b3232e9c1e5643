"""When to check a run in progress: at given steps in the beginning, later depending on the cost of a
check.

Most faults show in the first steps, and a run of a few seconds has no others. So the first checks run at
given steps, at growing distances, paid from a credit; later ones must be earned by elapsed time. The
checks run on a separate thread, but compete with training for the interpreter lock.
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
        """Whether a check is due at this step, regardless of the time."""
        return self.early <= step <= YOUNG and self.credit > 0.0

    def is_due(self, step: int, now: float) -> bool:
        return self.is_early(step) or (step >= FIRST and now >= self.earned)

    def looked(self, step: int, now: float, cost: float) -> None:
        """A check at this step has finished."""
        if self.is_early(step):
            self.credit -= cost
        self.earned = now + max(PAUSE, cost / self.share)
        self.early = max(step + FIRST // 2, int(step * SPREAD))


# Who asks for the run to be ended at a finding wants it soon more than for nothing.
EAGER_CREDIT, EAGER_SHARE = 2.0, 0.02
