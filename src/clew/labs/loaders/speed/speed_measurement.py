"""Measures a loader: how fast it is, what is slow, how large its data is, and what would be faster.

    found = measure(readable, subject=subject, seconds=20, sweep=True)
    measured_facts(found)   # clew.records.facts.loader_facts

The caller makes sure that no probe is active. The program's loaders, datasets, samplers and
generators are restored; a part that can't be measured is missing, with the reason in `notes`.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from torch import nn

from clew.labs.loaders.readable_loader import MAP, ReadableLoader
from clew.labs.loaders.speed.batch_padding import paddings
from clew.labs.loaders.speed.field_sizes import FieldSizes
from clew.labs.loaders.speed.loader_rate import (
    DeliveryRate,
    LoaderSetting,
    deliver,
    rate_of,
    samples_in,
)
from clew.labs.loaders.speed.stage_times import TimedSamples, hot_lines, time_stages
from clew.labs.loaders.speed.worker_sweep import sweep as swept
from clew.labs.loaders.speed.worker_sweep import usable_cores
from clew.labs.loaders.speed.worker_transfer import measure_pinning, measure_transfer
from clew.labs.loaders.user_errors import worker_error_line
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import Split, split
from clew.records.errors import CannotRead
from clew.records.loader_speed import (
    DATASET,
    PICKLE,
    PIN,
    TRANSFORM,
    MeasuredLoader,
    Rate,
    Sizes,
    Speeds,
    Stages,
    StageTime,
)

STEP, FORWARD = "training step", "forward"
WARM_UP = 2  # steps that are not counted: memory is allocated, kernels are chosen

SWEEP = 0.6  # of the time, if a sweep is requested
LATE = 2.0  # times the given time, after which nothing more is started
KEPT = 32  # batches that are checked for padding
WORTH_A_LINE = 0.2  # share of the user's own code from which its lines are searched
SLOW = 100e-6  # seconds of a sample below which nothing in it is slow
PER_BATCH = "the dataset creates its own batches: these numbers are per batch, not per sample"
NO_ACCELERATOR = "pinning was not timed: there is no accelerator here"

Progress = Callable[[str], None]


def measure(
    readable: ReadableLoader,
    *,
    subject: Subject | None = None,
    model: nn.Module | None = None,
    seconds: float = 20.0,
    sweep: bool = False,
    progress: Progress | None = None,
) -> MeasuredLoader:
    """Measure for about this long; the model is the one that the loader feeds."""
    return _Measuring(readable, subject, model, seconds, progress).all(sweep=sweep)


class _Measuring:
    """One loader."""

    def __init__(
        self,
        readable: ReadableLoader,
        subject: Subject | None,
        model: nn.Module | None,
        seconds: float,
        progress: Progress | None,
    ) -> None:
        self._readable = readable
        self._subject = subject
        self._model = model
        self._seconds = seconds
        self._say = progress or (lambda _: None)
        self._began = perf_counter()
        self._notes: dict[str, str] = {}
        self._kept: list[Any] = []
        self._timed: TimedSamples | None = None

    def all(self, *, sweep: bool) -> MeasuredLoader:
        readable = self._readable
        share = self._seconds * (1 - SWEEP if sweep else 1)
        with contextlib.ExitStack() as stack:
            stack.enter_context(readable.reading())
            self._began = perf_counter()  # reading() may first have imported large parts of torch
            work = self._work(stack)
            made = MeasuredLoader(
                readable.name,
                readable.file,
                readable.line,
                stages=self._part("stages", lambda: self._stages(share * 0.35)),
                speeds=self._part("speeds", lambda: self._speeds(work, share * 0.5)),
                sizes=self._part("sizes", self._sizes, at_once=True),
                paddings=self._part("padding", self._paddings, at_once=True),
                sweep=self._part("sweep", lambda: self._sweep(work)) if sweep else None,
            )
            made = self._with_moving(made, share * 0.15)
        return replace(made, seconds=perf_counter() - self._began, notes=self._notes)

    def _part(self, name: str, measured: Callable[[], Any], *, at_once: bool = False) -> Any:
        """A part that fails, or for which there is no time, is missing; the others are not affected."""
        if not at_once and perf_counter() - self._began > LATE * self._seconds:
            self._notes[name] = "out of time: samples are slow, or --time-limit is short"
            return None
        self._say(name)
        try:
            return measured()
        except CannotRead as reason:
            self._notes[name] = str(reason)
        except Exception as error:  # noqa: BLE001 - the program's own loader may raise anything
            self._notes[name] = worker_error_line(error)
        return None

    def _work(self, stack: contextlib.ExitStack) -> Work | None:
        try:
            return stack.enter_context(working(self._readable, self._subject, self._model))
        except Exception as error:  # noqa: BLE001 - no model, or one that can't be called by itself
            self._notes["model"] = str(error) or type(error).__name__
            return None

    # -- the parts --

    def _stages(self, seconds: float) -> Stages:
        self._timed = timed = time_stages(self._readable, seconds * 0.8)
        notes = (*_failures(timed.failed, timed.error, "sample"), *self._per_batch_note())
        found = timed.times.result(notes=notes)
        own = sum(s.share for s in found.stages if s.kind in (DATASET, TRANSFORM))
        if own < WORTH_A_LINE or found.median < SLOW:
            return found
        again = _again(self._readable)
        return replace(found, lines=hot_lines(lambda: next(again, None), seconds * 0.2))

    def _speeds(self, work: Work | None, seconds: float) -> Speeds:
        readable, setting = self._readable, LoaderSetting.of(self._readable.loader)
        model = rate_of_work(work, seconds * 0.3) if work is not None else None
        try:
            alone = deliver(readable, setting, seconds * 0.4, keep=KEPT)
        except CannotRead as reason:
            if model is None:
                raise
            return Speeds(model=model, step=work.what if work else "", notes=(str(reason),))
        self._kept = alone.kept
        both = DeliveryRate()
        if work is not None:
            both = deliver(readable, setting, seconds * 0.3, work=work.call)
        return Speeds(
            loader=alone.rate,
            model=model,
            both=both.rate,
            step=work.what if work is not None else "",
            batch=alone.batch,
            wait=both.wait,
            startup=alone.startup,
            workers=setting.workers,
            prefetch=setting.prefetch,
            cores=usable_cores(),
            persistent=bool(getattr(readable.loader, "persistent_workers", False)),
            failed=alone.failed,
            notes=_failures(alone.failed, alone.error, "batch"),
        )

    def _sizes(self) -> Sizes:
        readable = self._readable
        if self._timed is not None:
            return self._timed.sizes.result(readable.workers, self._per_batch_note())
        sizes = FieldSizes()  # no samples are available: measure a batch
        for batch in readable.delivered:
            sizes.add(batch)
        if not readable.delivered:
            raise CannotRead("there are no samples to measure")
        return sizes.result(
            readable.workers, ("measured on whole batches, because single samples are not available",)
        )

    def _per_batch_note(self) -> tuple[str, ...]:
        return (PER_BATCH,) if self._readable.collate is None else ()

    def _paddings(self) -> Any:
        lots = self._timed.lots if self._timed is not None else []
        return paddings(lots, self._kept or self._readable.delivered)

    def _sweep(self, work: Work | None) -> Any:
        # The loader does not alternate with a forward alone: the step has a backward as well.
        call = work.call if work is not None and work.what == STEP else None
        return swept(self._readable, self._seconds * SWEEP, work=call, progress=self._say)

    def _with_moving(self, made: MeasuredLoader, seconds: float) -> MeasuredLoader:
        """The transfer from worker to parent belongs to the sizes, and is a stage if there are workers."""
        timed, readable = self._timed, self._readable
        if timed is None or not timed.samples or made.sizes is None or made.stages is None:
            return made
        collate = readable.parts().collate
        context = getattr(readable.loader, "multiprocessing_context", None)
        moved = self._part("moving", lambda: measure_transfer(timed.samples, collate, seconds, context))
        if moved is None:
            return made
        extra, notes = _worker_stages(readable, timed, moved)
        stages = timed.times.result(extra, (*made.stages.notes, *notes))
        return replace(
            made,
            sizes=replace(made.sizes, moving=moved),
            stages=replace(stages, lines=made.stages.lines),
        )


def _again(readable: ReadableLoader) -> Iterator[Any]:
    """Samples once more, one by one, without those that fail."""
    if readable.kind != MAP:
        yield from readable.samples()
        return
    for indices in readable.indices():
        for index in indices:
            with contextlib.suppress(Exception):
                yield readable.sample(index)


def _worker_stages(
    readable: ReadableLoader, timed: TimedSamples, moved: Any
) -> tuple[tuple[StageTime, ...], tuple[str, ...]]:
    """Pickling to the parent and pinning, if they happen."""
    stages: list[StageTime] = []
    notes: list[str] = []
    if readable.workers and moved.seconds is not None:
        each = moved.seconds / moved.samples
        stages.append(StageTime("moving to the parent", PICKLE, each, each))
    if bool(getattr(readable.loader, "pin_memory", False)):
        batch = next((lot.batch for lot in timed.lots if lot.batch is not None), None)
        spent = measure_pinning(batch)
        if spent is None:
            notes.append(NO_ACCELERATOR)
        else:
            stages.append(StageTime("pin_memory", PIN, spent / moved.samples, spent / moved.samples))
    return tuple(stages), tuple(notes)


def _failures(failed: int, error: str, what: str) -> tuple[str, ...]:
    if not failed:
        return ()
    many = f"1 {what}" if failed == 1 else f"{failed} {'batches' if what == 'batch' else 'samples'}"
    return (f"{many} raised an error and {'was' if failed == 1 else 'were'} skipped: {error}",)


@dataclass(frozen=True)
class Work:
    """What training does with one batch."""

    call: Callable[[], int]  # the batches in turn; returns the number of samples it worked on
    what: str  # STEP or FORWARD


@contextlib.contextmanager
def working(readable: ReadableLoader, subject: Subject | None, model: nn.Module | None) -> Iterator[Work]:
    """A context to train or compute in; all state is restored afterwards. Raises CannotJudge."""
    subject = subject if subject is not None and subject.models else _of_model(model)
    with subject.snapshot() as snapshot:
        yield _step(subject, snapshot) or _forward(subject, readable)


def _of_model(model: nn.Module | None) -> Subject:
    if model is None:
        raise CannotJudge("no model was found", "clew.data(loader, model=model)")
    return Subject({"model": model})


def _step(subject: Subject, snapshot: StepSnapshot) -> Work | None:
    if subject.step is None or len(subject.optimizers) != 1 or not subject.batches:
        return None
    turns = itertools.cycle(subject.batches)  # which may be of different lengths

    def step() -> int:
        batch = next(turns)
        snapshot.train([batch], 1)
        return batch.size

    try:
        step()
    except Exception:  # noqa: BLE001 - the program's own step, run outside its loop
        return None
    return Work(step, STEP)


def _forward(subject: Subject, readable: ReadableLoader) -> Work:
    model = subject.model
    if readable.inputs:
        given = [Split(None, None, tuple(args), kwargs) for args, kwargs in readable.inputs]
        return Work(_calling(model, [(one, samples_in((one.args, one.kwargs))) for one in given]), FORWARD)
    batch = next(iter(readable.delivered), None)
    batch = next(readable.batches(), None) if batch is None else batch
    for has_loss in (True, False):
        with contextlib.suppress(Exception):
            parts = split(model, batch, has_loss=has_loss)
            parts.call(model)
            return Work(_calling(model, [(parts, samples_in(batch))]), FORWARD)
    raise CannotJudge("it is unknown how the model is called with a batch")


def _calling(model: nn.Module, batches: list[tuple[Split, int]]) -> Callable[[], int]:
    turns = itertools.cycle(batches)

    def forward() -> int:
        parts, samples = next(turns)
        parts.call(model)
        return samples

    return forward


def rate_of_work(work: Work, seconds: float) -> Rate | None:
    """Repeatedly for about this long."""
    for _ in range(WARM_UP):
        work.call()
    marks: list[tuple[int, float]] = []
    began = perf_counter()
    while perf_counter() - began < seconds or len(marks) < 3:
        asked = perf_counter()
        samples = work.call()
        marks.append((samples, perf_counter() - asked))
        if perf_counter() - began > 3 * seconds:
            break
    return rate_of(marks)
