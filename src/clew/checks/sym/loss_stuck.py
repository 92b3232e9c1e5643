"""SYM003 loss-stuck

## What it detects
A training loss that after a hundred or more steps is where it began, and no better than chance:
ln C for C classes, the variance of the targets for a regression.

## Why is this bad?
The model has learned nothing. Something between the data and the update does not work, and no other
check has found out what; more steps will not help.

## How to fix
Three experiments decide, and `clew check train.py` runs them: train on one and the same batch
(cannot-overfit-batch); let a simple learner try the task (no-signal); use random input of the same scale
and see whether the loss changes (input-ignored). Then look at the labels next to their inputs.

## Known problems
A symptom: it is reported on its own only where no cause was found. Losses whose chance level is not
known (contrastive, hand-written, several) are not checked. Tasks with a long plateau before the first
progress look the same until then.

## References
- Karpathy, A recipe for training neural networks, 2019.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.chance_loss import chance_level
from clew.checks.evidence.loss_trend import noise, only_loss, pretrained, start_and_end, warming_up
from clew.checks.run_view import RunView
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.loss_facts import LossFact
from clew.records.finding import Finding, Severity


@dataclass(frozen=True)
class LossStuck(Check):
    id = "SYM003"
    name = "loss-stuck"
    rank = 1150
    needs = (
        signals.LOSS,
        LossFact,
    )
    scope = TRAINING
    symptom = True
    confidence = "possible"

    caused_by = ("learning-faults", "clip-ineffective", "labels-misaligned")

    patience: int = 100  # losses before the check runs; small models show progress in tens
    kept: float = 0.95  # loss at the end over that at the start
    chance: float = 0.9  # share of the loss at chance; less is progress
    creeps: float = 0.01  # share of the first loss by which it may have fallen
    sure: float = 3.0  # standard errors; a larger fall is slow progress, not chance
    beyond: float = 1.5  # the same; above it, the loss has another problem

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        loss, level = only_loss(run), chance_level(run)
        if loss is None or level is None or len(loss) < self.patience or pretrained(run) or warming_up(run):
            return
        quarter = len(loss) // 4
        start, end = start_and_end(loss, quarter, quarter)
        if not (end >= self.kept * start and self.chance * level <= end <= self.beyond * level):
            return
        error = 1.25 * noise(loss.values) * (2 / quarter) ** 0.5  # of a difference of two medians
        if min(start, level) - end > max(
            self.sure * error, self.creeps * start
        ):  # coming down to chance is no progress
            return
        yield self.finding(
            Severity.WARNING,
            message=f"the loss does not improve: {start:.4g} at the start, {end:.4g} after {loss.span} "
            f"steps, and guessing gives {level:.4g}",
            fix="clew check --only cannot-overfit-batch,no-signal,input-ignored train.py  # if the model "
            "can memorise a few samples, look at the data, otherwise at the model",
            site=loss.site,
            step=int(loss.steps[0]),
            evidence=loss.evidence(f"loss; guessing gives {level:.4g}"),
        )

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.LOSS, "train"), self.patience, "steps")
