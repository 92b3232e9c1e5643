"""EXP020 input-ignored

## What it detects
A model whose output does not depend on its input. On a snapshot it is trained for a few dozen steps on a
few samples; then the samples' inputs are swapped, and replaced by random inputs with the same statistics
(each position takes its values from other samples). It is reported if the outputs do not change at all,
or if they hardly change and the loss is as low with the wrong inputs as with the right ones.

## Why is this bad?
The model can only learn a constant: the most frequent class, or the mean of the targets. The loss falls
a little at first, as if it were learning, and stays there.

## How to fix
Print what the model gets, and follow it to the output: a variable of an earlier batch, a tensor of zeros
in place of the input, a cast to integers, a scaling that is applied twice, a mask that covers everything.

## Known problems
A model that learns very slowly is not checked: if neither the program's optimizer nor Adam lowers the
loss, it looks the same as one that ignores its input. Samples that all have the same target, and batches
of fewer than eight samples, are not checked either.

## References
- Ivanov, 37 reasons why your neural network is not working, 2017: try random input.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve
from clew.checks.run_view import RunView
from clew.records.facts.network_experiment_facts import InputIgnoredFact, SwappedTraining
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class InputIgnored(Check):
    id = "EXP020"
    name = "input-ignored"
    rank = 1430
    needs = (InputIgnoredFact,)

    caused_by = ("constant-input", "loader-corrupts-data", "dataset-mutates", "mask-inverted", "dead-units")

    nothing: float = 1e-6  # share of the output that changes by rounding
    hardly: float = 1e-2  # share that changes where inputs are squashed; about 1 in models that learn
    gain: float = 0.02  # share of the loss that the right inputs must save
    noise: float = 3.0  # how many times larger than the spread over draws this gain must be

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(InputIgnoredFact)
        if found is None or not found.tries or any(map(self._gains, found.tries)):
            return
        reason = self._reason(found.tries)
        if reason is None:
            return
        message, sure = reason
        yield self.finding(
            Severity.ERROR if sure else Severity.WARNING,
            message=message,
            fix="print what the model gets and follow it to the output: is it the wrong variable, zeros, "
            "cast to integers, or scaled twice?",
            site=found.line.site,
            step=0,
            evidence=[*curve(run, self.name), *(Evidence(_losses(t)) for t in found.tries)],
            confidence="certain" if sure else "likely",
        )

    def _reason(self, tries: Sequence[SwappedTraining]) -> tuple[str, bool] | None:
        if all(t.alike for t in tries):
            return "the model gets the same input for every sample", True
        given, data = _largest(t.given for t in tries), _largest(t.data for t in tries)
        if given is not None and given <= self.nothing:
            return "the model's output does not depend on its input", True
        if data is not None and data <= self.nothing:
            return "the output stays the same for any input", True
        if given is not None and given <= self.hardly and all(t.steps for t in tries):
            return (
                f"the model hardly uses its input: other inputs change the output by {given:.1%}, and "
                "the loss is as low with other samples' inputs as with the right ones"
            ), False
        return None

    def _gains(self, training: SwappedTraining) -> bool:
        """Whether the loss is lower with the right inputs."""
        real = training.last.real
        worse = max((training.last.others, training.last.noise), key=_mean)
        size = max(abs(_mean(real)), abs(_mean(training.first)))
        margin = max(self.gain * size, self.noise * _spread(real + worse))
        return _mean(worse) - _mean(real) > margin

    def unjudged(self, run: RunView) -> str | None:
        found = run.outcome(InputIgnoredFact)
        if found and found.tries and not any(map(self._gains, found.tries)):
            steps = sum(t.steps for t in found.tries)
            return f"in {steps} steps nothing was learned from the inputs: see cannot-overfit-batch"
        return None


def _largest(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return max(known) if known and not any(map(math.isnan, known)) else None


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan


def _spread(values: Sequence[float]) -> float:
    """Half the larger range of the two groups of draws; zero if the model has no noise."""
    half = len(values) // 2
    groups = [g for g in (values[:half], values[half:]) if g]
    return max((max(g) - min(g) for g in groups), default=0.0) / 2


def _losses(training: SwappedTraining) -> str:
    last = training.last
    real, others, noise = map(_mean, (last.real, last.others, last.noise))
    return (
        f"{training.optimizer}, {training.steps} steps: loss {real:.4g}; {others:.4g} with the inputs of "
        f"other samples, {noise:.4g} with random inputs"
    )
