"""LOOP002 missing-optimizer-step

## What it detects
An optimizer that never steps although `backward()` keeps filling the gradients of its parameters, and
nothing else updates them.

## Why is this bad?
The weights keep their initial values. The loss is flat apart from the noise of the batches.

## How to fix
Call `optimizer.step()` after `loss.backward()`. With gradient accumulation, check that the
condition for a step can be met: `(i + 1) % 64 == 0` never is in an epoch of 50 batches.

## Known problems
A program that only needs gradients (attributions, gradient statistics) but creates an optimizer looks
the same.

## References
- PyTorch tutorials, Optimizing model parameters: the optimization loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loop_facts import optimizer_uses
from clew.checks.run_view import RunView
from clew.records import signals
from clew.records.facts.step_facts import OptimizerUseFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class MissingOptimizerStep(Check):
    id = "LOOP002"
    name = "missing-optimizer-step"
    withdrawal = "the optimizer has stepped since then"
    needs = (OptimizerUseFact,)

    groups = ("loop-faults",)

    backwards: int = 20  # without a step; more than most programs accumulate, and than a short epoch has
    phases: int = 200  # the same, for an optimizer that may be waiting for its phase

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        uses = optimizer_uses(run)
        some_step = any(use.stepped for use in uses)
        enough = self.phases if some_step and not run.finished else self.backwards
        for use in uses:
            idle = not use.stepped and not use.shared and not use.changed and not use.unscaled
            if idle and use.with_grad and use.backwards >= enough:
                yield self._finding(run, use, some_step)

    def _finding(self, run: RunView, use: OptimizerUseFact, some_step: bool) -> Finding:
        made = Site(op="step", file=use.file, line=use.line)
        calls = [
            (site, series) for site, series in run.series(signals.LOSS, "train") if site.op == "backward"
        ]
        site = made if some_step or not calls else calls[0][0]
        return self.finding(
            Severity.WARNING if some_step else Severity.ERROR,
            message=f"{use.kind} never steps: after {use.backwards} backward passes the weights still "
            "have their initial values",
            fix="optimizer.step()  # after loss.backward()",
            site=site,
            step=0,
            evidence=[
                Evidence(
                    f"{use.with_grad} of its {use.held} parameters have a gradient, but none has changed",
                    site=made,
                ),
                *(series.evidence("loss") for _, series in calls[:1]),
            ],
        )
