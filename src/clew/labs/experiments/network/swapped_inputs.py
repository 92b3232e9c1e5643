"""Does the model use its input? Trains it briefly, then swaps in the inputs of other samples."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, pstdev
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.short_training import on_finite_steps
from clew.labs.snapshot.sample_pool import captured, cut
from clew.labs.snapshot.snapshot import hooked
from clew.labs.snapshot.step_batch import INPUT, TARGET, StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock, OutOfTime
from clew.measure.nested_tensors import map_tensors, tensors_in
from clew.records.facts.experiment_facts import SourceLine
from clew.records.facts.network_experiment_facts import InputIgnoredFact, SwappedLosses, SwappedTraining

Change = Callable[[torch.Generator, Tensor], Tensor]


@dataclass(frozen=True)
class SwappedInputs(Experiment):
    name = "input-ignored"
    question = "does the model use its input?"
    rank = 7

    least: int = 8  # samples; fewer can't be swapped
    rows: int = 48  # samples of each batch
    batches: int = 2  # to memorise: the fewer, the sooner it shows
    steps: int = 80  # of training, for each of the two optimizers
    between: int = 10  # steps from one measurement to the next
    draws: int = 3  # of other inputs, for the spread
    clear: float = 0.05  # of the loss: a gain from the right inputs that counts as an answer
    rate: float = 3e-3  # of Adam, tried where the program's own optimizer shows nothing

    def run(self, subject: Subject, clock: Clock) -> Result:
        _ = subject.optimizer  # raises with the reason if there is not exactly one
        batches = self._batches(subject)
        tries: list[SwappedTraining] = []
        for own in (True, False):
            try:
                tries.append(self._try(subject, batches, clock, own=own))
            except OutOfTime:
                if not tries:
                    raise
            if tries[-1].used:
                break
        lines = [Plot.of_losses(f"loss while training briefly ({t.optimizer})", t.losses) for t in tries]
        samples, line = sum(b.size for b in batches), SourceLine(*subject.line)
        return Result(InputIgnoredFact(samples=samples, line=line, tries=tuple(tries)), lines)

    def _batches(self, subject: Subject) -> list[StepBatch]:
        """Mixed across the captured batches: within one of them all labels may be equal."""
        subject.need_step()
        try:
            together = captured(subject).batch
            few = cut(together, min(self.rows, max(subject.batch().size, self.least)))[: self.batches]
        except CannotJudge:
            few = subject.batches[: self.batches]
        size = min(b.size for b in few)
        if size < self.least:
            raise CannotJudge(
                f"only {size} samples are available; at least {self.least} are needed to swap their inputs"
            )
        targets = [t for b in few for t in b.tensors(TARGET) if t.dim() and len(t) == b.size]
        if targets and all(bool((t == t[:1]).all()) for t in targets):
            raise CannotJudge("all samples so far have the same target")
        return few

    def _try(self, subject: Subject, batches: list[StepBatch], clock: Clock, *, own: bool) -> SwappedTraining:
        with subject.snapshot(seed=0) as snapshot:
            optimizer = snapshot.optimizer if own else torch.optim.Adam(subject.parameters(), lr=self.rate)
            dependence = [_dependence(snapshot, subject, batches[0])]
            first = self._losses(snapshot, subject, batches)
            last, used = SwappedLosses(), False
            losses: list[float] = []
            on_step = on_finite_steps(clock)
            while len(losses) < self.steps and not used:
                losses += snapshot.train(batches, self.between, optimizer=optimizer, on_step=on_step)
                last = self._measured(snapshot, subject, batches)
                used = self._used(last, first)
            dependence.append(_dependence(snapshot, subject, batches[0]))
        return SwappedTraining(
            optimizer=type(subject.optimizer).__name__ if own else "Adam",
            own=own,
            steps=len(losses),
            losses=tuple(losses),
            first=first,
            last=last,
            used=used,
            given=_largest(d.given for d in dependence),
            data=_largest(d.data for d in dependence),
            alike=all(d.alike for d in dependence),
        )

    def _measured(self, snapshot: StepSnapshot, subject: Subject, batches: list[StepBatch]) -> SwappedLosses:
        """The loss with the right inputs and with others, under the same random numbers."""
        changes = (None, other_samples, noise)
        return SwappedLosses(*(self._losses(snapshot, subject, batches, change) for change in changes))

    def _losses(
        self,
        snapshot: StepSnapshot,
        subject: Subject,
        batches: list[StepBatch],
        change: Change | None = None,
    ) -> tuple[float, ...]:
        """The loss of each draw."""
        return tuple(_loss(snapshot, subject, batches, seed, change) for seed in range(self.draws))

    def _used(self, last: SwappedLosses, first: tuple[float, ...]) -> bool:
        """Clearly used: the gain is far above the spread of the draws, and a sizeable part of the loss."""
        real, worse = last.real, max((last.others, last.noise), key=fmean)
        spread = math.hypot(pstdev(real), pstdev(worse))
        scale = max(abs(fmean(real)), abs(fmean(first)))
        return fmean(worse) - fmean(real) > max(4 * spread, self.clear * scale)


def _loss(
    snapshot: StepSnapshot,
    subject: Subject,
    batches: Sequence[StepBatch],
    seed: int,
    change: Change | None = None,
) -> float:
    """The mean over the batches, with the models' inputs changed if requested."""
    snapshot.seed(seed)
    generator = torch.Generator().manual_seed(seed)
    losses = []
    for batch in batches:
        with contextlib.ExitStack() as stack:
            if change is not None:
                stack.enter_context(inputs_replaced(subject, batch.size, partial(change, generator)))
            losses.append(float(snapshot.loss(batch).detach()))
    return fmean(losses)


class _Dependence(NamedTuple):
    """How much outputs change with what the models are given, and with the batch (None: not known)."""

    given: float | None
    data: float | None
    alike: bool  # the models get the same input for every batch


def _dependence(snapshot: StepSnapshot, subject: Subject, batch: StepBatch) -> _Dependence:
    """How much the models' outputs change with their inputs, and with the data of the batch."""
    plain = _outputs(snapshot, batch)
    generator = torch.Generator().manual_seed(0)
    with inputs_replaced(subject, batch.size, partial(drawn_samples, generator)) as note:
        given = _outputs(snapshot, batch)
    pure = any(role == INPUT and dim is not None for _, role, dim in batch.entries())

    def exchanged(tensor: Tensor, role: str, dim: int | None) -> Tensor:
        if role != INPUT or dim is None:
            return tensor
        return drawn_samples(generator, tensor.movedim(dim, 0)).movedim(0, dim)

    moved = batch.map_tensors(exchanged)
    return _Dependence(
        _change(plain, given) if note.changed else None,
        _change(plain, _outputs(snapshot, moved)) if pure else None,
        note.tensors > 0 and not note.changed,
    )


def _outputs(snapshot: StepSnapshot, batch: StepBatch) -> list[Tensor]:
    snapshot.seed(0)
    seen = snapshot.observe(batch)
    outputs = [t for t in tensors_in([output for _, output in seen.outputs]) if t.is_floating_point()]
    return [t.detach().float() for t in (*outputs, seen.loss)]


def _change(before: list[Tensor], after: list[Tensor]) -> float | None:
    """The largest difference, as a share of the largest number."""
    if [t.shape for t in before] != [t.shape for t in after]:
        return 1.0
    shares = [_share(a, b) for a, b in zip(before, after, strict=True) if a.numel()]
    return max(shares, default=None)


def _share(a: Tensor, b: Tensor) -> float:
    share = float((a - b).abs().max()) / max(float(a.abs().max()), 1e-30)
    return share if math.isfinite(share) else 1.0


def _largest(values: Any) -> float | None:
    return max((v for v in values if v is not None), default=None)


@dataclass
class InputChanges:
    """What happened to the inputs during one run of the step."""

    tensors: int = 0  # by sample, among what the models were given
    changed: int = 0  # of these, those that changed


@contextlib.contextmanager
def inputs_replaced(
    subject: Subject, size: int, change: Callable[[Tensor], Tensor]
) -> Iterator[InputChanges]:
    """Every outermost model gets changed tensors; what another model has computed is left alone."""
    note = InputChanges()

    def replace(leaf: Tensor) -> Tensor:
        dim = None if leaf.requires_grad else _by_sample(leaf, size)
        if dim is None:
            return leaf
        made = change(leaf.movedim(dim, 0)).movedim(0, dim)
        note.tensors += 1
        note.changed += not torch.equal(made, leaf)
        return made

    def before(_: nn.Module, args: Any, kwargs: Any) -> Any:
        return map_tensors(args, replace), map_tensors(kwargs, replace)

    handles = [m.register_forward_pre_hook(before, with_kwargs=True) for m in subject.models.values()]
    with hooked(*handles):
        yield note


def _by_sample(tensor: Tensor, size: int) -> int | None:
    """The dimension of the samples; sequences may have their time before it."""
    return next((d for d in range(min(tensor.dim(), 2)) if tensor.shape[d] == size), None)


def other_samples(generator: torch.Generator, tensor: Tensor) -> Tensor:
    """The inputs of other samples of the batch: each tensor in its own order."""
    return tensor[torch.randperm(len(tensor), generator=generator).to(tensor.device)]


def drawn_samples(generator: torch.Generator, tensor: Tensor) -> Tensor:
    """Samples drawn from the batch with replacement, so that a mean over the batch changes too."""
    drawn = torch.randint(len(tensor), (len(tensor),), generator=generator)
    return tensor[drawn.to(tensor.device)]


def noise(generator: torch.Generator, tensor: Tensor) -> Tensor:
    """Random inputs of the same statistics: every position takes its values from newly drawn samples.

    Unlike normal noise this suits numbers, categories, tokens and masks alike.
    """
    flat = tensor.reshape(len(tensor), -1)
    order = torch.rand(flat.shape, generator=generator).argsort(0).to(tensor.device)
    return flat.gather(0, order).reshape(tensor.shape)
