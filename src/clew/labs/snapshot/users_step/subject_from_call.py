"""Builds a subject from what the user passes: a model, a loss function, and a batch or a loader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, Dataset

from clew.labs.snapshot.held_step import Autocast
from clew.labs.snapshot.step_batch import BOTH, INPUT, OTHER, TARGET, StepBatch
from clew.labs.snapshot.step_snapshot import Seen
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.call_arguments import (
    ASK_FOR_STEP,
    Reading,
    called,
    own_loss,
    readings,
    split,
)
from clew.measure.nested_tensors import map_tensors, tensors_in
from clew.measure.rng import keep_rng
from clew.records.errors import CannotExamine

MOST_BATCHES = 16  # taken from a loader
BATCH = "batch"  # the name under which a batch is kept


def subject_of(
    model: nn.Module,
    loss_fn: Callable[..., Tensor] | None,
    data: Any,
    optimizer: Optimizer | None = None,
    *,
    step: Callable[[Any], Tensor] | None = None,
) -> Subject:
    """Uses `step(batch)` if given, else the loss function, or the model's own loss; CannotExamine."""
    if not isinstance(model, nn.Module):
        raise CannotExamine(f"expected a model (nn.Module), not {type(model).__name__}")
    raw, loader = _batches(data)
    if not raw or not tensors_in(raw[0]):
        raise CannotExamine("the data contains no batch of tensors")
    device = _device(model)
    raw = [moved(batch, device) for batch in raw]
    subject = Subject(
        models={type(model).__name__: model},
        optimizers=[optimizer] if optimizer is not None else [],
        autocast=_autocast(device),
        loader=loader,
        dataset=getattr(loader, "dataset", None),
    )
    if optimizer is None:
        subject.reasons["optimizer"] = "no optimizer was given"
    run = step if step is not None else _made_step(model, loss_fn)
    subject.step = lambda batch: run(batch.values[BATCH])
    seen = _tried(subject, StepBatch.of({BATCH: raw[0]}, {}))
    if step is None:
        subject.batches = [_by_form(model, b, has_loss=loss_fn is not None) for b in raw]
    else:
        subject.batches = [_alike(b, _by_use(raw[0], seen)) for b in raw]
    return subject


def _made_step(model: nn.Module, loss_fn: Any) -> Callable[[Any], Tensor]:
    chosen: list[Reading] = []

    def step(batch: Any) -> Tensor:
        parts = split(model, batch, has_loss=loss_fn is not None)
        output = called(model, parts)
        if loss_fn is None:
            return _needed(own_loss(output))
        if not chosen:
            chosen.append(_reading(output, parts.target, loss_fn))
        loss: Tensor = loss_fn(*chosen[0](output), parts.target)
        return loss

    return step


def _needed(loss: Tensor | None) -> Tensor:
    if loss is None:
        raise CannotExamine(
            f"neither a loss function nor a step was given, and the model returns no loss; {ASK_FOR_STEP}"
        )
    return loss


def _reading(output: Any, target: Any, loss_fn: Any) -> Reading:
    """The first interpretation that the loss function accepts."""
    first: Exception | None = None
    for reading in readings(output, loss_fn):
        try:
            loss_fn(*reading(output), target)
        except Exception as error:  # noqa: BLE001 - the user's own code: the next reading may be the one meant
            first = first or error
        else:
            return reading
    assert first is not None
    raise first


def _tried(subject: Subject, batch: StepBatch) -> Seen:
    """Try the first batch once: report what can't be used immediately, in one line."""
    with subject.snapshot() as snapshot:
        try:
            seen = snapshot.observe(batch)
        except CannotExamine:
            raise
        except Exception as error:
            text = " ".join(str(error).split()) or "no message"
            what = f"the loss of the first batch could not be computed: {type(error).__name__}: {text[:300]}"
            raise CannotExamine(what) from error
    _must_be_a_loss(seen.loss)
    return seen


def _must_be_a_loss(loss: Any) -> None:
    if not isinstance(loss, Tensor):
        raise CannotExamine(f"the loss is a {type(loss).__name__}, not a tensor: remove .item() or float()")
    if loss.numel() != 1:
        shape = tuple(loss.shape)
        raise CannotExamine(
            f"the loss has shape {shape}, not a scalar: take its mean, or use reduction='mean'"
        )
    if not loss.requires_grad:
        raise CannotExamine(
            "the loss does not depend on any parameter that can be trained: is the graph cut by detach(), "
            ".data, no_grad or numpy, or is every parameter frozen?"
        )


def _batches(data: Any) -> tuple[list[Any], DataLoader[Any] | None]:
    if data is None:
        raise CannotExamine("expected a batch or a loader: clew.examine(model, loss_fn, batch)")
    if isinstance(data, DataLoader):
        return _drawn(data), data
    if isinstance(data, Dataset):
        raise CannotExamine(
            "expected a batch or a loader, not a dataset: use DataLoader(dataset, batch_size=32)"
        )
    if isinstance(data, (Tensor, Mapping)) or _is_batch(data):
        return [data], None
    if isinstance(data, Iterable) and not isinstance(data, str):
        return _drawn(data), None
    raise CannotExamine(f"expected a batch or a loader, not {type(data).__name__}")


def _drawn(data: Iterable[Any]) -> list[Any]:
    """The first batches; a shuffling loader draws random numbers, so the generators are restored."""
    with keep_rng():
        try:
            return list(islice(iter(data), MOST_BATCHES))
        except Exception as error:
            raise CannotExamine(f"the loader failed: {type(error).__name__}: {error}") from error


def _is_batch(data: Any) -> bool:
    """(input, target) or more, not a list of batches."""
    if not isinstance(data, (tuple, list)) or not data:
        return False
    several = all(isinstance(part, (tuple, list)) for part in data)
    return not several and not all(isinstance(part, Mapping) for part in data)


def _device(model: nn.Module) -> torch.device | None:
    """The model's device, if it has only one."""
    found = {parameter.device for parameter in model.parameters()}
    return found.pop() if len(found) == 1 else None


def moved(batch: Any, device: torch.device | None) -> Any:
    """The batch on the model's device, with mappings as plain dictionaries."""
    if isinstance(batch, Mapping) and type(batch) is not dict:
        batch = dict(batch)
    if device is None:
        return batch
    return map_tensors(batch, lambda tensor: tensor.to(device))


def _autocast(device: torch.device | None) -> Autocast:
    """The autocast settings around the call of examine."""
    kind = device.type if device is not None else "cpu"
    enabled = torch.is_autocast_enabled(kind) if kind != "meta" else False
    return Autocast(kind, enabled, torch.get_autocast_dtype(kind) if enabled else None)


def _by_form(model: nn.Module, raw: Any, *, has_loss: bool) -> StepBatch:
    parts = split(model, raw, has_loss=has_loss)
    fed, compared = {id(t) for t in tensors_in(parts.inputs)}, {id(t) for t in tensors_in(parts.target)}
    return StepBatch.of(
        {BATCH: raw}, {id(t): _role(id(t) in fed, id(t) in compared) for t in tensors_in(raw)}
    )


def _by_use(raw: Any, seen: Seen) -> list[str]:
    """The roles of a batch's tensors by where they were used: in a model, or in one of torch's losses."""
    fed = tensors_in([(args, kwargs) for _, args, kwargs in seen.inputs])
    compared = [call.target for call in seen.calls if call.target is not None]
    found = tensors_in(raw)
    inputs = [any(_same(t, other) for other in fed) for t in found]
    targets = [any(_same(t, other) for other in compared) for t in found]
    if not any(targets):  # a loss of the user's own: it gets what no model got
        targets = [not used and t.dim() > 0 for t, used in zip(found, inputs, strict=True)]
    return [_role(a, b) for a, b in zip(inputs, targets, strict=True)]


def _alike(raw: Any, roles: Sequence[str]) -> StepBatch:
    found = tensors_in(raw)
    kinds = roles if len(found) == len(roles) else [OTHER] * len(found)
    return StepBatch.of({BATCH: raw}, {id(t): role for t, role in zip(found, kinds, strict=True)})


def _same(mine: Tensor, other: Tensor) -> bool:
    """The same values: as a view, or as a copy of another type or shape."""
    if mine.is_sparse or other.is_sparse:
        return mine is other
    if mine.untyped_storage().data_ptr() == other.untyped_storage().data_ptr():
        return True
    return mine.numel() == other.numel() and bool(torch.equal(mine.reshape(-1).to(other), other.reshape(-1)))


def _role(fed: bool, compared: bool) -> str:
    if fed and compared:
        return BOTH
    return INPUT if fed else TARGET if compared else OTHER
