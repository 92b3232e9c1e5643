"""DATA002 nonfinite-input

## What it detects
NaN or infinite values in the batch itself, in the model's first input or in the targets, at or before
the step at which the loss or the gradients became non-finite. Where a replay of the step shows that an
operation of the program produced the value, the data is not blamed. `clew data` reads the samples of the
dataset and lists those that contain any.

## Why is this bad?
One NaN in a batch makes the loss NaN, its gradients make every weight NaN, and after that nothing can be
learned. Common sources are missing measurements, and division by zero or the logarithm of zero in
preprocessing.

## How to fix
Find the samples with `torch.isfinite(x).flatten(1).all(1)` and drop or fill them before training;
in a pandas table `df.isna().sum()` says which columns they are in.

## Known problems
A program that fills missing values inside its model is not reported as long as its loss stays finite.
Additive masks contain infinities on purpose, so only the first input is checked.

## References
- IEEE 754: every arithmetic operation with a NaN gives a NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.data_feed import feeding_site
from clew.checks.evidence.nan_culprit import replays_of
from clew.checks.evidence.survey_facts import by_index, place_of, samples_read, surveys
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.records import signals
from clew.records.dataset_survey import INPUT, LABEL
from clew.records.facts.document_facts import SurveyFact
from clew.records.facts.nan_facts import NonFiniteFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted
from clew.records.signal_types import Signal
from clew.records.site import Site

FIRST = "input[0]"
SEARCHED = ((signals.INPUT.nonfinite, "the model's input"), (signals.TARGET.nonfinite, "the target"))


@dataclass(frozen=True)
class NonfiniteInput(Check):
    id = "DATA002"
    name = "nonfinite-input"
    needs = (any_of(signals.INPUT.nonfinite, signals.TARGET.nonfinite, NonFiniteFact, SurveyFact),)

    groups = ("data-faults",)

    values: int = 1  # non-finite numbers in a batch; one is enough to make all weights NaN

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = list(self._recorded(run))
        yield from found or self._surveyed(run)

    def _recorded(self, run: RunView) -> Iterator[Finding]:
        """In the batches that were trained on."""
        broke = _first_break(run)
        if broke is None:
            return
        known = {is_data for c in replays_of(run, broke) if (is_data := c.is_data) is not None}
        if known == {False}:  # a replay of the step has shown which operation made it
            return
        for signal, what in SEARCHED:
            for site, series in run.series(signal, "train"):
                bad = series.values >= self.values
                if not bad.any() or (signal is signals.INPUT.nonfinite and site.op != FIRST):
                    continue
                step = int(series.steps[int(bad.argmax())])
                if step <= broke and (known or not _computed(run, step, signal)):
                    count = int(series.values[int(bad.argmax())])
                    evidence = series.evidence(f"non-finite values in {what}, batch by batch")
                    yield self._finding(
                        run, site, what, step, counted(count, "non-finite value"), evidence, bool(known)
                    )
                    return
        for report in run.known(NonFiniteFact):
            if FIRST in report.bad_inputs and report.step <= broke:
                site = Site("", FIRST, phase="train")
                evidence = Evidence(
                    f"the batch of step {report.step}, inspected when the {report.where} became non-finite"
                )
                what = "the model's input"
                yield self._finding(run, site, what, report.step, "non-finite values", evidence, bool(known))
                return

    def _surveyed(self, run: RunView) -> Iterator[Finding]:
        """In the dataset; what is made of it before the loss is not known."""
        for survey in surveys(run):
            bad = [f for f in survey.fields if f.nonfinite >= self.values and "mask" not in f.name.lower()]
            for field in [f for f in bad if f.role in (INPUT, LABEL)][:1]:
                what = "the targets" if field.role == LABEL else f"field {field.name}"
                many = f"{field.nonfinite_samples:,} of {field.samples:,} samples of {survey.split}"
                verb = "contains" if field.nonfinite_samples == 1 else "contain"
                yield self.finding(
                    Severity.WARNING,
                    message=f"{many} {verb} NaN or infinite values in {what} ({field.nonfinite:,} in all)",
                    fix=f"drop them, or fill in missing values: look at dataset[{field.nonfinite_at[0]}]",
                    site=place_of(survey),
                    step=0,
                    evidence=[
                        Evidence(f"samples by index: {by_index(field.nonfinite_at, 12)}"),
                        samples_read(survey),
                    ],
                    confidence="certain",
                )

    def _finding(
        self, run: RunView, site: Site, what: str, step: int, how_many: str, evidence: Evidence, sure: bool
    ) -> Finding:
        whose = (
            "the data itself is NaN or infinite"
            if sure
            else "it was non-finite before the model and the loss ran"
        )
        is_input = site.op == FIRST
        name = "x" if is_input else "y"
        return self.finding(
            Severity.ERROR,
            message=f"{what} contains {how_many} at step {step}: {whose}",
            fix=f"keep = torch.isfinite({name}).flatten(1).all(1); x, y = x[keep], y[keep]"
            if is_input
            else "keep = torch.isfinite(y); x, y = x[keep], y[keep]  # samples without a target",
            site=feeding_site(run, site) if is_input else site,
            step=step,
            evidence=evidence,
        )


def _computed(run: RunView, step: int, signal: Signal) -> bool:
    """Whether the program made the values: at the alarm, the arguments from outside were finite."""
    reports = [report for report in run.known(NonFiniteFact) if report.step == step]
    return (
        signal is signals.INPUT.nonfinite
        and bool(reports)
        and not any(FIRST in r.bad_inputs for r in reports)
    )


def _first_break(run: RunView) -> int | None:
    """The first step whose loss or gradients were not finite."""
    steps = [report.step for report in run.known(NonFiniteFact)]
    for signal in (signals.LOSS, signals.GRAD_NORM):
        found = [series.first_nonfinite() for _, series in run.series(signal, "train")]
        steps += [step for step in found if step is not None]
    return min(steps, default=None)
