"""`--try`: times the user's step against the step with one change, alternating, on a snapshot.

Each change that makes sense for the program is timed in rounds (see `step_runner.py`), its results
are compared with the program's (`same_results.py`), and both become a `TriedChange`. The cheapest
come first, within one time limit; a failure is a result too, in one line.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import torch

from clew.labs.profiler.step_experiments import compiled_step
from clew.labs.profiler.step_experiments.same_results import NOT_COMPARED, ResultComparison, model_calls
from clew.labs.profiler.step_experiments.step_changes import StepChange, changes, own_variant
from clew.labs.profiler.step_experiments.step_runner import (
    LEAST_ROUNDS,
    SLOW,
    TIME_LIMIT,
    Half,
    Pairs,
    Progress,
    Record,
    StepRunner,
    StepVariant,
    error_line,
    in_turn,
    spread,
    step_runner,
    steps_of_half,
)
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.model_calls import in_mode
from clew.records.facts.document_facts import TriedChangeFact
from clew.records.tried_changes import COMPILE, NO_GRADIENTS, TriedChange

FOR_COMPILING = 0.4  # share of the time reserved for torch.compile, which comes last and takes longest
HOPELESS = 4.0  # times slower in each of a few steps: not timed further
COMPARING = 8  # steps that comparing the results takes, roughly
SHAPES = 3  # batches of different shapes that are compiled for before timing
NO_TIME = "time limit reached; allow more: --try-limit {limit:.0f}"


def try_faster(
    subject: Subject,
    record: Record,
    *,
    time_limit: float = TIME_LIMIT,
    progress: Progress | None = None,
    evaluation: bool = False,
    threads: bool = True,
    now: Callable[[], float] = perf_counter,
) -> list[TriedChange]:
    """Try all changes that make sense, one after the other; each is recorded as soon as it is done.

    `evaluation`: the program was seen evaluating with gradients. `threads` False leaves their number
    alone, since a change would affect a process that continues to train.
    """
    experiments = _Experiments(record, progress, time_limit, now() + time_limit, now)
    try:
        with step_runner(subject, now) as runner, _compiled_if_the_program_compiles():
            experiments.prepare(runner)
            experiments.run(list(changes(subject, threads=threads)), evaluation=evaluation)
    except CannotJudge as error:
        experiments.done(TriedChange("", reason=error.reason, rest={"hint": error.hint}))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may fail in any way
        experiments.done(TriedChange("", reason=f"running your step again failed: {error_line(error)}"))
    return experiments.attempts


def _compiled_if_the_program_compiles() -> contextlib.AbstractContextManager[Any]:
    """A program that compiles is measured compiled."""
    return compiled_step.running_compiled() if compiled_step.compiles_already() else contextlib.nullcontext()


@dataclass
class _Experiments:
    """The experiments on one snapshot."""

    record: Record
    progress: Progress | None
    limit: float  # seconds in all
    until: float
    now: Callable[[], float]
    attempts: list[TriedChange] = field(default_factory=list)
    _kept: float = 0.0  # seconds reserved for later

    def prepare(self, runner: StepRunner) -> None:
        """Measure how long a step takes, and what it computes."""
        self._runner = runner
        self._own = own_variant(runner.subject)
        self._batches: Sequence[StepBatch] = runner.subject.batches
        self._report("the unchanged step", 0, 1)
        runner.half(self._own, self._batches, 1, warm=False)  # the first step of a process is slow
        self._seconds = runner.half(self._own, self._batches, 1, warm=False)
        self._steps = steps_of_half(self._seconds)
        self._comparison = ResultComparison(runner, self._own)

    def run(self, wanted: list[StepChange], *, evaluation: bool) -> None:
        compile_too = not compiled_step.compiles_already()
        self._count = len(wanted) + evaluation + compile_too
        self._reserve = FOR_COMPILING * self._left if compile_too else 0.0
        if evaluation:
            self._one(NO_GRADIENTS, "with torch.inference_mode():", self._evaluation)
        for change in wanted:
            self._one(change.name, change.setting, partial(self._changed, change))
        if compile_too:
            self._one(COMPILE, "model = torch.compile(model)", self._compiled)

    def _one(self, name: str, setting: str, experiment: Callable[[], TriedChange]) -> None:
        self._report(setting, len(self.attempts), self._count)
        needed = LEAST_ROUNDS * 2 * self._per_half() + COMPARING * self._seconds
        self._kept = 0.0 if name == COMPILE else self._reserve
        if needed > self._left:
            found = TriedChange(name, reason=self._no_time(needed))
        else:
            try:
                found = experiment()
            except CannotJudge as error:
                found = TriedChange(name, reason=error.reason)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a failure is the result
                found = TriedChange(name, reason=error_line(error))
        self.done(replace(found, name=name, setting=setting))

    def done(self, attempt: TriedChange) -> None:
        self.attempts.append(attempt)
        self.record(TriedChangeFact(attempt))

    # -- the kinds of experiments --

    def _changed(self, change: StepChange) -> TriedChange:
        variant = change.variant(self._own)
        hopeless = self._far_slower(variant)
        if hopeless is not None:
            return replace(hopeless, rest=change.rest)
        difference, same = self._comparison.of(variant)
        found = self._timed(self._half(self._own), self._half(variant))
        return replace(
            found,
            difference=difference,
            same=same if change.exact or same else None,
            rest={**change.rest, **self._note()},
        )

    def _evaluation(self) -> TriedChange:
        before, after = evaluation_halves(self._runner, self.now)
        return replace(self._timed(before, after), what="evaluation")

    def _compiled(self) -> TriedChange:
        reason = compiled_step.impossible()
        if reason:
            raise CannotJudge(reason)
        models = list(self._runner.subject.models.values())
        with compiled_step.clean_up_afterwards():
            calls = model_calls(self._runner, self._batches[0])
            breaks, ops = compiled_step.find_graph_breaks(self._runner, calls)
            if ops * compiled_step.SECONDS_OF_OP > self._left:
                reason = self._no_time(ops * compiled_step.SECONDS_OF_OP)
                return TriedChange(COMPILE, breaks=tuple(breaks), reason=reason)
            variant = compiled_step.CompiledModels(models).variant(self._own)
            once = self._warm_up(variant)
            found = self._timed(self._half(self._own), self._half(variant))
            difference, same, note = self._agreement(variant, once)
        return replace(
            found,
            once=once,
            breaks=tuple(breaks),
            difference=difference,
            same=same,
            rest={"ops": ops, **note},
        )

    def _warm_up(self, variant: StepVariant) -> float:
        """Seconds that compiling takes: for the first shapes, and once more if they change."""
        shapes: dict[Any, StepBatch] = {}
        for batch in self._batches:
            shapes.setdefault(tuple(t.shape for t in batch.tensors()), batch)
        began = self.now()
        for batch in list(shapes.values())[:SHAPES]:
            self._runner.half(variant, [batch], 1, warm=True)
        return max(self.now() - began - 2 * self._seconds * len(shapes), 0.0)

    def _agreement(
        self, variant: StepVariant, once: float
    ) -> tuple[dict[str, float], bool | None, dict[str, Any]]:
        """It is compiled once more if it runs in another mode than it was timed in."""
        if self._comparison.note and once > self._left:
            return {}, None, {"compared": NOT_COMPARED}
        return (*self._comparison.of(variant), self._note())

    # -- timing --

    def _far_slower(self, variant: StepVariant) -> TriedChange | None:
        """Bfloat16 on a CPU without it takes twenty times as long: rounds of that are pointless."""
        fastest = float("inf")
        for _ in range(3):
            fastest = min(fastest, self._runner.half(variant, self._batches, 1, warm=False))
            if fastest < HOPELESS * self._seconds:
                return None
        gain = 1.0 - fastest / self._seconds
        return TriedChange("", before=self._seconds, after=fastest, gain=gain, clear=True, rounds=1)

    def _timed(self, before: Half, after: Half) -> TriedChange:
        number = len(self.attempts)
        share = self._left / max(self._count - number - (self._kept > 0), 1)
        until = self.now() + share

        def go_on(rounds: int) -> bool:
            self._report(self._name, number, self._count, min(rounds / (LEAST_ROUNDS + 2), 1.0))
            return rounds < LEAST_ROUNDS or self.now() < until

        return change_of(in_turn(before, after, self._steps, go_on=go_on))

    def _half(self, variant: StepVariant) -> Half:
        warm = self._seconds < SLOW
        return lambda steps: self._runner.half(variant, self._batches, steps, warm=warm)

    def _per_half(self) -> float:
        return (self._steps + (self._seconds < SLOW)) * self._seconds

    def _note(self) -> dict[str, Any]:
        return {"compared": self._comparison.note} if self._comparison.note else {}

    def _no_time(self, needed: float) -> str:
        more = max(needed - self._left, 1.0)
        return NO_TIME.format(limit=10 * math.ceil((self.limit + 3 * more) / 10))

    @property
    def _left(self) -> float:
        """Seconds left for the current experiment."""
        return self.until - self._kept - self.now()

    def _report(self, name: str, number: int, count: int, done: float = 0.0) -> None:
        self._name = name
        if self.progress is not None:
            self.progress(number, count, name, done)


def change_of(pairs: Pairs) -> TriedChange:
    """The numbers of an attempt."""
    return TriedChange(
        "",
        before=statistics.median(pairs.before),
        after=statistics.median(pairs.after),
        spread_before=spread(pairs.before),
        spread_after=spread(pairs.after),
        gain=pairs.gain,
        noise=pairs.noise,
        clear=pairs.clear,
        rounds=len(pairs.before),
    )


def evaluation_halves(runner: StepRunner, now: Callable[[], float]) -> tuple[Half, Half]:
    """Forwards of one batch, with and without a graph."""
    calls = model_calls(runner, runner.subject.batch())
    if not calls:
        raise CannotJudge("the step calls no model")
    models = runner.subject.models

    def half(mode: Callable[[], AbstractContextManager[Any]]) -> Half:
        def forwards(count: int) -> float:
            taken = []
            with in_mode(models.values(), training=False), mode():
                for _ in range(count + 1):
                    began = now()
                    for name, args, kwargs in calls:
                        models[name](*args, **kwargs)
                    taken.append(now() - began)
            return statistics.median(taken[1:])

        return forwards

    return half(contextlib.nullcontext), half(torch.inference_mode)
