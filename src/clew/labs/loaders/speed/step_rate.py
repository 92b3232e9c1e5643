"""The model at work on a batch that it already has: the program's own step on a snapshot, or a forward."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

from torch import nn

from clew.labs.loaders.pipeline import Pipeline
from clew.labs.loaders.speed.loader_rate import rate_of, samples_in
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.call_arguments import Split, called, split
from clew.records.loader_speed import Rate

STEP, FORWARD = "training step", "forward"
WARM_UP = 2  # steps that are not counted: memory is fetched, kernels are chosen


@dataclass(frozen=True)
class Work:
    """What training does with one batch."""

    call: Callable[[], int]  # the batches in turn; gives the samples of the one that was worked on
    what: str  # STEP or FORWARD


@contextlib.contextmanager
def working(pipeline: Pipeline, subject: Subject | None, model: nn.Module | None) -> Iterator[Work]:
    """A place to train or compute in; all is afterwards as it was. Raises CannotJudge."""
    subject = subject if subject is not None and subject.models else _of_model(model)
    with subject.snapshot() as snapshot:
        yield _step(subject, snapshot) or _forward(subject, pipeline)


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
    except Exception:  # noqa: BLE001 - the program's own step, taken out of its place
        return None
    return Work(step, STEP)


def _forward(subject: Subject, pipeline: Pipeline) -> Work:
    model = subject.model
    if pipeline.inputs:
        given = [Split(None, None, tuple(args), kwargs) for args, kwargs in pipeline.inputs]
        return Work(_calling(model, [(one, samples_in((one.args, one.kwargs))) for one in given]), FORWARD)
    batch = next(iter(pipeline.delivered), None)
    batch = next(pipeline.batches(), None) if batch is None else batch
    for has_loss in (True, False):
        with contextlib.suppress(Exception):
            parts = split(model, batch, has_loss=has_loss)
            called(model, parts)
            return Work(_calling(model, [(parts, samples_in(batch))]), FORWARD)
    raise CannotJudge("it is unknown how the model is called with a batch")


def _calling(model: nn.Module, batches: list[tuple[Split, int]]) -> Callable[[], int]:
    turns = itertools.cycle(batches)

    def forward() -> int:
        parts, samples = next(turns)
        called(model, parts)
        return samples

    return forward


def rate_of_work(work: Work, seconds: float) -> Rate | None:
    """Again and again for about so long."""
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
