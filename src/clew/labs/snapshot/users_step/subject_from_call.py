"""Builds a subject from what the user passes: a model, a loss function, and a batch or a loader.

Which parts of a batch go into the model and which into the loss is read from the call. Only unambiguous
interpretations are used. If there are several, the user is asked for the step itself, so that Clew never
judges a loss that is not theirs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, Dataset

from clew.labs.snapshot.snapshot import Autocast
from clew.labs.snapshot.step_batch import BOTH, INPUT, OTHER, TARGET, StepBatch
from clew.labs.snapshot.step_snapshot import ObservedStep
from clew.labs.snapshot.subject import Subject
from clew.measure.nested_tensors import map_tensors, tensors_in
from clew.measure.rng import keep_rng
from clew.records.errors import CannotExamine

MOST_BATCHES = 16  # taken from a loader
TARGET_NAMES = ("labels", "label", "targets", "target", "y")  # fewer than LABEL_NAMES: not to be guessed
ASK_FOR_STEP = "pass the step itself: clew.examine(model, step=lambda batch: loss, batch_or_loader=…)"
Reading = Callable[[Any], tuple[Any, ...]]
NO_LOSS = f"neither a loss function nor a step was given, and the model returns no loss; {ASK_FOR_STEP}"
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
        output = parts.call(model)
        if loss_fn is None:
            own = own_loss(output)
            if own is None:
                raise CannotExamine(NO_LOSS)
            return own
        if not chosen:
            chosen.append(_reading(output, parts.target, loss_fn))
        loss: Tensor = loss_fn(*chosen[0](output), parts.target)
        return loss

    return step


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


def _tried(subject: Subject, batch: StepBatch) -> ObservedStep:
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


def _by_use(raw: Any, seen: ObservedStep) -> list[str]:
    """The roles of a batch's tensors by where they were used: in a model, or in one of torch's losses."""
    fed = tensors_in([(args, kwargs) for _, args, kwargs in seen.inputs])
    compared = [call.target for call in seen.calls if call.target is not None]
    found = tensors_in(raw)
    inputs = [any(_same(t, other) for other in fed) for t in found]
    targets = [any(_same(t, other) for other in compared) for t in found]
    if not any(targets):  # the user's own loss: it gets what no model got
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


@dataclass(frozen=True)
class Split:
    """One batch, split into arguments; `target` None: the model computes the loss itself."""

    inputs: Any
    target: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None

    def call(self, model: nn.Module) -> Any:
        return model(*self.args, **(self.kwargs or {}))


def split(model: nn.Module, batch: Any, *, has_loss: bool) -> Split:
    """How the model is called with this batch, and what the loss compares with."""
    if isinstance(batch, Mapping):
        return _split_mapping(model, batch, has_loss=has_loss)
    parts = list(batch) if isinstance(batch, (tuple, list)) else [batch]
    if not has_loss:
        return Split(parts, None, tuple(parts))
    if len(parts) == 1:  # an autoencoder's: the target is the input
        return Split(parts[0], parts[0], (parts[0],))
    given = parts[0] if len(parts) == 2 else tuple(parts[:-1])
    if len(parts) > 2 and not _takes(model, len(parts) - 1):
        raise CannotExamine(f"which of the {len(parts)} parts of a batch is the target? {ASK_FOR_STEP}")
    if isinstance(given, Mapping):
        args, kwargs = _for_mapping(model, given)
        return Split(given, parts[-1], args, kwargs)
    spread = isinstance(given, (tuple, list)) and _takes(model, len(given)) and not _takes(model, 1)
    return Split(given, parts[-1], tuple(given) if spread else (given,))


def _split_mapping(model: nn.Module, batch: Mapping[str, Any], *, has_loss: bool) -> Split:
    if not has_loss:
        named = {k: v for k, v in batch.items() if k in TARGET_NAMES}
        rest = {k: v for k, v in batch.items() if k not in TARGET_NAMES}
        args, kwargs = _for_mapping(model, batch)
        return Split(rest, named or None, args, kwargs)
    targets = [name for name in TARGET_NAMES if name in batch]
    if len(targets) != 1:
        known = ", ".join(map(str, batch))
        raise CannotExamine(f"which of {known} is the target of the loss? {ASK_FOR_STEP}")
    rest = {k: v for k, v in batch.items() if k != targets[0]}
    args, kwargs = _for_mapping(model, rest)
    return Split(rest, batch[targets[0]], args, kwargs)


def _for_mapping(model: nn.Module, given: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """By keyword where the names match; else the only tensor, or the whole mapping."""
    positional, needed, anything = _parameters(model)
    if anything or (set(needed) <= set(given) and any(name in positional for name in given)):
        return (), {k: v for k, v in given.items() if anything or k in positional}
    if len(needed) <= 1:
        only = list(given.values())
        return ((only[0],) if len(only) == 1 else (dict(given),)), {}
    wanted = ", ".join(needed)
    raise CannotExamine(
        f"the model takes ({wanted}), the batch has {', '.join(map(str, given))}; {ASK_FOR_STEP}"
    )


def _parameters(model: nn.Module) -> tuple[list[str], list[str], bool]:
    """Names that forward accepts, those without a default, and whether it accepts any name."""
    try:
        found = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        return [], [], True
    named = [p for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    needed = [p.name for p in named if p.default is p.empty]
    return [p.name for p in named], needed, any(p.kind is p.VAR_KEYWORD for p in found)


def _takes(model: nn.Module, count: int) -> bool:
    """Whether forward accepts this many positional arguments."""
    try:
        inspect.signature(model.forward).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True


def readings(output: Any, loss_fn: Any) -> list[Reading]:
    """What the loss may be given of an output, the simplest first."""
    whole: Reading = lambda out: (out,)  # noqa: E731 - one of four alike
    if isinstance(output, Tensor):
        return [whole]
    if not _is_torch_loss(loss_fn):
        spread: Reading = lambda out: tuple(out)  # noqa: E731
        return [whole, spread] if isinstance(output, (tuple, list)) else [whole]
    if isinstance(getattr(output, "logits", None), Tensor):
        return [lambda out: (out.logits,)]
    if isinstance(output, Mapping) and len(output) == 1:
        return [lambda out: (next(iter(out.values())),)]
    if isinstance(output, (tuple, list)) and output and isinstance(output[0], Tensor):
        return [lambda out: (out[0],)]  # an LSTM's: the state is not compared with anything
    return [whole]


def _is_torch_loss(loss_fn: Any) -> bool:
    """Whether it is one of torch's own losses, which take one tensor and the target."""
    kind = loss_fn if inspect.isfunction(loss_fn) else type(loss_fn)
    return str(getattr(kind, "__module__", "")).startswith("torch.nn")


def own_loss(output: Any) -> Tensor | None:
    """The loss that a model computes itself, as transformers do; several terms are not summed."""
    if isinstance(output, Tensor):
        return output if output.numel() == 1 else None
    found = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    return found if isinstance(found, Tensor) else None
