"""Does the model mix up dimensions? Tries other batch sizes, and the same samples in another order."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from clew.hooks.entry.user_line import user_frame
from clew.labs.experiments.base import Experiment, Result
from clew.labs.experiments.tools.op_tape import SEED, distance
from clew.labs.experiments.tools.replaced_samples import (
    TIME_FIRST,
    ReplacedSamples,
    leak_of,
    meant,
    time_first_module,
)
from clew.labs.snapshot.snapshot import hooked
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock, first_line
from clew.labs.snapshot.users_step.model_calls import (
    few_samples,
    in_mode,
    model_calls,
    sample_dim,
    samples_known,
    sizes_taken,
)
from clew.measure.nested_tensors import tensors_in
from clew.records.facts.experiment_facts import CodePlace
from clew.records.facts.network_experiment_facts import DimensionMixupFact, ShapeFailure, StuckOutput

_SHAPES = (
    "shape",
    "size of tensor",
    "sizes of tensors",
    "size mismatch",
    "must match",
    "expected size",
    "dimension",
)
_STATE = ("hidden", "index", "out of range")  # stored from a batch of another size, or indices into it


@dataclass(frozen=True)
class OtherBatchSizes(Experiment):
    name = "dimension-mixup"
    question = "does the model mix up dimensions?"
    rank = 11

    rounding: float = 1e-4  # of the output's size: other rows of a batch may be summed in another order
    calls: int = 4  # of models in a step; more are alike

    def run(self, subject: Subject, clock: Clock) -> Result:
        batch = few_samples(subject)
        found = DimensionMixupFact(samples=subject.batch().size, tried=batch.size)
        with subject.snapshot(seed=0) as snapshot:
            failed = _Sizes(subject, batch).tried(snapshot, found)
            if failed is not None:
                return Result(failed)
            clock.tick(0.3)
            with in_mode(subject.models.values(), training=False):
                mixed = self._order(snapshot, batch, clock, found)
        if mixed is not None and not samples_known(subject, batch):
            raise CannotJudge(TIME_FIRST, "use a DataLoader, or data with the samples first")
        return Result(mixed or found)

    def _order(
        self, snapshot: StepSnapshot, batch: StepBatch, clock: Clock, found: DimensionMixupFact
    ) -> DimensionMixupFact | None:
        """`found` with what depends on the order of the samples; None if nothing does."""
        judged = False
        for call in model_calls(snapshot, batch)[: self.calls]:
            repeated = ReplacedSamples(snapshot, call, batch.size)
            if not repeated.possible or not repeated.base or repeated.square() or _draws(repeated):
                continue
            judged = True
            leak = leak_of(repeated, clock, self.rounding)
            sequence = time_first_module(leak) if leak is not None and meant(leak) is None else None
            if leak is not None and sequence is not None and leak.place is not None:
                return replace(found, time_first=sequence[0], place=leak.place, effect=leak.effect)
            if leak is None:
                moved = _moved(repeated)
                if moved > self.rounding:
                    return replace(found, position=True, effect=moved, place=_place(repeated))
        if not judged:
            raise CannotJudge("no model has a reproducible output per sample")
        return None


def _draws(repeated: ReplacedSamples) -> bool:
    """Whether the output depends on random numbers, which depend on the position in the batch."""
    return not all(map(torch.equal, repeated.base, repeated.outputs(seed=SEED + 1)))


def _turned(tensor: Tensor, count: int) -> Tensor:
    """The same samples in reverse order."""
    dim = sample_dim(tensor, count)
    return tensor if dim is None else tensor.flip(dim)


def _moved(repeated: ReplacedSamples) -> float:
    """How much outputs change that should only change their positions."""
    count = repeated.count
    turned = repeated.outputs(lambda t: _turned(t, count))
    pairs = zip(repeated.base, turned, strict=False)
    gaps = [distance(a, _turned(b, count)) for a, b in pairs if a.shape == b.shape]
    return max((gap / size for gap, size in gaps if size > 0), default=0.0)


def _place(repeated: ReplacedSamples) -> CodePlace | None:
    """The first op that treats a sample by its position: sample 0 first, and the same sample last."""
    count = repeated.count
    turned = repeated.call.changed(lambda t: _turned(t, count))
    last = repeated.of_row(count - 1)
    return repeated.first_change(repeated.of_row(0), turned.again, keep_other=last, tolerance=1e-5)


class _Sizes:
    """The step with fewer samples than usual."""

    def __init__(self, subject: Subject, batch: StepBatch) -> None:
        self._subject = subject
        self._batch = batch
        self._full = subject.batch()

    def tried(self, snapshot: StepSnapshot, found: DimensionMixupFact) -> DimensionMixupFact | None:
        """`found` with what failed because of the number of samples; None if nothing did."""
        if self._batch.size >= self._full.size or any(d is None for d in self._full.dims):
            return None
        whole, error = self._shapes(snapshot, self._full)
        if error is not None:
            return None
        few, error = self._shapes(snapshot, self._batch)
        stuck = self._stuck(whole, few)
        if stuck is not None:
            return replace(found, stuck=stuck, equal=self._equal())
        return self._failure(error, found) if error is not None else None

    def _shapes(
        self, snapshot: StepSnapshot, batch: StepBatch
    ) -> tuple[list[tuple[str, list[int]]], Exception | None]:
        """The shapes of all outputs up to where the step ended, and what ended it."""
        shapes: list[tuple[str, list[int]]] = []

        def noted(name: str) -> Any:
            return lambda _, __, output: shapes.extend((name, list(t.shape)) for t in tensors_in(output))

        handles = [m.register_forward_hook(noted(n)) for n, m in self._subject.models.items()]
        snapshot.seed(SEED)
        try:
            with hooked(*handles):
                snapshot.loss(batch)
        except Exception as error:  # noqa: BLE001 - the user's code on a batch it was not written for
            return shapes, error
        return shapes, None

    def _stuck(self, whole: list[Any], few: list[Any]) -> StuckOutput | None:
        """An output that had one row per sample, and keeps that number of rows with fewer samples."""
        size = self._full.size
        for (name, before), (_, after) in zip(whole, few, strict=False):
            if before[:1] == [size] and after == before:
                return StuckOutput(name, tuple(after))
        return None

    def _failure(self, error: Exception, found: DimensionMixupFact) -> DimensionMixupFact:
        message = first_line(error)
        lower = message.lower()
        if any(w in lower for w in _STATE) or not any(w in lower for w in _SHAPES):
            raise CannotJudge(f"the step does not run with {self._batch.size} samples: {message[:160]}")
        file, line = user_frame(error.__traceback__)
        failed = ShapeFailure(message[:200], _line_of(error, file, line))
        return replace(found, failed=failed, place=CodePlace(file=file, line=line), equal=self._equal())

    def _equal(self) -> bool:
        """Whether the batch size is also another size."""
        return self._full.size in sizes_taken(self._subject, self._full)


def _line_of(error: Exception, file: str | None, line: int | None) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return next((str(f.line) for f in reversed(frames) if (f.filename, f.lineno) == (file, line)), "")
