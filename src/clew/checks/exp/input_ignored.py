"""EXP020 input-ignored

## What it detects
A model whose output does not depend on its input. On a snapshot it is trained for a few dozen steps on a
few samples; then the samples' inputs are swapped, and replaced by random inputs with the same statistics
(each position takes its values from other samples). It is reported if the outputs do not change at all,
or if they hardly change and the loss is as good with the wrong inputs as with the right ones.

## Why is this bad?
The model can only learn a constant: the most frequent class, or the mean of the targets. The loss falls
a little at first, as if it were learning, and stays there.

## How to fix
Print what the model gets, and follow it to the output: a variable of an earlier batch, a tensor of zeros
in place of the input, a cast to integers, one division too many, a mask that covers everything.

## Known problems
A model that learns very slowly is not checked: if neither the program's optimizer nor Adam lowers the
loss, it looks the same as one that ignores its input. Samples that all have the same target, and batches
of fewer than eight samples, are not checked either.

## References
- Ivanov, 37 reasons why your neural network is not working, 2017: try random input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, number, numbers, place
from clew.checks.evidence.recorded_facts import flag, rows
from clew.checks.run_view import RunView
from clew.records.facts.network_experiment_facts import InputIgnoredFact
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class InputIgnored(Check):
    id = "EXP020"
    name = "input-ignored"
    needs = (InputIgnoredFact,)

    caused_by = ("constant-input", "loader-corrupts-data", "dataset-mutates", "mask-inverted", "dead-units")

    nothing: float = 1e-6  # share of the output that changes by rounding
    hardly: float = 1e-2  # share that changes where inputs are squashed; about 1 in models that learn
    gain: float = 0.02  # share of the loss that the right inputs must save
    noise: float = 3.0  # how many times larger than the spread over draws this gain must be

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        data = run.experiment(self.name) or {}
        tries = rows(data.get("tries"))
        if not tries or any(self._gains(t) for t in tries):
            return
        reason = self._reason(tries)
        if reason is None:
            return
        message, sure = reason
        yield self.finding(
            Severity.ERROR if sure else Severity.WARNING,
            message=message,
            fix="print what the model gets and follow it to the output: the wrong variable, zeros, a "
            "cast to integers, one scaling too many",
            site=place(data),
            step=0,
            evidence=[*curve(run, self.name), *(Evidence(_losses(t)) for t in tries)],
            confidence="certain" if sure else "likely",
        )

    def _reason(self, tries: list[Mapping[str, Any]]) -> tuple[str, bool] | None:
        if all(flag(t.get("alike")) for t in tries):
            return "the model gets the same input for every sample", True
        given, data = _largest(tries, "given"), _largest(tries, "data")
        if given is not None and given <= self.nothing:
            return "the model's output does not depend on its input", True
        if data is not None and data <= self.nothing:
            return "the output stays the same for any input", True
        if given is not None and given <= self.hardly and all(self._tried(t) for t in tries):
            return (
                f"the model hardly uses its input: other inputs change the output by {given:.1%}, and "
                "the loss is as good with the inputs of other samples as with the right ones"
            ), False
        return None

    def _gains(self, attempt: Mapping[str, Any]) -> bool:
        """Whether the loss is lower with the right inputs."""
        look = attempt.get("last")
        if not isinstance(look, Mapping):
            return False
        real, before = numbers(look.get("real")), numbers(attempt.get("first"))
        worse = max((numbers(look.get(k)) for k in ("others", "noise")), key=_mean)
        margin = max(
            self.gain * max(abs(_mean(real)), abs(_mean(before))), self.noise * _spread(real + worse)
        )
        return _mean(worse) - _mean(real) > margin

    def _tried(self, attempt: Mapping[str, Any]) -> bool:
        return number(attempt.get("steps")) > 0

    def unjudged(self, run: RunView) -> str | None:
        data = run.experiment(self.name) or {}
        tries = rows(data.get("tries"))
        if tries and not any(self._gains(t) for t in tries):
            steps = int(sum(number(t.get("steps")) for t in tries))
            return f"in {steps} steps nothing was learned from the inputs: see cannot-overfit-batch"
        return None


def _largest(tries: list[Mapping[str, Any]], key: str) -> float | None:
    found = [number(t.get(key)) for t in tries if t.get(key) is not None]
    return max(found) if found and all(v == v for v in found) else None


def _mean(values: list[float]) -> float:
    return fmean(values) if values else float("nan")


def _spread(values: list[float]) -> float:
    """Half the larger range of the two groups of draws; zero if the model has no noise."""
    half = len(values) // 2
    groups = [g for g in (values[:half], values[half:]) if g]
    return max((max(g) - min(g) for g in groups), default=0.0) / 2


def _losses(attempt: Mapping[str, Any]) -> str:
    look = attempt.get("last")
    read = look if isinstance(look, Mapping) else {}
    real, others, noise = (_mean(numbers(read.get(k))) for k in ("real", "others", "noise"))
    steps = number(attempt.get("steps"))
    return (
        f"{attempt.get('optimizer')}, {steps:.0f} steps: loss {real:.4g}; {others:.4g} with the inputs of "
        f"other samples, {noise:.4g} with random inputs"
    )
