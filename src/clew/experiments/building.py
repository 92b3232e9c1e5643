"""A subject from what the user hands over: a model, a loss function, and a batch or a loader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader

from clew.experiments.api import CannotJudge
from clew.experiments.batch import INPUT, OTHER, TARGET, Batch
from clew.experiments.subject import Subject

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
    """`step(batch)` where it is given, else `loss_fn(model(input), target)` for (input, target) batches."""
    raw, loader = _batches(data)
    if not raw:
        raise CannotJudge("the data holds no batch")
    if step is None and loss_fn is None:
        raise CannotJudge("neither a loss function nor a step was given")
    run = step if step is not None else _plain_step(model, loss_fn)
    return Subject(
        models={type(model).__name__: model},
        batches=[_named(b, has_target=step is None) for b in raw],
        step=lambda batch: run(batch.values[BATCH]),
        optimizers=[optimizer] if optimizer is not None else [],
        loader=loader,
        dataset=getattr(loader, "dataset", None),
    )


def _plain_step(model: nn.Module, loss_fn: Any) -> Callable[[Any], Tensor]:
    def step(batch: Any) -> Tensor:
        given, target = batch
        output = model(**given) if isinstance(given, Mapping) else model(given)
        loss: Tensor = loss_fn(output, target)
        return loss

    return step


def _batches(data: Any) -> tuple[list[Any], DataLoader[Any] | None]:
    if isinstance(data, DataLoader):
        return list(islice(iter(data), MOST_BATCHES)), data
    if isinstance(data, (Tensor, Mapping)) or _is_pair(data):
        return [data], None
    if isinstance(data, Iterable):
        return list(islice(iter(data), MOST_BATCHES)), None
    raise CannotJudge(f"a batch or a loader is needed, not {type(data).__name__}")


def _is_pair(data: Any) -> bool:
    """(input, target), not a list of batches."""
    pair = isinstance(data, (tuple, list)) and len(data) == 2
    return pair and not all(isinstance(part, Sequence) and len(part) == 2 for part in data)


def _named(raw: Any, *, has_target: bool) -> Batch:
    roles: dict[int, str] = {}
    if has_target:
        given, target = raw
        roles.update({id(t): TARGET for t in tree_leaves(target) if isinstance(t, Tensor)})
        roles.update({id(t): INPUT for t in tree_leaves(given) if isinstance(t, Tensor)})
    else:
        roles.update({id(t): OTHER for t in tree_leaves(raw) if isinstance(t, Tensor)})
    return Batch.of({BATCH: raw}, roles)
