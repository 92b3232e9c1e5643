"""ADV002 too-few-examples

## What it detects
Ten times more parameters than training samples, and an evaluation loss that stops falling or rises while
the training loss keeps falling. `clew check` runs an experiment: it trains the model on a quarter, a
half and all of the samples, over several splits, and reports if the loss on held-out samples still falls
clearly as samples are added.

## Why is this bad?
The model is large enough to memorise every sample, and the growing gap shows that it does. More samples
would help more than more epochs.

## How to fix
Add samples, use augmentation, or start from a pretrained model; otherwise try a smaller model, weight
decay and dropout.

## Known problems
Advice only: large models often generalise well from few samples. The number of samples is that of the
largest DataLoader; without a DataLoader nothing is reported.

## References
- Zhang et al., Understanding deep learning requires rethinking generalization, 2017.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean, median, stdev

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve
from clew.checks.evidence.loss_trend import eval_loss, only_loss, pretrained
from clew.checks.evidence.parameter_holders import parameter_count
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.learning_experiment_facts import TooFewExamplesFact
from clew.records.facts.model_facts import ModelFact
from clew.records.facts.step_facts import LoaderFact
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class TooFewExamples(Check):
    id = "ADV002"
    name = "too-few-examples"
    needs = (
        any_of(signals.LOSS, TooFewExamplesFact),
        any_of(LoaderFact, TooFewExamplesFact),
        any_of(ModelFact, TooFewExamplesFact),
    )

    more: float = 10.0  # parameters for each training sample
    gap: float = 1.5  # evaluation loss over training loss at the end
    wider: float = 1.3  # this ratio over the one at the first evaluations
    points: int = 4  # evaluations before the check runs
    falls: float = 0.1  # share of the untrained loss, from half of the samples to all; usually below 0.05
    left: float = 0.2  # share of the untrained loss that remains on held-out samples after training on all
    errors: float = 1.5  # standard errors over the splits that the fall must exceed

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        tried = run.outcome(TooFewExamplesFact)
        if tried is not None:
            yield from self._learning_curve(run, tried)
            return
        loss, evaluation = only_loss(run), eval_loss(run)
        lengths = [fact.length for fact in run.known(LoaderFact) if fact.length]
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
            f"no longer follows the training loss ({late:.3g})",
            fix="add samples or augmentation; use a pretrained or a smaller model",
            site=evaluation.site,
            step=begin,
            evidence=[
                evaluation.evidence("evaluation loss"),
                loss.evidence("training loss"),
                Evidence(f"{count / max(lengths):.0f} parameters per sample"),
            ],
        )

    def _learning_curve(self, run: RunView, found: TooFewExamplesFact) -> Iterator[Finding]:
        """In the experiment: the loss on held-out samples by the number of training samples."""
        curves, sizes = [c for c in found.curves if len(c.held_out) >= 2], found.sizes
        if len(curves) < 2 or len(sizes) < 2 or not all(c.trained for c in curves):
            return
        held = [c.held_out for c in curves]
        start, own = median(c.start for c in curves), median(c.trained[-1] for c in curves)
        if not all(math.isfinite(v) for v in (start, own, *(v for h in held for v in h))):
            return
        drops = [h[-2] - h[-1] for h in held]
        last = mean(h[-1] for h in held)
        error = stdev(drops) / math.sqrt(len(drops))
        if not mean(drops) > max(self.falls * start, self.errors * error):
            return
        if last < self.left * start or last < self.gap * own:
            return
        yield self.finding(
            Severity.ADVICE,
            message="more samples would help: the loss on held-out samples is "
            f"{mean(h[-2] for h in held):.3g} "
            f"after training on {sizes[-2]}, {last:.3g} after training on {sizes[-1]}, and "
            "still falling",
            fix="add samples or augmentation; use a pretrained or a smaller model",
            site=found.line.site,
            step=0,
            evidence=[
                *curve(run, self.name),
                Evidence(f"the loss on the training samples is {own:.3g}"),
                Evidence(f"{found.parameters:,} parameters"),
            ],
        )

    def unjudged(self, run: RunView) -> str | None:
        if run.outcome(TooFewExamplesFact) is not None:
            return None
        evaluation = eval_loss(run)
        count = 0 if evaluation is None else len(evaluation)
        return too_few(count, self.points, "evaluations")
