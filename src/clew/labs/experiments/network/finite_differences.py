"""Does backward() compute the gradient of the loss? Checks against finite differences in float64."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from clew.labs.experiments.base import Experiment, Result
from clew.labs.experiments.tools.autograd_functions import (
    Applied,
    checked,
    covers,
    functions_in,
    recording,
    source_of,
)
from clew.labs.experiments.tools.directional_derivative import SAME, UNSURE, WRONG, compared, drawn, jitter
from clew.labs.experiments.tools.float64_step import Doubling, doubled_batch, in_double
from clew.labs.experiments.tools.op_tape import Tape
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock, OutOfTime
from clew.labs.snapshot.users_step.model_calls import few_samples
from clew.labs.snapshot.users_step.replay_lines import BOUNDARIES, Line

SEED = 5
NEGLIGIBLE = 1e-5  # of the loss: a slope that changes it less; differences are exact to a thousandth of that


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
            trial = _Trial(subject, snapshot, batch, mode)
            functions = list(self._functions(trial, clock))
            counts, wrong = self._parameters(trial, clock)
        stops = [{"what": w, "file": at[0], "line": at[1]} for w, at in mode.stops if not trial.inside(at)]
        return Result({"functions": functions, "compared": counts, "wrong": wrong, "stops": stops})

    def _functions(self, trial: _Trial, clock: Clock) -> Iterator[dict[str, Any]]:
        for applied in trial.functions():
            clock.tick()
            found, meant = checked(applied, self.tolerance)
            if found is None:
                continue
            file, line = source_of(applied.function.backward)
            place = {"file": file, "line": line, "module": applied.module[1], "root": applied.module[0]}
            yield {"name": applied.function.__name__, "meant": meant, "place": place, **found.to_json()}

    def _parameters(self, trial: _Trial, clock: Clock) -> tuple[dict[str, int], list[dict[str, Any]]]:
        counts = {SAME: 0, WRONG: 0, UNSURE: 0}
        wrong: list[dict[str, Any]] = []
        found = trial.with_gradients()
        stride = max(1, -(-len(found) // self.most))
        for number, (root, name, parameter, gradient) in enumerate(found[::stride]):
            try:
                clock.tick(number * stride / len(found))
            except OutOfTime:
                break
            direction = drawn(parameter, trial.generator) * trial.free(parameter)
            result = compared(
                parameter, gradient, direction, trial.value, self.tolerance, NEGLIGIBLE * trial.size
            )
            counts[result.verdict] += 1
            if result.verdict == WRONG:
                module, _, param = name.rpartition(".")
                wrong.append({"root": root, "module": module, "param": param, **result.to_json()})
        return counts, sorted(wrong, key=lambda w: -w["error"])


class _Trial:
    """The step at one point near the initial weights, repeated with the same random numbers."""

    def __init__(self, subject: Subject, snapshot: StepSnapshot, batch: StepBatch, mode: Doubling) -> None:
        self._subject = subject
        self._snapshot = snapshot
        self._batch = batch
        self._mode = mode
        self.generator = torch.Generator().manual_seed(SEED)
        self._buffers = [b for m in subject.models.values() for b in m.buffers()]
        self._first = [b.detach().clone() for b in self._buffers]
        self._padding = padding_rows(subject.models.values())
        self._kinds: list[type[Function]] = []
        self.size = 0.0  # of the loss
        parameters = [p for m in subject.models.values() for p in m.parameters() if p.is_floating_point()]
        with torch.no_grad():
            jitter([p for p in parameters if p.requires_grad and p.numel()], self.generator)

    def loss(self) -> Tensor:
        for buffer, value in zip(self._buffers, self._first, strict=True):
            if not torch.equal(buffer, value):
                buffer.detach().copy_(value)
        self._snapshot.seed(SEED)
        try:
            return self._snapshot.loss(self._batch)
        except Exception as error:
            told = (str(error).splitlines() or [type(error).__name__])[0]
            raise CannotJudge(f"the step does not run in double precision: {told[:160]}") from error

    def value(self) -> float:
        with torch.random.fork_rng(devices=[]):
            return float(self.loss().detach())

    def functions(self) -> list[Applied]:
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
        self.size = abs(float(loss.detach()))
        if self.value() != float(loss.detach()):
            raise CannotJudge("the same step gives different numbers (see nondeterministic-step)")
        return [(r, n, p, g.detach()) for (r, n, p), g in zip(named, gradients, strict=True) if g is not None]

    def free(self, parameter: Tensor) -> Tensor:
        """1 where a parameter may move: an embedding's padding has no gradient by design."""
        kept = torch.ones(parameter.shape, dtype=torch.float64, device=parameter.device)
        row = self._padding.get(id(parameter))
        if row is not None:
            kept[row] = 0.0
        return kept


def padding_rows(models: Iterable[nn.Module]) -> dict[int, int]:
    """Of the tables of embeddings, by the identity of their weights."""
    tables = [m for top in models for m in top.modules() if isinstance(m, (nn.Embedding, nn.EmbeddingBag))]
    return {id(m.weight): m.padding_idx for m in tables if m.padding_idx is not None}


BOUNDARIES.add(_Trial.loss.__code__)
