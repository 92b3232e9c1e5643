"""Reads the arguments of a Clew call: which go into the model and which into the loss.

Only unambiguous interpretations are used. If there are several, the user is asked for the step
itself, so that Clew never judges a loss that is not theirs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from clew.records.errors import CannotExamine

TARGET_NAMES = ("labels", "label", "targets", "target", "y")
ASK_FOR_STEP = "pass the step itself: clew.examine(model, step=lambda batch: loss, batch_or_loader=…)"


@dataclass(frozen=True)
class Split:
    """One batch, split into arguments; `target` None: the model computes the loss itself."""

    inputs: Any
    target: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None


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


def called(model: nn.Module, parts: Split) -> Any:
    return model(*parts.args, **(parts.kwargs or {}))


Reading = Callable[[Any], tuple[Any, ...]]


def readings(output: Any, loss_fn: Any) -> list[Reading]:
    """What the loss may be given of an output, the simplest first."""
    whole: Reading = lambda out: (out,)  # noqa: E731 - one of four alike
    if isinstance(output, Tensor):
        return [whole]
    if not is_torchs(loss_fn):
        spread: Reading = lambda out: tuple(out)  # noqa: E731
        return [whole, spread] if isinstance(output, (tuple, list)) else [whole]
    if isinstance(getattr(output, "logits", None), Tensor):
        return [lambda out: (out.logits,)]
    if isinstance(output, Mapping) and len(output) == 1:
        return [lambda out: (next(iter(out.values())),)]
    if isinstance(output, (tuple, list)) and output and isinstance(output[0], Tensor):
        return [lambda out: (out[0],)]  # an LSTM's: the state is not compared with anything
    return [whole]


def is_torchs(loss_fn: Any) -> bool:
    """Whether it is one of torch's own losses, which take one tensor and the target."""
    kind = loss_fn if inspect.isfunction(loss_fn) else type(loss_fn)
    return str(getattr(kind, "__module__", "")).startswith("torch.nn")


def own_loss(output: Any) -> Tensor | None:
    """The loss that a model computes itself, as transformers do; several terms are not summed."""
    if isinstance(output, Tensor):
        return output if output.numel() == 1 else None
    found = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    return found if isinstance(found, Tensor) else None
