"""ADV002 too-few-examples

## What it detects
Ten times more parameters than training samples, together with an evaluation loss that has parted
from the training loss: it stands still or rises while the other goes on falling.

## Why is this bad?
There is room to learn every sample by heart, and the growing gap says that this is what happens.
What is learned from the next sample is worth more than what is learned from the next epoch.

## How to fix
More samples, augmentation, or a pretrained model; else a smaller model, weight decay and dropout.

## Known problems
Advice only: large models generalise well from few samples more often than their size suggests.
The number of samples is that of the largest DataLoader; without one nothing is said.

## References
- Zhang et al., Understanding deep learning requires rethinking generalization, 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.api import Check
from clew.checks.facts import whole
from clew.checks.optimisation.shapes import parameter_count
from clew.checks.symptoms.trend import eval_loss, only_loss, pretrained
from clew.checks.view import RunView
from clew.records import Evidence, Finding, Severity


@dataclass(frozen=True)
class TooFewExamples(Check):
    id = "ADV002"
    name = "too-few-examples"
    needs = ("loss", "fact:loader", "fact:model")

    more: float = 10.0  # parameters for each training sample
    gap: float = 1.5  # evaluation loss over training loss at the end
    wider: float = 1.3  # the same over what it was at the first evaluations
    points: int = 4  # evaluations before it is judged

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        loss, evaluation = only_loss(run), eval_loss(run)
        lengths = [n for f in run.facts("loader") if (n := whole(f.data.get("length")))]
        count = parameter_count(run)
        if (
            loss is None
            or evaluation is None
            or len(evaluation) < self.points
            or not lengths
            or pretrained(run)
        ):
            return
        if count < self.more * max(lengths):
            return
        begin = int(evaluation.steps[1])
        early, late = loss.before(begin + 1).last(20).median, loss.last(20).median
        then, now = evaluation.first(2).median, evaluation.last(2).median
        if not late > 0 or now < self.gap * late or now / late < self.wider * (then / early):
            return
        yield self.finding(
            Severity.ADVICE,
            message=f"{count:,} parameters for {max(lengths):,} samples, and the evaluation loss ({now:.3g}) "
            f"has parted from the training loss ({late:.3g})",
            fix="more samples or augmentation; a pretrained or a smaller model",
            site=evaluation.site,
            step=begin,
            evidence=[
                evaluation.evidence("evaluation loss"),
                loss.evidence("training loss"),
                Evidence(f"{count / max(lengths):.0f} parameters for each sample"),
            ],
        )

    def unjudged(self, run: RunView) -> str | None:
        evaluation = eval_loss(run)
        count = 0 if evaluation is None else len(evaluation)
        return None if count >= self.points else f"needs {self.points} evaluations, has {count}"
