"""Does a causal model's output at one place depend on inputs after it?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.causal_sequence import Timeline, causal_sequence, has_causal_mask
from clew.labs.experiments.tools.op_tape import Place, distance, first_difference, plain_kernels, taped
from clew.labs.experiments.tools.sample_leaks import SEED
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.labs.snapshot.users_step.model_calls import (
    ModelCall,
    evaluating,
    few_samples,
    model_calls,
    sample_dim,
)
from clew.measure.nested_tensors import tensors_in

NOT_CAUSAL = "nothing shows that the model should be causal (targets shifted by one, a causal mask)"


@dataclass(frozen=True)
class FutureLeak(Experiment):
    name = "future-leak"
    question = "does the model see what it should predict?"
    rank = 13

    rounding: float = 1e-5  # of the output's size: single precision keeps seven digits

    def run(self, subject: Subject, clock: Clock) -> Result:
        batch = few_samples(subject)
        with subject.snapshot(seed=0) as snapshot:
            targets = _targets(subject, snapshot, batch)
            calls = model_calls(subject, snapshot, batch)
            with evaluating(subject.models.values()), plain_kernels():
                for call in calls:
                    masked = has_causal_mask(call)
                    timeline = causal_sequence(call, batch.size, targets, masked)
                    if timeline is None:
                        continue
                    looking = _Looking(snapshot, call, timeline, batch.size)
                    if looking.base:
                        return self._look(looking, clock)
        raise CannotJudge(NOT_CAUSAL)

    def _look(self, looking: _Looking, clock: Clock) -> Result:
        if not looking.steady():
            raise CannotJudge("the same forward gives different numbers (see nondeterministic-step)")
        length = looking.timeline.length
        data: dict[str, Any] = {"why": looking.timeline.why, "length": length, "effect": 0.0}
        for last in sorted({length // 2, 0, length - 2}, key=lambda t: abs(t - length // 2)):
            clock.tick()
            past, future = looking.effects(last)
            if past <= self.rounding:
                continue
            place = looking.place(last)
            told = place.to_json() if place else {"root": looking.call.name, "module": ""}
            effect = past / max(future, self.rounding)
            curve = looking.by_position(length // 2)
            plot = Plot(
                f"change of the output as all inputs after position {length // 2} are replaced",
                list(range(len(curve))),
                curve,
                x_label="position",
                y_label="change",
            )
            return Result({**data, "effect": effect, "last": last, "place": told}, [plot])
        return Result(data)


def _targets(subject: Subject, snapshot: StepSnapshot, batch: Any) -> list[Tensor]:
    if subject.step is None:
        return [t.detach() for t in batch.targets]
    seen = snapshot.observe(batch)
    return [t.detach() for t in (*(c.target for c in seen.calls), *batch.targets) if t is not None]


class _Looking:
    """One call of a model, made again with another future."""

    def __init__(self, snapshot: StepSnapshot, call: ModelCall, timeline: Timeline, count: int) -> None:
        self._snapshot = snapshot
        self._count = count
        self.call = call
        self.timeline = timeline
        self.base = self._outputs()

    def _outputs(self, call: ModelCall | None = None) -> list[Tensor]:
        """With time as the first dimension."""
        self._snapshot.seed(SEED)
        found = [t.detach() for t in tensors_in((call or self.call).again()) if t.is_floating_point()]
        return [t for t in map(self._time_first, found) if t is not None]

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

    def steady(self) -> bool:
        again = self._outputs()
        return len(again) == len(self.base) and all(map(torch.equal, self.base, again))

    def _replacing(self, last: int) -> Callable[[Tensor], Tensor]:
        timeline = self.timeline

        def change(tensor: Tensor) -> Tensor:
            return _other_future(tensor, timeline, last) if tensor is timeline.tensor else tensor

        return change

    def effects(self, last: int) -> tuple[float, float]:
        """How much of the output up to `last` changes with the inputs after it, and how much of the rest."""
        changed = self._outputs(self.call.changed(self._replacing(last)))
        past = [_gap(a[: last + 1], b[: last + 1], a) for a, b in zip(self.base, changed, strict=False)]
        rest = [_gap(a[last + 1 :], b[last + 1 :], a) for a, b in zip(self.base, changed, strict=False)]
        return max(past, default=0.0), max(rest, default=0.0)

    def by_position(self, last: int) -> list[float]:
        changed = self._outputs(self.call.changed(self._replacing(last)))
        one, other = self.base[0], changed[0]
        return [_gap(one[t], other[t], one) for t in range(len(one))]

    def place(self, last: int) -> Place | None:
        """The first op whose result at a place up to `last` depends on what comes after."""
        length = self.timeline.length

        def keep(tensor: Tensor) -> Tensor | None:
            dim = sample_dim(tensor, length) if tensor.is_floating_point() else None
            return None if dim is None else tensor.narrow(dim, 0, last + 1)

        models = {self.call.name: self.call.module}
        other = self.call.changed(self._replacing(last))
        self._snapshot.seed(SEED)
        _, before = taped(models, keep, self.call.again)
        self._snapshot.seed(SEED)
        _, after = taped(models, keep, other.again)
        return first_difference(before, after, 1e-6)


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


def _gap(one: Tensor, other: Tensor, whole: Tensor) -> float:
    if one.shape != other.shape or not one.numel():
        return 0.0
    size = float(whole.to(torch.float64).abs().nan_to_num().max())
    return distance(one, other)[0] / size if size > 0 else 0.0
