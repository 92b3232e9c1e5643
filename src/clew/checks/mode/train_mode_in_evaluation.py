"""MODE002 train-mode-in-evaluation

## What it detects
Evaluation (forwards without gradients between or after training steps) of a model that is still in
training mode and has layers for which that matters (dropout, batch normalisation).

## Why is this bad?
Dropout switches units off at random and batch normalisation uses the statistics of each evaluation
batch: the results are worse and noisier than the model really is. Batch normalisation also updates its
running statistics from the evaluation data, which then leak into the model.

## How to fix
`model.eval()` before the evaluation, and `model.train()` after it.

## Known problems
There are two explanations: `.eval()` was forgotten, or the randomness is wanted (Monte Carlo dropout,
statistics that are estimated again). `torch.optim.swa_utils.update_bn` is recognised. For Monte Carlo
dropout put only the dropout layers into training mode. Where several models train each other and nothing
is measured (samples of a GAN's generator), it is advice only. Models that are in no optimizer are not
checked, nor are forwards without gradients that are part of every training step.

## References
- PyTorch docs, autograd mechanics: evaluation mode.
- Gal & Ghahramani 2016, Dropout as a Bayesian approximation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.loop_facts import orders
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import listed
from clew.records import signals
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted
from clew.records.site import Site

WITH_GRADIENTS = re.compile(r"\(df\)\+|dfdf")  # batches that go through the model and no further


@dataclass(frozen=True)
class TrainModeInEvaluation(Check):
    id = "MODE002"
    name = "train-mode-in-evaluation"
    needs = (signals.EVENTS_PATTERN,)

    steps: int = 10  # of training; earlier, training and evaluation can't be distinguished
    often: float = 0.5  # share of the steps with such forwards; with more, they are part of training
    near: float = 0.5  # share of the sections with a loss next to them that makes them an evaluation
    batches: int = 2  # batches from a loader in a section, or with gradients in all: one may be a test run

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        if run.steps < self.steps:
            return
        for site, modes in run.series(signals.MODE_EVALUATION):
            layers = _layers(run, site)
            sections = modes.since(1)  # before the first update: a trial forward, lazy layers
            bad = sections.values == 1.0
            wrong = Series(modes.signal, site, sections.steps[bad], sections.values[bad])
            if layers and len(wrong) and _optimised(run, site) and self._is_evaluation(run, wrong):
                yield self._finding(run, wrong, sections, layers)
                return
        yield from self._without_no_grad(run)

    def _is_evaluation(self, run: RunView, wrong: Series) -> bool:
        now_and_then = len(np.unique(wrong.steps)) < self.often * run.steps
        return now_and_then or self._measures(run, wrong, self.batches)

    def _measures(self, run: RunView, wrong: Series, batches: int) -> bool:
        """Whether a loss is computed in it, or a loader feeds it that many batches."""
        losses = [s.steps for site, s in run.series(signals.LOSS, "eval") if site.phase == "eval"]
        measured = np.concatenate(losses) if losses else np.array([])
        fed = [s for site, s in run.series(signals.EVALUATION_BATCHES) if site == wrong.site]
        near = np.isin(wrong.steps, measured) | np.isin(wrong.steps - 1, measured)
        return float(near.mean()) >= self.near or any(s.median >= batches for s in fed)

    def _finding(self, run: RunView, wrong: Series, sections: Series, layers: list[str]) -> Finding:
        # Samples of a generator, to look at: torch's own GAN example makes them in this mode.
        shown = len(run.optimizers) > 1 and not self._measures(run, wrong, 1)
        return self.finding(
            Severity.ADVICE if shown else Severity.WARNING,
            message=f"{run.module_name(wrong.site)} is evaluated in training mode ({len(wrong)} of "
            f"{counted(len(sections), 'evaluation')}): {listed(layers)} {_works(layers)} as in training "
            "(unless the randomness is wanted, as in Monte Carlo dropout)",
            fix="model.eval()  # before the evaluation; model.train() after it",
            site=wrong.site,
            step=int(wrong.steps[0]),
            evidence=sections.evidence("mode of each evaluation: 1 training, 0 evaluation"),
        )

    def _without_no_grad(self, run: RunView) -> Iterator[Finding]:
        """Evaluation with gradients enabled: batches that go through the model without a backward."""
        hits = [o for o in orders(run) if WITH_GRADIENTS.search(o.pattern) and "m" not in o.pattern]
        count = sum(o.count for o in hits)
        roots = [site for site, modes in run.series(signals.MODE_TRAINING) if modes.min == 1.0]
        if not self.batches <= count < self.often * run.steps or len(roots) != 1 or len(run.parameters) != 1:
            return
        layers = _layers(run, roots[0])
        if layers and _optimised(run, roots[0]):
            yield self.finding(
                Severity.WARNING,
                message=f"{run.module_name(roots[0])} is evaluated in training mode and with gradients "
                f"({count} times): {listed(layers)} {_works(layers)} as in training",
                fix="model.eval()  # and torch.no_grad() around the evaluation; model.train() after it",
                site=roots[0],
                step=min(o.first for o in hits),
                evidence=Evidence(f"order of events: {hits[0].pattern} (d batch, f forward, b backward)"),
            )


def _works(layers: list[str]) -> str:
    return "works" if len(layers) == 1 else "work"


def _layers(run: RunView, site: Site) -> list[str]:
    """The kinds of layer that depend on the mode."""
    model = run.model_of(site)
    return sorted({x.kind for x in model.layers if x.mode_dependent}) if model else []


def _optimised(run: RunView, site: Site) -> bool:
    known = run.parameters.get(run.key(site)[0])
    return known is not None and known.optimised
