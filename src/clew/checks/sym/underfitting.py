"""SYM002 underfitting

## What it detects
A training loss that fell at first but has not improved in the second half of the run, and is still above
half of its initial value; the evaluation loss, if there is one, is no worse.

## Why is this bad?
The model does as well on new samples as on those it was trained on, and well on neither: it may be
too small, too strongly regularised, or without the features that the task needs.

## How to fix
Three experiments decide, and `clew check train.py` runs them: a wider copy (capacity-too-small),
dropout and weight decay off (over-regularised), a simple learner on the raw features (no-signal).
Then try a wider or deeper model, less regularisation, other features, or a higher learning rate.

## Known problems
A symptom, and only advice: where targets are noisy, the same loss may be the best possible.

## References
- Goodfellow, Bengio and Courville, Deep Learning, 2016, section 5.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loss_trend import eval_loss, only_loss, pretrained
from clew.checks.run_view import RunView
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.finding import Finding, Severity


@dataclass(frozen=True)
class Underfitting(Check):
    id = "SYM002"
    name = "underfitting"
    needs = (signals.LOSS,)
    scope = TRAINING
    symptom = True
    confidence = "possible"

    caused_by = ("learning-faults", "labels-misaligned")

    patience: int = 100  # losses before the check runs
    high: float = 0.5  # loss at the end over that at the start
    fell: float = 0.95  # the same; above it the loss never fell: that is loss-stuck
    flat: float = 0.95  # last quarter over the one before; less is progress
    rises: float = 1.1  # the same; above it the loss rises
    gap: float = 1.2  # evaluation over training loss; more is overfitting

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        loss, evaluation = only_loss(run), eval_loss(run)
        if loss is None or len(loss) < self.patience or pretrained(run):
            return
        quarter = len(loss) // 4
        start, end = loss.first(10).median, loss.last(quarter).median
        before = loss.last(2 * quarter).first(quarter).median
        if (
            not self.high * start < end < self.fell * start
            or not self.flat * before < end < self.rises * before
        ):
            return
        if evaluation is not None and len(evaluation) and evaluation.last(3).median > self.gap * end:
            return
        yield self.finding(
            Severity.ADVICE,
            message=f"the loss fell from {start:.3g} to {end:.3g} and has not improved in the second half "
            "of the run: the model is too limited, or no better loss is possible",
            fix="clew check --only capacity-too-small,over-regularised,no-signal train.py  # which of them "
            "fails shows the cause: width, regularisation or features",
            site=loss.site,
            step=int(loss.steps[len(loss) // 2]),
            evidence=loss.evidence("loss"),
        )

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.LOSS, "train"), self.patience, "steps")
