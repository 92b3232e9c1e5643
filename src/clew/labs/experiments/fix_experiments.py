"""Tries the fixes of the findings, one after the other, within a time limit."""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import torch
from torch import nn

from clew.labs.experiments.fixes import REPAIRS, TrainingLoop, Variant
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock, OutOfTime, first_line
from clew.records.facts.fact import FactSink
from clew.records.facts.run_facts import ProofFact
from clew.records.finding import Proof

PROOFS = 0.2  # share of a time limit for experiments that is kept for trying the fixes
HORIZONS = (30, 90, 270)  # steps: each length is tried if the previous one was inconclusive
FEWEST_STEPS = 10  # a shorter training is inconclusive
SEEDS = 3
CLEAR = 0.05  # share of the loss that a fix must gain, beyond the spread over the seeds
NOTHING = 0.01  # share below which a fix has gained nothing
TRAINS = 0.5  # share of its start to which the loss must come for "it trains well without the fix"
JUDGED = 4  # batches on which the loss is measured at the end
MOST = 4  # findings whose fixes are tried: the first ones are the root causes
SHARE = 0.5  # share of the remaining time for one fix if another follows


def prove_fixes(
    found: Sequence[str],
    subject: Subject,
    sink: FactSink,
    step: int,
    limit: float,
) -> None:
    """Write a `proof` fact for every finding (in the order of the verdict) whose fix can be tried."""
    whole = Clock(limit)
    tried = [name for name in found if name in REPAIRS][:MOST]
    for number, check in enumerate(tried):
        last = number == len(tried) - 1
        clock = Clock(whole.left if last else whole.left * SHARE)
        try:
            proof = prove(check, found, subject, clock)
        except CannotJudge as refusal:
            ProofFact(check, refused=refusal.reason).write(sink, step)
        except Exception as error:  # noqa: BLE001 - the user's own step may fail in any way
            ProofFact(check, refused=f"the step failed: {first_line(error)[:200]}").write(sink, step)
        else:
            ProofFact(check, **proof.to_json()).write(sink, step)


def prove(check: str, found: Iterable[str], subject: Subject, clock: Clock) -> Proof:
    """Try the fix of one fault in a loop that has all faults found so far; raises CannotJudge."""
    if check not in REPAIRS:
        raise CannotJudge("its fix can't be tested automatically")
    subject.need_training()
    as_it_is = TrainingLoop()
    for name in (*found, check):
        if name in REPAIRS:
            as_it_is = REPAIRS[name].faulty(as_it_is)
    repair = REPAIRS[check]
    try:
        proof = _FixExperiment(subject, as_it_is, repair.variants, clock).run()
    except OutOfTime:
        raise CannotJudge("time limit reached before the fix could be tested") from None
    return replace(proof, helped=None) if repair.only_confirms and not proof.helped else proof


@dataclass
class _FixExperiment:
    """One fault, its fix in one or more strengths, and longer and longer runs with and without it."""

    subject: Subject
    as_it_is: TrainingLoop
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
            raise CannotJudge("time limit reached before the fix could be tested")
        return proof

    def _seconds_per_step(self) -> float:
        self._ends(self.as_it_is, self.as_it_is, 1, 0)  # the first one includes one-time setup
        shortest = math.inf  # of three: another program's burst must not cost a longer training
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

    def _ends(self, loop: TrainingLoop, measured_as: TrainingLoop, steps: int, seed: int) -> float:
        """The mean loss after this many steps, measured as another loop would, on its samples."""
        precision = torch.autocast("cpu", enabled=False) if loop.full_precision else contextlib.nullcontext()
        with self.subject.snapshot(seed=seed, fresh=loop.fresh) as snapshot, precision:
            for change in loop.prepare:
                change(snapshot)
            for group in snapshot.optimizer.param_groups:
                group["lr"] = group["lr"] * loop.rate
            batches = self._batches(loop, loop, seed)
            snapshot.seed(seed)
            with loop.around():
                self._train(snapshot, batches, loop, steps)
            with measured_as.around(), torch.no_grad():
                batches = self._batches(measured_as, loop, seed)
                found = [float(snapshot.loss(batch)) for batch in batches[:JUDGED]]
        mean = sum(found) / len(found)
        return mean if math.isfinite(mean) else math.inf

    def _batches(self, arranged_by: TrainingLoop, seen_by: TrainingLoop, seed: int) -> Sequence[StepBatch]:
        batches: Sequence[StepBatch] = self.subject.batches
        batches = batches if arranged_by.rearrange is None else arranged_by.rearrange(batches, seed)
        return batches if seen_by.see is None else seen_by.see(batches)

    def _train(
        self, snapshot: StepSnapshot, batches: Sequence[StepBatch], loop: TrainingLoop, steps: int
    ) -> None:
        optimizer = snapshot.optimizer
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        clip = self.subject.clip if loop.clip is None else loop.clip
        order = _order(len(batches), steps * loop.every)
        for step in range(steps):
            self.clock.tick(step / steps)
            if loop.zero:
                optimizer.zero_grad()
                for parameter in self.subject.parameters():  # a fix may add those that the optimizer lacks
                    parameter.grad = None
            for part in range(loop.every):
                if part and not loop.keeps:
                    optimizer.zero_grad()
                loss = snapshot.loss(batches[order[step * loop.every + part]])
                (loss / loop.every if loop.divide else loss).backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(parameters, clip)
            optimizer.step()


def _order(count: int, length: int) -> list[int]:
    """A new order in every pass, drawn from the snapshot's generator."""
    order: list[int] = []
    while len(order) < length:
        order += torch.randperm(count).tolist()
    return order


def helped(start: float, before: list[float], after: list[float]) -> bool | None:
    """Whether the fix gained clearly more than the spread over seeds; None if that is undecided.

    "It does not help" is a valid answer only if training goes well without the fix.
    """
    old, new = statistics.median(before), statistics.median(after)
    if not math.isfinite(old):
        return True if math.isfinite(new) else None
    size = max(abs(old), abs(new), 1e-12)
    if max(after) < min(before) and old - new > CLEAR * size:
        return True
    trains = start > 0 and old < TRAINS * start
    return False if trains and old - new < NOTHING * size else None
