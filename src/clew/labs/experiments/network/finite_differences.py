"""Does backward() compute the gradient of the loss? Checks against finite differences in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd import Function

from clew.labs.experiments.base import Experiment, Result
from clew.labs.experiments.tools.float64_step import Float64Mode, doubled_batch, in_double
from clew.labs.experiments.tools.gradcheck import (
    SAME,
    UNSURE,
    WRONG,
    FunctionCall,
    checked,
    compared,
    covers,
    free_direction,
    functions_in,
    jitter,
    padding_rows,
    recording,
    source_of,
)
from clew.labs.experiments.tools.op_tape import Tape
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock, OutOfTime, first_line
from clew.labs.snapshot.users_step.model_calls import few_samples
from clew.labs.snapshot.users_step.replay_lines import BOUNDARIES
from clew.measure.rng import keep_rng
from clew.records.facts.experiment_facts import CodePlace
from clew.records.facts.network_experiment_facts import (
    FunctionGradient,
    GradientMismatchFact,
    GradientStop,
    ParameterGradient,
)
from clew.records.site import Line

SEED = 5
NEGLIGIBLE = 1e-5  # of the loss: a slope that changes it less; differences are exact to a thousandth of that
LEAST = 1e-3  # a smaller loss may consist of rounding errors of larger numbers: those cancel in a perfect fit


@dataclass(frozen=True)
class FiniteDifferences(Experiment):
    name = "gradient-mismatch"
    question = "does backward() compute the gradient of the loss?"
    rank = 30

    tolerance: float = 1e-3  # relative; in double precision right gradients agree to 1e-6
    most: int = 48  # parameters tested; those of a deep net are similar

    def run(self, subject: Subject, clock: Clock) -> Result:
        subject.need_step()
        batch = doubled_batch(few_samples(subject))
        with subject.snapshot(seed=0) as snapshot, in_double(subject.models.values()) as mode:
            step = _Float64Step(snapshot, batch, mode)
            functions = tuple(self._functions(step, clock))
            counts, wrong = self._check_parameters(step, clock)
        stops = tuple(GradientStop(what, *at) for what, at in mode.stops if not step.inside(at))
        return Result(GradientMismatchFact(functions=functions, compared=counts, wrong=wrong, stops=stops))

    def _functions(self, step: _Float64Step, clock: Clock) -> Iterator[FunctionGradient]:
        for call in step.functions():
            clock.tick()
            found, meant = checked(call, self.tolerance)
            if found is None:
                continue
            place = CodePlace(None, *call.module, *source_of(call.function.backward))
            yield FunctionGradient(**vars(found), name=call.function.__name__, meant=meant, place=place)

    def _check_parameters(
        self, step: _Float64Step, clock: Clock
    ) -> tuple[dict[str, int], tuple[ParameterGradient, ...]]:
        counts = {SAME: 0, WRONG: 0, UNSURE: 0}
        wrong: list[ParameterGradient] = []
        found = step.with_gradients()
        stride = max(1, -(-len(found) // self.most))
        for number, (root, name, parameter, gradient) in enumerate(found[::stride]):
            try:
                clock.tick(number * stride / len(found))
            except OutOfTime:
                break
            direction = free_direction(parameter, step.generator, step.padding)
            result = compared(
                parameter, gradient, direction, step.value, self.tolerance, NEGLIGIBLE * step.size
            )
            counts[result.verdict] += 1
            if result.verdict == WRONG:
                module, _, param = name.rpartition(".")
                wrong.append(ParameterGradient(**vars(result), root=root, module=module, param=param))
        return counts, tuple(sorted(wrong, key=lambda w: -w.error))


class _Float64Step:
    """The step at one point near the initial weights, repeated with the same random numbers."""

    def __init__(self, snapshot: StepSnapshot, batch: StepBatch, mode: Float64Mode) -> None:
        subject = snapshot.subject
        self._subject = subject
        self._snapshot = snapshot
        self._batch = batch
        self._mode = mode
        self.generator = torch.Generator().manual_seed(SEED)
        self._model_buffers = [b for m in subject.models.values() for b in m.buffers()]
        self._first = [b.detach().clone() for b in self._model_buffers]
        self.padding = padding_rows(subject.models.values())
        self._kinds: list[type[Function]] = []
        self.size = LEAST  # of the loss
        parameters = [p for m in subject.models.values() for p in m.parameters() if p.is_floating_point()]
        with torch.no_grad():
            jitter([p for p in parameters if p.requires_grad and p.numel()], self.generator)

    def loss(self) -> Tensor:
        for buffer, value in zip(self._model_buffers, self._first, strict=True):
            if not torch.equal(buffer, value):
                buffer.detach().copy_(value)
        self._snapshot.seed(SEED)
        try:
            return self._snapshot.loss(self._batch)
        except Exception as error:
            why = first_line(error)[:160]
            raise CannotJudge(f"the step does not run in double precision: {why}") from error

    def value(self) -> float:
        with keep_rng():
            return float(self.loss().detach())

    def functions(self) -> list[FunctionCall]:
        self._kinds = functions_in(self.loss())
        if not self._kinds:
            return []
        tape = Tape(self._subject.models, lambda _: None)
        with recording(self._kinds, lambda: tape.here) as calls, tape:
            self.loss()
        return list(calls.values())

    def inside(self, line: Line) -> bool:
        """Whether a line is in one of these functions: no graph is built there anyway."""
        return any(covers(method, line) for kind in self._kinds for method in (kind.forward, kind.backward))

    def with_gradients(self) -> list[tuple[str, str, Tensor, Tensor]]:
        """Parameters that the loss depends on, and their gradients."""
        named = [
            (root, name, p)
            for root, model in self._subject.models.items()
            for name, p in model.named_parameters()
            if p.requires_grad and p.dtype == torch.float64
        ]
        if not named:
            raise CannotJudge("no parameter is trained")
        self._mode.noting = True
        loss = self.loss()
        self._mode.noting = False
        if not loss.requires_grad:
            raise CannotJudge("the loss does not depend on any parameter (see detached-graph)")
        gradients = StepSnapshot.gradients(loss, [p for *_, p in named])
        self.size = max(abs(float(loss.detach())), LEAST)
        if self.value() != float(loss.detach()):
            raise CannotJudge("the same step gives different numbers (see nondeterministic-step)")
        return [(r, n, p, g.detach()) for (r, n, p), g in zip(named, gradients, strict=True) if g is not None]


BOUNDARIES.add(_Float64Step.loss.__code__)
