"""The model calls of the user's step, to be repeated with other inputs.

The step runs on a few samples. Their number differs from every other size in model and data, so that
the batch dimension of every tensor can be identified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from clew.labs.snapshot.step_batch import TARGET, StepBatch, joined
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.measure.nested_tensors import map_tensors, tensors_in

COUNTS = (7, 11, 13, 5, 17, 19, 23, 3, 29, 31, 4, 6, 8, 9, 10)  # samples to try with; primes first
LEAST = 3  # samples: one under test, two others


@dataclass(frozen=True)
class ModelCall:
    """One call of an outermost model."""

    name: str
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any

    def tensors(self) -> list[Tensor]:
        return tensors_in((self.args, self.kwargs))

    def changed(self, change: Callable[[Tensor], Tensor]) -> ModelCall:
        """The same call with every input tensor changed."""
        return replace(self, args=map_tensors(self.args, change), kwargs=map_tensors(self.kwargs, change))

    def again(self) -> Any:
        return self.module(*self.args, **self.kwargs)


def few_samples(subject: Subject) -> StepBatch:
    """A few samples of the first batch (or batches); their number is no other size in model and data."""
    batch = _samples_along(subject, subject.batch())
    if batch.size < LEAST and len(subject.batches) > 1:
        batch = _together(subject.batches) or batch
    if batch.size < LEAST:
        raise CannotJudge(f"needs a batch of {LEAST} samples, has {batch.size}")
    taken = sizes_taken(subject, batch)
    fitting = [n for n in COUNTS if n <= batch.size]
    count = next((n for n in fitting if n not in taken), fitting[0])
    return batch.first(count)


def _samples_along(subject: Subject, batch: StepBatch) -> StepBatch:
    """Data may be time first: then the loader's batch size is the size of another dimension."""
    count = getattr(subject.loader, "batch_size", None)
    if count in (None, batch.size):
        return batch
    dims = [sample_dim(t, count) for t in batch.tensors()]
    if not any(d == 1 for d, t in zip(dims, batch.tensors(), strict=True) if t.dim() > 1):
        return batch
    return replace(batch, dims=tuple(dims), size=count, indices=None)


def _together(batches: list[StepBatch]) -> StepBatch | None:
    try:
        return joined(batches[:4])
    except RuntimeError:  # padded to other lengths
        return None


def sizes_taken(subject: Subject, batch: StepBatch) -> set[int]:
    """Sizes of parameters and of the data's other dimensions."""
    taken = {n for model in subject.models.values() for p in model.parameters() for n in p.shape}
    for tensor, _, dim in batch.entries():
        taken |= {n for d, n in enumerate(tensor.shape) if d != dim}
    return taken


def model_calls(snapshot: StepSnapshot, batch: StepBatch) -> list[ModelCall]:
    """The calls that the step makes on this batch; without a step, the only model on the inputs."""
    subject = snapshot.subject
    if subject.step is None:
        return [_plain_call(subject, batch)]
    seen = snapshot.observe(batch)
    return [
        ModelCall(name, subject.models[name], _plain(args), _plain(kwargs), output)
        for (name, args, kwargs), (_, output) in zip(seen.inputs, seen.outputs, strict=True)
    ]


def _plain_call(subject: Subject, batch: StepBatch) -> ModelCall:
    given = tuple(batch.inputs)
    if not given:
        subject.need_step()
    model, name = subject.model, next(iter(subject.models))
    try:
        return ModelCall(name, model, given, {}, model(*given))
    except Exception:  # the inputs may be passed in other ways
        subject.need_step()
        raise


def _plain(value: Any) -> Any:
    """Detached leaves: what computed them is another model's business."""
    return map_tensors(value, lambda t: t.detach())


@contextmanager
def in_mode(models: Iterable[nn.Module], *, training: bool) -> Iterator[None]:
    """Evaluation mode (no dropout, running statistics), or training mode; restored afterwards."""
    with _modes_restored(models) as modules:
        for module in modules:
            module.training = training
        yield


@contextmanager
def as_in_training(model: nn.Module) -> Iterator[None]:
    """A model in evaluation mode as its own `train()` leaves it, which may keep layers in evaluation mode."""
    with _modes_restored([model]) as modules:
        if not any(module.training for module in modules):
            model.train()
        yield


@contextmanager
def _modes_restored(models: Iterable[nn.Module]) -> Iterator[list[nn.Module]]:
    modules = [m for top in models for m in top.modules()]
    modes = [m.training for m in modules]
    try:
        yield modules
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode


def sample_dim(tensor: Tensor, count: int) -> int | None:
    """The one dimension of that size."""
    dims = [d for d, size in enumerate(tensor.shape) if size == count]
    return dims[0] if len(dims) == 1 else None


def samples_known(subject: Subject, batch: StepBatch) -> bool:
    """Whether the first dimension is certainly the batch dimension: data may also be time first."""
    count = getattr(subject.loader, "batch_size", None)
    if count is not None and all(sample_dim(t, count) is not None for t in subject.batch().inputs):
        return True
    inputs, targets = batch.inputs or batch.tensors(), batch.tensors(TARGET)
    if any(t.dim() in (4, 5) or (t.dim() == 2 and t.is_floating_point()) for t in inputs):
        return True
    deepest = max((t.dim() for t in inputs), default=0)
    cut = [t for t in targets if t.dim() and t.shape[0] == batch.size]
    return any(t.dim() < deepest for t in cut)
