"""`--try`: times the user's step against the step with one change, alternating, on a snapshot.

Each change that makes sense for the program is timed in rounds (see `rounds.py`), what it computes
is held against what the program computes (`agreement.py`), and both become an `Attempt`. It is the
cheapest ones first, within one time limit; whatever fails is an answer too, in one line.
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

from clew.hooks.steps.pause import distributed
from clew.labs.profiler.attempts import compiled_step
from clew.labs.profiler.attempts.paired_rounds import (
    LEAST_ROUNDS,
    Half,
    Pairs,
    in_turn,
    spread,
    steps_of_half,
)
from clew.labs.profiler.attempts.same_results import NOT_COMPARED, ResultComparison, evaluating, model_calls
from clew.labs.profiler.attempts.step_changes import StepChange, as_it_is, changes
from clew.labs.profiler.attempts.trainee import SLOW, StepWay, Trainee, trainee
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.records.facts.document_facts import AttemptFact
from clew.records.tried_changes import COMPILE, NO_GRADIENTS, Attempt

TIME_LIMIT = 60.0  # seconds in all
FOR_COMPILING = 0.4  # of the time that is kept for torch.compile, which comes last and takes longest
HOPELESS = 4.0  # times slower, seen in every one of a few steps: not timed further
COMPARING = 8  # steps that comparing what is computed takes, about
SHAPES = 3  # batches of different shapes that are compiled for before timing
NO_TIME = "no time left: --try-limit {limit:.0f}"
SEVERAL = "training is spread over several processes"

Record = Callable[[str, dict[str, Any]], None]  # a fact's kind and its content
Progress = Callable[[int, int, str, float], None]  # how many are done, of how many, which one, how far


def try_faster(
    subject: Subject,
    record: Record,
    *,
    time_limit: float = TIME_LIMIT,
    progress: Progress | None = None,
    evaluation: bool = False,
    threads: bool = True,
    now: Callable[[], float] = perf_counter,
) -> list[Attempt]:
    """All changes that make sense, one after the other; each is recorded as soon as it is there.

    `evaluation`: the program was seen to evaluate with gradients. `threads` False leaves their number
    alone, which a process that trains on afterwards would feel.
    """
    trial = _Trial(record, progress, time_limit, now() + time_limit, now)
    try:
        if distributed():
            raise CannotJudge(SEVERAL)
        with trainee(subject) as snapshot, _as_compiled_as_it_is():
            snapshot.now = now
            trial.prepare(snapshot)
            trial.run(list(changes(subject, threads=threads)), evaluation=evaluation)
    except CannotJudge as error:
        trial.done(Attempt("", reason=error.reason, rest={"hint": error.hint}))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may fail in any way
        trial.done(Attempt("", reason=f"running your step again failed: {_said(error)}"))
    return trial.attempts


def _as_compiled_as_it_is() -> contextlib.AbstractContextManager[Any]:
    """A program that compiles is measured compiled."""
    return compiled_step.running_compiled() if compiled_step.compiles_already() else contextlib.nullcontext()


@dataclass
class _Trial:
    """The attempts on one snapshot."""

    record: Record
    progress: Progress | None
    limit: float  # seconds in all
    until: float
    now: Callable[[], float]
    attempts: list[Attempt] = field(default_factory=list)
    _kept: float = 0.0  # seconds that are kept for later

    def prepare(self, snapshot: Trainee) -> None:
        """How long a step takes, and what it computes."""
        self._snapshot = snapshot
        self._own = as_it_is(snapshot.subject)
        self._batches: Sequence[StepBatch] = snapshot.subject.batches
        self._tell("the unchanged step", 0, 1)
        snapshot.half(self._own, self._batches, 1, warm=False)  # the first one of a process is slow
        self._seconds = snapshot.half(self._own, self._batches, 1, warm=False)
        self._steps = steps_of_half(self._seconds)
        self._comparison = ResultComparison(snapshot, self._own)

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

    def _one(self, name: str, setting: str, attempt: Callable[[], Attempt]) -> None:
        self._tell(setting, len(self.attempts), self._count)
        needed = LEAST_ROUNDS * 2 * self._per_half() + COMPARING * self._seconds
        self._kept = 0.0 if name == COMPILE else self._reserve
        if needed > self._left:
            found = Attempt(name, reason=self._no_time(needed))
        else:
            try:
                found = attempt()
            except CannotJudge as error:
                found = Attempt(name, reason=error.reason)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever fails is the answer
                found = Attempt(name, reason=_said(error))
        self.done(replace(found, name=name, setting=setting))

    def done(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        self.record(AttemptFact.fact_kind, AttemptFact(attempt).to_json())

    # -- the kinds of attempts --

    def _changed(self, change: StepChange) -> Attempt:
        way = change.way(self._own)
        hopeless = self._far_slower(way)
        if hopeless is not None:
            return replace(hopeless, rest=change.rest)
        difference, same = self._comparison.of(way)
        found = self._timed(self._half(self._own), self._half(way))
        return replace(
            found,
            difference=difference,
            same=same if change.exact or same else None,
            rest={**change.rest, **self._note()},
        )

    def _evaluation(self) -> Attempt:
        before, after = evaluation_halves(self._snapshot, self.now)
        return replace(self._timed(before, after), what="evaluation")

    def _compiled(self) -> Attempt:
        reason = compiled_step.impossible()
        if reason:
            raise CannotJudge(reason)
        models = list(self._snapshot.subject.models.values())
        with compiled_step.undone():
            calls = model_calls(self._snapshot, self._batches[0])
            breaks, ops = compiled_step.explained(self._snapshot, calls)
            if ops * compiled_step.SECONDS_OF_OP > self._left:
                reason = self._no_time(ops * compiled_step.SECONDS_OF_OP)
                return Attempt(COMPILE, breaks=tuple(breaks), reason=reason)
            way = compiled_step.Compiled(models).way(self._own)
            once = self._warm_up(way)
            found = self._timed(self._half(self._own), self._half(way))
            difference, same, note = self._agreement(way, once)
        return replace(
            found,
            once=once,
            breaks=tuple(breaks),
            difference=difference,
            same=same,
            rest={"ops": ops, **note},
        )

    def _warm_up(self, way: StepWay) -> float:
        """Seconds that compiling takes: for the shapes that come, and once more if they change."""
        shapes: dict[Any, StepBatch] = {}
        for batch in self._batches:
            shapes.setdefault(tuple(t.shape for t in batch.tensors()), batch)
        began = self.now()
        for batch in list(shapes.values())[:SHAPES]:
            self._snapshot.half(way, [batch], 1, warm=True)
        return max(self.now() - began - 2 * self._seconds * len(shapes), 0.0)

    def _agreement(self, way: StepWay, once: float) -> tuple[dict[str, float], bool | None, dict[str, Any]]:
        """In another mode than it was timed in, it is compiled once more."""
        if self._comparison.note and once > self._left:
            return {}, None, {"compared": NOT_COMPARED}
        return (*self._comparison.of(way), self._note())

    # -- timing --

    def _far_slower(self, way: StepWay) -> Attempt | None:
        """Bfloat16 on a processor without it takes twenty times as long: rounds of that are for nobody."""
        fastest = float("inf")
        for _ in range(3):
            fastest = min(fastest, self._snapshot.half(way, self._batches, 1, warm=False))
            if fastest < HOPELESS * self._seconds:
                return None
        gain = 1.0 - fastest / self._seconds
        return Attempt("", before=self._seconds, after=fastest, gain=gain, clear=True, rounds=1)

    def _timed(self, before: Half, after: Half) -> Attempt:
        number = len(self.attempts)
        share = self._left / max(self._count - number - (self._kept > 0), 1)
        until = self.now() + share

        def go_on(rounds: int) -> bool:
            self._tell(self._name, number, self._count, min(rounds / (LEAST_ROUNDS + 2), 1.0))
            return rounds < LEAST_ROUNDS or self.now() < until

        return measured(in_turn(before, after, self._steps, go_on=go_on))

    def _half(self, way: StepWay) -> Half:
        warm = self._seconds < SLOW
        return lambda steps: self._snapshot.half(way, self._batches, steps, warm=warm)

    def _per_half(self) -> float:
        return (self._steps + (self._seconds < SLOW)) * self._seconds

    def _note(self) -> dict[str, Any]:
        return {"compared": self._comparison.note} if self._comparison.note else {}

    def _no_time(self, needed: float) -> str:
        more = max(needed - self._left, 1.0)
        return NO_TIME.format(limit=10 * math.ceil((self.limit + 3 * more) / 10))

    @property
    def _left(self) -> float:
        """Seconds for what is tried now."""
        return self.until - self._kept - self.now()

    def _tell(self, name: str, number: int, count: int, done: float = 0.0) -> None:
        self._name = name
        if self.progress is not None:
            self.progress(number, count, name, done)


def measured(pairs: Pairs) -> Attempt:
    """The numbers of an attempt."""
    return Attempt(
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


def _said(error: BaseException) -> str:
    """In one line, with what it is about where the first line only announces it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    return (f"{type(error).__name__}: {first}" if first else type(error).__name__)[:240]


def evaluation_halves(trainee: Trainee, now: Callable[[], float]) -> tuple[Half, Half]:
    """Forwards of one batch, as a graph is kept for them and as it is not."""
    calls = model_calls(trainee, trainee.subject.batch())
    if not calls:
        raise CannotJudge("the step calls no model")
    models = trainee.subject.models

    def half(mode: Callable[[], AbstractContextManager[Any]]) -> Half:
        def forwards(count: int) -> float:
            taken = []
            with evaluating(list(models.values())), mode():
                for _ in range(count + 1):
                    began = now()
                    for name, args, kwargs in calls:
                        models[name](*args, **kwargs)
                    taken.append(now() - began)
            return statistics.median(taken[1:])

        return forwards

    return half(contextlib.nullcontext), half(torch.inference_mode)
