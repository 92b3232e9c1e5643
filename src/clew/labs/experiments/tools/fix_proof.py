"""Proof by intervention: the same steps as the program is and with the fix, from the same start.

The loss at the end is measured in the way of the repaired loop for both, so that a repair of the
loss itself is judged by what was meant. A trial begins short and grows while it tells nothing: many
faults are harmless for the first dozens of steps.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from clew.labs.experiments.tools.fixes import REPAIRS, Variant
from clew.labs.experiments.tools.trial_loop import Loop, ends_at
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock, OutOfTime
from clew.records.finding import Proof

HORIZONS = (30, 90, 270)  # steps: each is tried if the one before it told nothing
FEWEST_STEPS = 10  # a shorter trial tells nothing
SEEDS = 3
CLEAR = 0.05  # share of the loss that a fix must gain, beyond the spread over the seeds
NOTHING = 0.01  # share below which a fix has gained nothing
TRAINS = 0.5  # share of its start to which the loss must come for "it trains well without the fix"


def provable(check: str) -> bool:
    """Whether there is a fix for this fault that can be tried."""
    return check in REPAIRS


def prove(check: str, found: Iterable[str], subject: Subject, clock: Clock) -> Proof:
    """Try the fix of one fault in a loop that has all of those found; raises CannotJudge."""
    if check not in REPAIRS:
        raise CannotJudge("its fix can't be tested automatically")
    subject.need_step()
    if len(subject.optimizers) != 1:
        raise CannotJudge("several optimizers take turns" if subject.optimizers else "no optimizer was found")
    as_it_is = Loop()
    for name in (*found, check):
        if name in REPAIRS:
            as_it_is = REPAIRS[name].faulty(as_it_is)
    repair = REPAIRS[check]
    try:
        proof = _Trial(subject, as_it_is, repair.variants, clock).run()
    except OutOfTime:
        raise CannotJudge("no time left to test the fix") from None
    return replace(proof, helped=None) if repair.only_confirms and not proof.helped else proof


@dataclass
class _Trial:
    """One fault, its fix in one or more strengths, and ever longer runs of both."""

    subject: Subject
    as_it_is: Loop
    variants: Sequence[Variant]
    clock: Clock

    def run(self) -> Proof:
        each = self._seconds_per_step()
        proof: Proof | None = None
        for steps in HORIZONS:
            room = int(self.clock.left / ((1 + len(self.variants) + 2 * (SEEDS - 1)) * each))
            if room < min(steps, FEWEST_STEPS) or (proof is not None and room < steps):
                break
            try:
                proof = self._at(min(steps, room))
            except OutOfTime:
                break
            if proof.helped:
                break
        if proof is None:
            raise CannotJudge("no time left to test the fix")
        return proof

    def _seconds_per_step(self) -> float:
        self._ends(self.as_it_is, self.as_it_is, 1, 0)  # the first one pays for what is set up once
        shortest = math.inf  # of three: another program's burst must not cost a longer trial
        for _ in range(3):
            began = perf_counter()
            self._ends(self.as_it_is, self.as_it_is, 3, 0)
            shortest = min(shortest, (perf_counter() - began) / 3)
        return max(shortest, 1e-6)

    def _at(self, steps: int) -> Proof:
        fixes = [(v, v.fixed(self.as_it_is, self.subject)) for v in self.variants]
        ends = [self._ends(loop, loop, steps, 0) for _, loop in fixes]
        best = min(range(len(fixes)), key=lambda n: ends[n])
        variant, fixed = fixes[best]
        start = self._ends(self.as_it_is, fixed, 0, 0)
        before = [self._ends(self.as_it_is, fixed, steps, seed) for seed in range(SEEDS)]
        after = [ends[best], *(self._ends(fixed, fixed, steps, seed) for seed in range(1, SEEDS))]
        return Proof(
            fix=variant.text,
            steps=steps,
            seeds=SEEDS,
            before=statistics.median(before),
            after=statistics.median(after),
            before_spread=(min(before), max(before)),
            after_spread=(min(after), max(after)),
            helped=helped(start, before, after),
        )

    def _ends(self, loop: Loop, measured_as: Loop, steps: int, seed: int) -> float:
        return ends_at(self.subject, loop, measured_as, steps, seed, self.clock)


def helped(start: float, before: list[float], after: list[float]) -> bool | None:
    """Whether the fix gained clearly more than the seeds differ; None: it can't be told.

    That it does not help can be said only where training goes well without it.
    """
    old, new = statistics.median(before), statistics.median(after)
    if not math.isfinite(old):
        return True if math.isfinite(new) else None
    size = max(abs(old), abs(new), 1e-12)
    if max(after) < min(before) and old - new > CLEAR * size:
        return True
    trains = start > 0 and old < TRAINS * start
    return False if trains and old - new < NOTHING * size else None
