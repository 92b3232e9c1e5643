"""EXP045 nondeterministic-step

## What it detects
A step that gives other numbers when it is run again from the same state, with the same batch and the
same seeds of torch, numpy and Python. The first operation that gives something else is named. Also, as
hints, random generators of the program's own, and state in plain attributes that makes the second call
differ from the first.

## Why is this bad?
A run that can't be repeated can't be compared: whether a change helped, or the dice fell differently, is
anybody's guess, and a rare failure can't be looked at again.

## How to fix
Draw from the generators that a seed reaches: `torch.randn_like(x)` instead of
`np.random.default_rng().normal(…)`. Don't let results depend on the time, on memory addresses or on the
order of a set. Keep state that matters in buffers (`register_buffer`).

## Known problems
Tiny differences are usual on GPUs, where sums are made in any order: they are a hint only.

## References
- PyTorch docs, Reproducibility.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import number, numbers
from clew.checks.evidence.experiment_site import named, site_at
from clew.checks.evidence.recorded_facts import names
from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class NondeterministicStep(Check):
    id = "EXP045"
    name = "nondeterministic-step"
    needs = ("fact:experiment.nondeterministic-step",)

    relative: float = 1e-5  # difference of the losses: sums in another order stay below in single precision

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        data = run.experiment(self.name)
        if data is None or data.get("kind") in (None, "same"):
            return
        message, fix, severity = self._told(run, data)
        first, second, *_ = (*numbers(data.get("losses")), math.nan, math.nan)
        what = "the loss" if data.get("whole") is not False else "the mean of the model's output"
        yield self.finding(
            severity,
            message=message,
            fix=fix,
            site=site_at(data.get("place")),
            step=0,
            evidence=Evidence(f"{what} is {first:.9g} and then {second:.9g}"),
            confidence="certain" if severity is Severity.WARNING else "possible",
        )

    def _told(self, run: RunView, data: Mapping[str, Any]) -> tuple[str, str, Severity]:
        site = site_at(data.get("place"))
        where = f"{named(run, site)} gives something else" if site.op else "the gradients differ"
        if data.get("kind") == "generator":
            owned = listed(names(data.get("generators")))
            return (
                f"the step draws from a generator of its own ({owned}), which no torch.manual_seed reaches",
                "draw from torch's generator, or give this one a seed and save its state with checkpoints",
                Severity.ADVICE,
            )
        if data.get("kind") == "kept":
            return (
                f"the same step differs the second time: {where}; some state is kept in an attribute",
                'self.register_buffer("state", …)  # if it is meant to be kept: checkpoints then hold it',
                Severity.ADVICE,
            )
        large = number(data.get("relative")) > self.relative
        return (
            f"the same step from the same state and seeds gives other numbers: {where}",
            "draw from generators that a seed reaches: torch.randn_like(x), not np.random.default_rng()",
            Severity.WARNING if large else Severity.ADVICE,
        )
