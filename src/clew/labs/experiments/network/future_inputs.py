"""Does a causal model's output at one position depend on later inputs?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.op_tape import SEED, RepeatedCall, plain_kernels, relative_change
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.labs.snapshot.users_step.model_calls import (
    ModelCall,
    few_samples,
    in_mode,
    model_calls,
    sample_dim,
)
from clew.records.facts.experiment_facts import CodePlace
from clew.records.facts.network_experiment_facts import FutureLeakFact

NEXT, MASK, NAME = "the targets are the inputs moved by one", "it is given a causal mask", "its name"
LEAST = 4  # positions: with fewer there is no past and future to compare
_NAMES = re.compile(r"gpt|causal|autoregress|(?<![a-zA-Z])lm(?![a-z])|LM$|language_?model", re.I)
_NOT_CAUSAL = re.compile(r"masked_?l|mlm|bert|denois|electra", re.I)
_ATTENTION = ("scaled_dot_product_attention", "multi_head_attention_forward")

NOT_CAUSAL = "nothing shows that the model should be causal (targets shifted by one, a causal mask)"


@dataclass(frozen=True)
class FutureInputs(Experiment):
    name = "future-leak"
    question = "does the model see what it should predict?"
    rank = 14

    rounding: float = 1e-5  # of the output's size: single precision keeps seven digits

    def run(self, subject: Subject, clock: Clock) -> Result:
        batch = few_samples(subject)
        with subject.snapshot(seed=0) as snapshot:
            targets = _targets(snapshot, batch)
            calls = model_calls(snapshot, batch)
            with in_mode(subject.models.values(), training=False), plain_kernels():
                for call in calls:
                    masked = has_causal_mask(call)
                    timeline = causal_sequence(call, batch.size, targets, masked)
                    if timeline is None:
                        continue
                    repeated = _OtherFuture(snapshot, call, timeline, batch.size)
                    if repeated.base:
                        return self._judged(repeated, clock)
        raise CannotJudge(NOT_CAUSAL)

    def _judged(self, repeated: _OtherFuture, clock: Clock) -> Result:
        if not repeated.steady():
            raise CannotJudge("the same forward gives different numbers (see nondeterministic-step)")
        length = repeated.timeline.length
        found = FutureLeakFact(why=repeated.timeline.why, length=length)
        for last in sorted({length // 2, 0, length - 2}, key=lambda t: abs(t - length // 2)):
            clock.tick()
            past, future = repeated.effects(last)
            if past <= self.rounding:
                continue
            place = repeated.place(last) or CodePlace(root=repeated.call.name, module="")
            effect = past / max(future, self.rounding)
            curve = repeated.by_position(length // 2)
            plot = Plot(
                f"change of the output when all inputs after position {length // 2} are replaced",
                list(range(len(curve))),
                curve,
                x_label="position",
                y_label="change",
            )
            return Result(replace(found, effect=effect, last=last, place=place), [plot])
        return Result(found)


def _targets(snapshot: StepSnapshot, batch: Any) -> list[Tensor]:
    if snapshot.subject.step is None:
        return [t.detach() for t in batch.targets]
    seen = snapshot.observe(batch)
    return [t.detach() for t in (*(c.target for c in seen.calls), *batch.targets) if t is not None]


class _OtherFuture(RepeatedCall):
    """One call of a model, repeated with a different future."""

    def __init__(self, snapshot: StepSnapshot, call: ModelCall, timeline: Timeline, count: int) -> None:
        super().__init__(snapshot, call)
        self._count = count
        self.timeline = timeline

    def outputs(self, last: int | None = None) -> list[Tensor]:
        """With time as the first dimension; with inputs after `last` replaced."""
        call = self.call if last is None else self._replaced(last)
        return [t for t in map(self._time_first, self.results(call.again)) if t is not None]

    def _time_first(self, output: Tensor) -> Tensor | None:
        length, count = self.timeline.length, self._count
        if output.dim() and output.shape[0] == length * count:
            sizes = (count, length) if self.timeline.samples == 0 else (length, count)
            output = output.reshape(*sizes, *output.shape[1:])
        if output.dim() < 2 or count not in output.shape:
            return None
        dims = [d for d, size in enumerate(output.shape) if size == length]
        if self.timeline.time in dims:
            return output.movedim(self.timeline.time, 0)
        return output.movedim(dims[0], 0) if len(dims) == 1 else None

    def _replaced(self, last: int) -> ModelCall:
        timeline = self.timeline
        return self.call.changed(lambda t: _other_future(t, timeline, last) if t is timeline.tensor else t)

    def effects(self, last: int) -> tuple[float, float]:
        """How much the output up to `last` changes with later inputs, and how much the rest does."""
        changed = self.outputs(last)
        pairs = list(zip(self.base, changed, strict=False))
        past = [relative_change(a[: last + 1], b[: last + 1], a) for a, b in pairs]
        rest = [relative_change(a[last + 1 :], b[last + 1 :], a) for a, b in pairs]
        return max(past, default=0.0), max(rest, default=0.0)

    def by_position(self, last: int) -> list[float]:
        changed = self.outputs(last)
        one, other = self.base[0], changed[0]
        return [relative_change(one[t], other[t], one) for t in range(len(one))]

    def place(self, last: int) -> CodePlace | None:
        """The first op whose result at a position up to `last` depends on later inputs."""
        length = self.timeline.length

        def keep(tensor: Tensor) -> Tensor | None:
            dim = sample_dim(tensor, length) if tensor.is_floating_point() else None
            return None if dim is None else tensor.narrow(dim, 0, last + 1)

        return self.first_change(keep, self._replaced(last).again)


def _other_future(tensor: Tensor, timeline: Timeline, last: int) -> Tensor:
    """After `last`, another sample's values in reverse, which are as plausible."""
    later = slice(last + 1, None)
    moved = tensor.detach().movedim(timeline.time, 0).clone()
    side = 0 if timeline.samples < timeline.time else timeline.samples - 1
    other = moved[later].flip(0).roll(1, 1 + side)
    if tensor.is_floating_point():
        generator = torch.Generator().manual_seed(SEED)
        noise = torch.randn(other.shape, generator=generator).to(tensor.device, tensor.dtype)
        other = other + 0.5 * tensor.detach().std() * noise
    else:
        kept = (moved[later] == 0) | (other == 0)  # padding stays where it is
        other = torch.where(kept, moved[later], other)
    moved[later] = other
    return moved.movedim(0, timeline.time)


@dataclass(frozen=True)
class Timeline:
    """A sequence that goes into a model: (samples, time) or (samples, time, features), or time first."""

    tensor: Tensor
    samples: int  # dimension
    time: int  # dimension
    why: str  # the model is meant to be causal on it

    @property
    def length(self) -> int:
        return int(self.tensor.shape[self.time])

    @property
    def samples_first(self) -> Tensor:
        """The sequence as (samples, time, …)."""
        return self.tensor.movedim(self.time, 1)


def causal_sequence(call: ModelCall, count: int, targets: Iterable[Tensor], masked: bool) -> Timeline | None:
    """The input along which the model is meant to look back only; None if nothing says so."""
    found = list(_sequences(call, count))
    known = list(targets)
    for sequence in found:
        others = [t for t in (*known, *call.tensors()) if t is not sequence.tensor]
        if any(_is_next(t, sequence) for t in others):
            return sequence
    if len(found) != 1 or any(_is_same(t, found[0]) for t in known):
        return None
    names = [type(m).__name__ for m in call.module.modules() if not type(m).__module__.startswith("torch.")]
    names += [name for name, _ in call.module.named_modules()]
    if any(_NOT_CAUSAL.search(n) for n in names):
        return None
    if masked:
        return replace(found[0], why=MASK)
    return replace(found[0], why=NAME) if any(_NAMES.search(n) for n in names) else None


def _sequences(call: ModelCall, count: int) -> Iterator[Timeline]:
    for tensor in call.tensors():
        samples = sample_dim(tensor, count)
        tokens = tensor.dim() == 2 and tensor.dtype in (torch.int64, torch.int32)
        features = tensor.dim() == 3 and tensor.is_floating_point()
        if samples not in (0, 1) or not (tokens or features):
            continue
        time = 1 - samples
        if tensor.shape[time] >= LEAST:
            yield Timeline(tensor, samples, time, NEXT)


def _is_next(target: Tensor, sequence: Timeline) -> bool:
    """Whether a target has at each position what the sequence has at the next."""
    given = sequence.samples_first
    return any(
        _alike(t, c) and not _alike(t, s)
        for t, c, s in (*_layouts(target, given[:, 1:], given[:, :-1]), *_longer(target, given))
    )


def _is_same(target: Tensor, sequence: Timeline) -> bool:
    given = sequence.samples_first
    return any(_alike(t, c) for t, c, _ in _layouts(target, given, given))


def _layouts(target: Tensor, cut: Tensor, same: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """As it is, flattened, and both with time first."""
    for one, two in ((cut, same), (cut.transpose(0, 1), same.transpose(0, 1))):
        if target.numel() == one.numel():
            yield target.reshape(-1), one.reshape(-1), two.reshape(-1)


def _longer(target: Tensor, given: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """A target as long as the sequence itself: its last place is not to be seen in it."""
    for swapped in (False, True):
        shape = given.transpose(0, 1).shape if swapped else given.shape
        if target.numel() == given.numel():
            full = target.reshape(shape)
            full = full.transpose(0, 1) if swapped else full
            yield full[:, :-1].reshape(-1), given[:, 1:].reshape(-1), given[:, :-1].reshape(-1)


def _alike(target: Tensor, other: Tensor, share: float = 0.95) -> bool:
    """Equal nearly everywhere; negative labels are those that are to be ignored."""
    if target.is_floating_point() != other.is_floating_point():
        return False
    counted = torch.ones_like(target, dtype=torch.bool) if target.is_floating_point() else target >= 0
    if int(counted.sum()) < LEAST:
        return False
    return float((target == other)[counted].float().mean()) >= share


class CausalMasks(TorchFunctionMode):
    """Detects attention that is restricted to the past."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in _ATTENTION and not self.seen:
            given = [kwargs.get("attn_mask"), *(a for a in args[3:] if isinstance(a, Tensor))]
            self.seen = bool(kwargs.get("is_causal")) or any(map(_hides_future, given))
        return func(*args, **kwargs)


def _hides_future(mask: Any) -> bool:
    """Everything above the diagonal is masked, and nothing else is."""
    if not isinstance(mask, Tensor) or mask.dim() < 2 or mask.shape[-1] != mask.shape[-2]:
        return False
    table = mask.detach().reshape(-1, *mask.shape[-2:])[0]
    if len(table) < LEAST:
        return False
    above = torch.ones_like(table, dtype=torch.bool).triu(1)
    hidden = table if table.dtype == torch.bool else table <= -1e3
    return bool(torch.equal(hidden, above) or torch.equal(~hidden, above))


def has_causal_mask(call: ModelCall) -> bool:
    """Whether a causal mask is given to attention in this call."""
    masks = CausalMasks()
    with masks:
        call.again()
    return masks.seen
