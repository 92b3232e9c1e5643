"""SYM001 overfitting

## What it detects
An evaluation loss that has risen by a fifth or more above its best value and stays there, while the
training loss kept falling and is now far below it.

## Why is this bad?
After its best point the model memorises the training samples: every further step makes it worse on new
ones.

## How to fix
Stop at the best evaluation and keep that checkpoint. Then try more data or augmentation, weight decay or
dropout, or a smaller model.

## Known problems
Where a checkpoint was saved at the best point, this is only advice. In classification the
evaluation loss can rise while the accuracy still gains: look at the metric that counts.

## References
- Prechelt, Early stopping - but when?, 1998.
- Goodfellow, Bengio and Courville, Deep Learning, 2016, section 7.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.loss_trend import eval_loss, only_loss
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import TRAINING
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.events import CheckpointSaveEvent
from clew.records.finding import Finding, Severity


@dataclass(frozen=True)
class Turn:
    """Where the evaluation loss was best, and how both losses went from there."""

    best: float
    at: int  # step
    latest: float
    train_then: float
    train_now: float


@dataclass(frozen=True)
class Overfitting(Check):
    id = "SYM001"
    name = "overfitting"
    rank = 1120
    needs = (signals.LOSS,)
    scope = TRAINING

    caused_by = (
        "train-val-preprocessing-mismatch",
        "train-mode-in-evaluation",
        "weights-untied",
        "label-map-mismatch",
        "dataset-mutates",
        "repeated-batch",
    )

    rise: float = 1.2  # evaluation loss over its best; the noise of a validation set gives a few percent
    after: int = 3  # evaluations after the best one, all worse by half of the rise; one may be noise
    points: int = 6  # evaluations before the check runs
    fell: float = 0.8  # training loss at the end over that at the best evaluation
    gap: float = 1.5  # evaluation loss over training loss at the end
    window: int = 20  # training losses whose median counts
    saved: float = 0.1  # share of the steps up to the best point; a checkpoint saved within them keeps it

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        loss, evaluation = only_loss(run), eval_loss(run)
        if loss is None or evaluation is None or len(evaluation) < self.points or not evaluation.min > 0:
            return
        turn = self._turn(loss, evaluation)
        if turn is not None:
            yield self._finding(run, loss, evaluation, turn)

    def _turn(self, loss: Series, evaluation: Series) -> Turn | None:
        smooth = np.array(
            [np.median(evaluation.values[max(n - 1, 0) : n + 2]) for n in range(len(evaluation))]
        )
        best = int(np.argmin(smooth[: len(smooth) - 1]))
        since = evaluation.skip(best + 1)
        turn = Turn(
            best=float(smooth[best]),
            at=int(evaluation.steps[best]),
            latest=evaluation.last(3).median,
            train_then=loss.before(int(evaluation.steps[best]) + 1).last(self.window).median,
            train_now=loss.last(self.window).median,
        )
        halfway = turn.best * (1 + (self.rise - 1) / 2)
        risen = len(since) >= self.after and turn.latest > self.rise * turn.best
        stays = evaluation.last(self.after).min > halfway
        fell = turn.train_now <= self.fell * turn.train_then and turn.latest >= self.gap * turn.train_now
        return turn if risen and stays and fell else None

    def _finding(self, run: RunView, loss: Series, evaluation: Series, turn: Turn) -> Finding:
        kept = any(
            0 <= event.step - turn.at <= max(self.saved * turn.at, 2)
            for event in run.happened(CheckpointSaveEvent)
        )
        return self.finding(
            Severity.ADVICE if kept else Severity.WARNING,
            message=f"the evaluation loss rose from {turn.best:.3g} (step {turn.at}) to {turn.latest:.3g} "
            f"while the training loss fell from {turn.train_then:.3g} to {turn.train_now:.3g}",
            fix=f"stop at the best evaluation, here step {turn.at}; weight decay, dropout, or more data",
            site=evaluation.site,
            step=turn.at,
            evidence=[evaluation.evidence("evaluation loss"), loss.evidence("training loss")],
        )

    def unjudged(self, run: RunView) -> str | None:
        evaluation = eval_loss(run)
        count = 0 if evaluation is None else len(evaluation)
        return too_few(count, self.points, "evaluations")
