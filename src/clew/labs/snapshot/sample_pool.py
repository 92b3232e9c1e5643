"""Draws more samples from the dataset than training has seen, in the form of the step's batches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from clew.labs.snapshot.dataset_copy import owned, reading, source
from clew.labs.snapshot.step_batch import StepBatch, joined
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock

MOST = 2000  # samples drawn
SECONDS = 8.0  # spent on drawing them
FOUND = 0.9  # share of the captured samples that must be among those drawn
ALIKE = 0.25  # difference of two means, in standard deviations, up to which data counts as the same


@dataclass(frozen=True)
class Pool:
    """Samples to experiment with."""

    batch: StepBatch  # all of them
    whole: bool  # they are the whole dataset
    drawn: bool  # from the dataset; else they are the captured batches


def pool(subject: Subject, clock: Clock) -> Pool:
    """Up to 2,000 samples of the dataset, or the captured batches joined; made once for a subject."""
    if "pool" not in subject.cache:
        try:
            subject.cache["pool"] = _drawn(subject, clock)
        except CannotJudge:
            subject.cache["pool"] = captured(subject)
    made: Pool = subject.cache["pool"]
    return made


def captured(subject: Subject) -> Pool:
    subject.batch()
    try:
        return Pool(joined(subject.batches), whole=False, drawn=False)
    except RuntimeError as error:
        raise CannotJudge("the batches have different shapes and can't be joined") from error


def drawn_alone(subject: Subject, clock: Clock, most: int) -> StepBatch:
    """Samples of the dataset, each collated alone: nothing of another sample can get into it."""
    return _drawn(subject, clock, most, size=1).batch


def _drawn(subject: Subject, clock: Clock, most: int = MOST, size: int | None = None) -> Pool:
    """Samples in random order; `size` are collated together, by default as many as the loader does."""
    origin, template = source(subject), captured(subject).batch
    size = size or origin.batch_size
    order = random_order(origin.length).tolist()
    raws, taken = [], []
    until = time.monotonic() + min(SECONDS, max(clock.left, 0.0) / 3)
    with reading():
        for start in range(0, min(most, origin.length), size):
            clock.tick()
            some = order[start : start + size]
            raws.append(owned(origin.batch(some, seed=start)))
            taken += some
            if time.monotonic() > until:
                break
    whole = len(taken) == origin.length
    leaves, shape = joined_raw(raws, len(taken))
    form = form_of(template, leaves, shape, whole=whole)
    return Pool(form.filled(leaves, taken), whole, drawn=True)


def joined_raw(raws: Sequence[Any], size: int) -> tuple[list[Any], Any]:
    columns = [tree_flatten(raw) for raw in raws]
    shape = columns[0][1]
    if any(other != shape for _, other in columns):
        raise CannotJudge("the loader's batches differ in structure")
    leaves = [_cat([column[n] for column, _ in columns]) for n in range(len(columns[0][0]))]
    if any(isinstance(leaf, Tensor) and len(leaf) != size for leaf in leaves):
        raise CannotJudge("the loader's tensors have no entry per sample")
    return leaves, shape


def _cat(parts: Sequence[Any]) -> Any:
    if not isinstance(parts[0], Tensor):
        return parts[0]
    if parts[0].dim() == 0:
        raise CannotJudge("the loader's tensors have no entry per sample")
    try:
        return torch.cat(list(parts))
    except RuntimeError as error:
        raise CannotJudge("the loader's batches have different shapes") from error


@dataclass(frozen=True)
class Form:
    """How the values of a step are built from the tensors that the loader delivers."""

    template: StepBatch
    shape: Any  # of the loader's batches, where the step starts from these themselves
    sources: tuple[int | None, ...]  # else for each tensor of the step: the loader's tensor it is built from

    def filled(self, leaves: Sequence[Any], taken: Sequence[int]) -> StepBatch:
        """The drawn samples as values that the user's step can start from."""
        if self.shape is not None:
            (name,) = self.template.values
            dims = tuple(None if d is None else 0 for d in self.template.dims)
            values = {name: tree_unflatten(list(leaves), self.shape)}
            return replace(self.template, values=values, dims=dims, size=len(taken), indices=tuple(taken))
        raw = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        own = self.template.tensors()
        rows = iter(t if n is None else _as(t, raw[n]) for t, n in zip(own, self.sources, strict=True))
        made = self.template.map_tensors(lambda *_: _known(next(rows)))
        return replace(made, size=len(taken), indices=tuple(taken))


def form_of(template: StepBatch, leaves: Sequence[Any], shape: Any, *, whole: bool) -> Form:
    """Matched by structure and by values; raises CannotJudge if the match is ambiguous."""
    if _same_form(template, leaves, shape):
        return Form(template, shape, ())
    raw = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    pairs = zip(template.tensors(), template.dims, strict=True)
    return Form(template, None, tuple(_match(t, dim, raw, whole=whole) for t, dim in pairs))


def _same_form(template: StepBatch, leaves: Sequence[Any], shape: Any) -> bool:
    """Where the step starts from the loader's batch itself."""
    if len(template.values) != 1:
        return False
    own, own_shape = tree_flatten(next(iter(template.values.values())))
    return own_shape == shape and all(_fits(a, b) for a, b in zip(own, leaves, strict=True))


def _fits(own: Any, drawn: Any) -> bool:
    if not isinstance(own, Tensor) or not isinstance(drawn, Tensor):
        return not isinstance(own, Tensor) and not isinstance(drawn, Tensor)
    return own.dtype == drawn.dtype and own.shape[1:] == drawn.shape[1:]


def _match(own: Tensor, dim: int | None, raw: Sequence[Tensor], *, whole: bool) -> int | None:
    """The loader's tensor that a value of the step was built from; None if the value is not per sample."""
    if dim is None:
        return None
    fitting = {n: made for n, t in enumerate(raw) if (made := _as(own, t)) is not None}
    keys = set(rows_as_bytes(own))
    found = {n: len(keys & set(rows_as_bytes(made))) / max(len(keys), 1) for n, made in fitting.items()}
    sure = [n for n, share in found.items() if whole and share >= FOUND]
    chosen = sure or [n for n, made in fitting.items() if _alike(own, made)]
    if len(chosen) != 1 and not (sure and all(torch.equal(raw[sure[0]], raw[n]) for n in sure)):
        raise CannotJudge("the loader's tensors can't be matched to those of the step")
    return chosen[0]


def _known(made: Tensor | None) -> Tensor:
    if made is None:
        raise CannotJudge("the loader's batches have different shapes")
    return made


def _as(own: Tensor, drawn: Tensor) -> Tensor | None:
    if drawn.shape[1:].numel() != own.shape[1:].numel() or drawn.is_complex() != own.is_complex():
        return None
    return drawn.to(own.device, own.dtype).reshape(len(drawn), *own.shape[1:])


def rows_as_bytes(tensor: Tensor) -> list[bytes]:
    """Every sample as bytes, to recognise it again."""
    array = tensor.detach().cpu().reshape(len(tensor), -1)
    array = array.float() if array.dtype in (torch.bfloat16, torch.float16) else array
    return [row.tobytes() for row in array.contiguous().numpy()]


def _alike(own: Tensor, drawn: Tensor) -> bool:
    a, b = own.detach().double(), drawn.detach().double()
    if a.numel() < 2 or not (torch.isfinite(a).all() and torch.isfinite(b).all()):
        return False
    spread = max(float(b.std()), 1e-12)
    near = abs(float(a.mean() - b.mean())) <= ALIKE * spread + 1e-9
    return near and 0.75 <= (float(a.std()) + 1e-12) / spread <= 1.33


def random_order(count: int, seed: int = 0) -> Tensor:
    """The numbers below `count`, shuffled: for one seed always in the same order."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))


def cut(batch: StepBatch, size: int, seed: int = 0) -> list[StepBatch]:
    """Batches of this size from a large one, in random order, without a smaller last batch."""
    order = random_order(batch.size, seed)
    size = min(size, batch.size)
    return [batch.rows(order[start : start + size]) for start in range(0, batch.size - size + 1, size)]
