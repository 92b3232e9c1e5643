"""Tries the fixes of the findings, one after the other, within a time limit."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from clew.hooks.entry.sink import Sink
from clew.labs.experiments.tools.fixes import REPAIRS, Variant
from clew.labs.experiments.tools.trial_loop import TrialLoop, ends_at
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock, OutOfTime
from clew.records.facts.run_facts import ProofFact
from clew.records.finding import Proof

HORIZONS = (30, 90, 270)  # steps: each length is tried if the previous one was inconclusive
FEWEST_STEPS = 10  # a shorter trial is inconclusive
SEEDS = 3
CLEAR = 0.05  # share of the loss that a fix must gain, beyond the spread over the seeds
NOTHING = 0.01  # share below which a fix has gained nothing
TRAINS = 0.5  # share of its start to which the loss must come for "it trains well without the fix"

MOST = 4  # findings whose fixes are tried: the first ones are the root causes
SHARE = 0.5  # share of the remaining time for one trial if another follows


def try_fixes(
    found: Sequence[str],
    subject: Subject,
    sink: Sink,
    step: int,
    limit: float,
) -> None:
    """Write a `proof` fact for every finding (in the order of the verdict) whose fix can be tried."""
    whole = Clock(limit)
    whole.start()
    tried = [name for name in found if provable(name)][:MOST]
    for number, check in enumerate(tried):
        last = number == len(tried) - 1
        clock = Clock(whole.left if last else whole.left * SHARE)
        clock.start()
        try:
            proof = prove(check, found, subject, clock)
        except CannotJudge as refusal:
            ProofFact(check, refused=refusal.reason).write(sink, step)
        except Exception as error:  # noqa: BLE001 - the user's own step may fail in any way
            told = (str(error).splitlines() or [type(error).__name__])[0]
            ProofFact(check, refused=f"the step failed: {told[:200]}").write(sink, step)
        else:
            sink.fact(ProofFact.fact_kind, step, {"check": check, **proof.to_json()})


def provable(check: str) -> bool:
    """Whether there is a fix for this fault that can be tried."""
    return check in REPAIRS


def prove(check: str, found: Iterable[str], subject: Subject, clock: Clock) -> Proof:
    """Try the fix of one fault in a loop that has all faults found so far; raises CannotJudge."""
    if check not in REPAIRS:
        raise CannotJudge("its fix can't be tested automatically")
    subject.need_step()
    if len(subject.optimizers) != 1:
        raise CannotJudge("several optimizers take turns" if subject.optimizers else "no optimizer was found")
    as_it_is = TrialLoop()
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
    """One fault, its fix in one or more strengths, and longer and longer runs with and without it."""

    subject: Subject
    as_it_is: TrialLoop
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
        self._ends(self.as_it_is, self.as_it_is, 1, 0)  # the first one includes one-time setup
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

    def _ends(self, loop: TrialLoop, measured_as: TrialLoop, steps: int, seed: int) -> float:
        return ends_at(self.subject, loop, measured_as, steps, seed, self.clock)


def helped(start: float, before: list[float], after: list[float]) -> bool | None:
    """Whether the fix gained clearly more than the spread over seeds; None if that is undecided.

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
