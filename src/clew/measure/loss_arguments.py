"""The arguments of a call of one of torch's loss functions, however they were passed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class LossArguments(NamedTuple):
    """`F.cross_entropy(prediction, target, *more, **options)`; what was not passed is None."""

    prediction: Any
    target: Any
    more: tuple[Any, ...] = ()
    options: Mapping[str, Any] = {}


def loss_arguments(args: Any, kwargs: Any) -> LossArguments:
    """What a loss function was called with: torch names its first two arguments `input` and `target`."""
    given = dict(zip(("input", "target"), args, strict=False)) | (kwargs or {})
    prediction, target = given.pop("input", None), given.pop("target", None)
    return LossArguments(prediction, target, tuple(args[2:]), given)
