"""ADV001 still-improving

## What it detects
A run that ended normally while its loss was still falling steadily.

## Why is this bad?
It is not: longer training is the cheapest improvement there is. The model has not yet learned all that
it could with the same data and settings.

## How to fix
Train for more epochs. Stretch the learning rate schedule too: a rate that has decayed to zero makes
extra epochs useless.

## Known problems
Advice only. A training loss may keep falling while the model overfits: where the evaluation loss rises,
nothing is reported.

## References
- Karpathy, A recipe for training neural networks, 2019, "leave it training".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loss_trend import eval_loss, noise, only_loss
from clew.checks.run_view import RunView
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.finding import Finding, Severity


@dataclass(frozen=True)
class StillImproving(Check):
    id = "ADV001"
    name = "still-improving"
    needs = (signals.LOSS,)
    scope = TRAINING

    patience: int = 50  # losses before the check runs
    fall: float = 0.9  # last fifth of the losses over the fifth before; a tenth less is steady progress
    done: float = 0.02  # share of the first loss; below it, the loss has fallen far enough
    sure: float = 2.0  # standard errors of the two medians that the fall must exceed
    best: float = 1.02  # evaluation loss over its best; above it the model overfits
    left: float = 0.1  # learning rate at the end over its highest

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        loss, evaluation = only_loss(run), eval_loss(run)
        if loss is None or len(loss) < self.patience or not _ended_well(run) or not self._has_rate(run):
            return
        fifth = len(loss) // 5
        before, end = loss.last(2 * fifth).first(fifth), loss.last(fifth)
        error = 1.25 * noise(loss.last(2 * fifth).values) * (2 / fifth) ** 0.5
        if end.median < self.done * loss.first(10).median:
            return
        if end.median > self.fall * before.median or before.median - end.median < self.sure * error:
            return
        if evaluation is not None and evaluation.last(2).median > self.best * evaluation.min:
            return
        yield self.finding(
            Severity.ADVICE,
            message=f"the run ended while the loss was still falling: {before.median:.3g}, then "
            f"{end.median:.3g} over its last {fifth} steps",
            fix="train for more epochs",
            site=loss.site,
            step=int(end.steps[0]),
            evidence=loss.evidence("loss"),
        )

    def _has_rate(self, run: RunView) -> bool:
        rates = [s.finite() for _, s in run.series(signals.LR)]
        return all(len(r) == 0 or float(r.values[-1]) >= self.left * r.max for r in rates)

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.LOSS, "train"), self.patience, "steps")


def _ended_well(run: RunView) -> bool:
    return run.finished and not any(run.events(kind) for kind in ("exception", "interrupt", "stopped"))
