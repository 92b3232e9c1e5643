"""NUM001 non-finite

## What it detects
A training or evaluation loss, or gradients that the optimizer is about to use, that are NaN or infinite;
gradients that a `GradScaler` skips at every step. The finding names the first step at which that
happened and, where the step could be replayed, the first operation that produced a non-finite value from
finite ones, forward or backward, with its line, its inputs and the elements responsible. Otherwise it
names what was already non-finite (gradients, weights, or the batch itself). It shows the last finite
values before.

## Why is this bad?
NaN spreads: one NaN in a gradient makes its weights NaN in the same step, and every later
output with them. Nothing learned after that step can be used.

## How to fix
If the batch itself was bad, clean the data: `torch.isfinite(x).all()` finds the samples. Otherwise look
for operations that turn ordinary numbers into NaN: `log(0)`, `sqrt` or `norm` at 0 (its gradient is
infinite), `0 / 0`, `exp` of large values. Keep their inputs away from the edge, `torch.sqrt(x + 1e-8)`,
or use the stable form: `log_softmax`, `binary_cross_entropy_with_logits`. Where the values grew step by
step, the cause is a learning rate that is too high or an exploding gradient.

## Known problems
Steps that `GradScaler` skips because of an infinite gradient are normal and are not counted, until its
scale has fallen to 1 or twenty steps in a row are skipped: then the scale is not the cause. A NaN loss
that the script itself skips is reported as a warning if later losses are finite again. A loss that is
non-finite only in evaluation is a warning too. Gradients that the script cleans itself (`nan_to_num_`)
before the optimizer sees them are not checked. A step can be replayed only if the code of its loss has
no side effects; otherwise only the model is replayed, and a hand-written loss can't be searched. On an
accelerator the failure is noticed after the update, too late to replay the step.

## References
- Goldberg, What every computer scientist should know about floating-point arithmetic, 1991.
- PyTorch docs, autograd mechanics: gradients for non-differentiable functions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.nan_culprit import (
    CulpritReading,
    culprit_at,
    first_bad,
    growth,
    replays_of,
    samples_of,
)
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import listed
from clew.records import signals
from clew.records.facts.nan_facts import NonFiniteFact, ReproFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted
from clew.records.site import Site

_KINDS = {"nan": "NaN", "inf": "infinite"}


@dataclass(frozen=True)
class NonFinite(Check):
    id = "NUM001"
    name = "non-finite"
    needs = (any_of(signals.LOSS, signals.GRAD_NORM, NonFiniteFact),)
    confidence = "certain"

    caused_by = (
        "nonfinite-input",
        "half-precision-overflow",
        "mask-inverted",
        "exploding-gradient",
        "weights-diverging",
        "learning-rate-too-high",
        "unnormalised-target",
    )

    recovery: int = 3  # finite losses at the end, in a row, that show that the script skipped the NaN

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.known(NonFiniteFact)
        in_training = list(self._training(run, [r for r in found if r.where != "evaluation"]))
        # Evaluation also shows what training has spoilt: that is no fault of the evaluation.
        yield from in_training or (self._evaluation(run, r) for r in found if r.where == "evaluation")

    def _evaluation(self, run: RunView, report: NonFiniteFact) -> Finding:
        site = Site(file=report.file, line=report.line, phase="eval")
        kind = _KINDS.get(report.kind or "", "not finite")
        return self.finding(
            Severity.WARNING,
            message=f"the loss of the evaluation at step {report.step} is {kind}, while training is finite",
            fix=_eval_fix(report),
            site=next((s for s, _ in run.series(signals.LOSS, "eval") if _same_line(s, report)), site),
            step=report.step,
            evidence=[*_eval_evidence(run, report)],
        )

    def _training(self, run: RunView, reports: list[NonFiniteFact]) -> Iterator[Finding]:
        losses = first_bad(run, signals.LOSS)
        gradients = first_bad(run, signals.GRAD_NORM)
        steps = [r.step for r in reports] + [s for s, _ in (losses, gradients) if s is not None]
        if not steps:
            return
        step = min(steps)
        if any(c.is_data is False for c in replays_of(run, step)):  # the program itself made the bad inputs
            reports = [replace(r, bad_inputs=()) for r in reports]
        report = next((r for r in sorted(reports, key=lambda r: r.where != "loss") if r.step == step), None)
        in_loss = losses[0] == step or (report is not None and report.where == "loss")
        series = losses[1] if in_loss else gradients[1]
        culprit = culprit_at(run, step)
        elsewhere = first_elsewhere(run, step, in_loss) if culprit is None else None
        only_loss = gradients[0] is None and all(r.where == "loss" for r in reports)
        yield self.finding(
            Severity.WARNING if only_loss and self._recovered(losses[1]) else Severity.ERROR,
            message=_message(
                step, in_loss, series, report, elsewhere.because if elsewhere else _because(run, culprit)
            ),
            fix=culprit.fact.fix if culprit else elsewhere.fix if elsewhere else _fix(report),
            site=_site(run, series, report, culprit),
            step=step,
            evidence=[
                *(culprit.evidence() if culprit else ()),
                *(elsewhere.evidence() if elsewhere else ()),
                *_evidence(run, step, series, report, saved=elsewhere is None),
                *growth(run, step, culprit, series),
            ],
            confidence="likely" if culprit and not culprit.fact.reproduced else None,
        )

    def _recovered(self, losses: Series | None) -> bool:
        if losses is None:
            return False
        return len(losses) > self.recovery and bool(np.isfinite(losses.last(self.recovery).values).all())


def _why_unnamed(run: RunView, step: int) -> str | None:
    """Why a replay names no operation: what it says of the loss holds for the gradients, too."""
    return next((c.fact.reason for c in replays_of(run, step) if c.fact.reason), None)


def _because(run: RunView, culprit: CulpritReading | None) -> str | None:
    return culprit.because(run.module_name(culprit.site)) if culprit else None


def _message(
    step: int, in_loss: bool, series: Series | None, report: NonFiniteFact | None, because: str | None
) -> str:
    kind = _KINDS.get(report.kind or "", "not finite") if report else "not finite"
    if series is not None:
        bad = series.since(step).values
        bad = bad[~np.isfinite(bad)]
        kind = "NaN" if len(bad) and np.isnan(bad[0]) else "infinite"
    subject = "the loss became" if in_loss else "the gradients became"
    text = f"{subject} {kind} at step {step}"
    if report and report.skipped:
        skipped = counted(report.skipped, "update")
        text = f"the gradients are {kind} at any scale: GradScaler skipped {skipped} in a row"
    if because:
        return f"{text}: {because}"
    if report and report.bad_inputs:
        return f"{text}: the model's input was already non-finite ({listed(report.bad_inputs)})"
    if report and report.parameters and not in_loss:
        return f"{text}, in {listed(report.parameters)}, while the loss was still finite"
    return text


def _fix(report: NonFiniteFact | None) -> str:
    if report and report.bad_inputs:
        return (
            "clean the data, or check its preprocessing: torch.isfinite(x).flatten(1).all(1) finds "
            "the samples"
        )
    return "keep log, sqrt, division and exp away from their edge: torch.sqrt(x + 1e-8), torch.log(x + 1e-8)"


def _same_line(site: Site, report: NonFiniteFact) -> bool:
    return (site.file, site.line) == (report.file, report.line)


def _eval_fix(report: NonFiniteFact) -> str:
    if report.bad_weights:
        return "restart from a good checkpoint: a NaN stays in the model's state, such as running statistics"
    if "target" in report.bad_inputs:
        return "clean the targets; this finds the samples: torch.isfinite(y)"
    return "look at the samples of the evaluation data: torch.isfinite(x).flatten(1).all(1)"


def _eval_evidence(run: RunView, report: NonFiniteFact) -> Iterator[Evidence]:
    if report.bad_weights:
        yield Evidence(f"non-finite in the model: {listed(report.bad_weights, 20)}")
    if report.samples:
        yield Evidence(f"first seen in the predictions of {samples_of(report.samples, report.batch)}")
    if "target" in report.bad_inputs:
        yield Evidence("the targets contain non-finite values")
    for site, series in run.series(signals.LOSS, "eval"):
        if _same_line(site, report):
            bad = len(series) - len(series.finite())
            verb = "is" if bad == 1 else "are"
            yield series.evidence(f"{bad} of {counted(len(series), 'evaluation')} {verb} not finite")


def _site(
    run: RunView, series: Series | None, report: NonFiniteFact | None, culprit: CulpritReading | None
) -> Site:
    if culprit and culprit.computed and (culprit.site.file or culprit.site.module is not None):
        return run.locate(culprit.site)
    if culprit and culprit.phase == "parameter" and not culprit.by_update and culprit.site.file:
        return run.locate(culprit.site)  # where it is used
    if culprit and culprit.phase == "parameter":  # the update did it
        return next((site for site, _ in run.series(signals.GRAD_NORM, "train")), Site(op="step"))
    if series is not None:
        return series.site
    return Site(file=report.file, line=report.line, phase="train") if report else Site()


def _evidence(
    run: RunView, step: int, series: Series | None, report: NonFiniteFact | None, saved: bool
) -> Iterator[Evidence]:
    if series is not None:
        before = series.before(step).last(60)
        text = "no earlier values: non-finite from the first step"
        if len(before):
            text = f"{series.signal} up to step {step - 1}, last {before.values[-1]:.4g}"
        yield before.evidence(text)
    if report and report.skipped:
        scale = f", down to a scale of {report.scale:.4g}" if report.scale is not None else ""
        yield Evidence(f"{counted(report.skipped, 'update')} in a row skipped before it{scale}")
    if report and report.bad_inputs:
        yield Evidence(f"non-finite in the model's input: {listed(report.bad_inputs, 20)}")
    if report and report.bad_weights:
        yield Evidence(f"weights that were non-finite before the step: {listed(report.bad_weights, 20)}")
    if report and report.parameters:
        yield Evidence(f"non-finite gradients in: {listed(report.parameters, 20)}")
    reason = _why_unnamed(run, step)
    if reason is not None:
        yield Evidence(f"the operation was not found: {reason}")
    for repro in run.known(ReproFact):
        if saved and repro.step == step:
            yield Evidence(_repro(repro))


def _repro(repro: ReproFact) -> str:
    """Whether the step was saved, and whether a replay of it shows the failure again."""
    reason = repro.reason or "the reason is unknown"
    if not repro.written:
        return f"the step is not saved: {reason}"
    if repro.shown:
        return "the step is saved; replay it with: clew replay"
    if repro.shown is None:
        return f"the step is saved, but was not replayed: {reason}"
    return f"the step is saved, but a replay did not reproduce the failure: {reason}"


@dataclass(frozen=True)
class Elsewhere:
    """What another process has recorded."""

    rank: int
    step: int
    kind: str
    culprit: CulpritReading | None
    replay: str | None  # the command that runs its step again
    why: str | None = None

    @property
    def because(self) -> str:
        text = f"on rank {self.rank} the loss was {self.kind} at step {self.step}"
        return f"{text}: {self.why}" if self.why else f"{text}, and gradients are averaged over all ranks"

    @property
    def fix(self) -> str:
        if self.culprit is not None:
            return self.culprit.fact.fix
        return self.replay or f"look at the batch and the loss of rank {self.rank} at step {self.step}"

    def evidence(self) -> Iterator[Evidence]:
        if self.replay:
            yield Evidence(f"rank {self.rank}: its step is saved; replay it with: {self.replay}")
        for row in self.culprit.evidence() if self.culprit is not None else ():
            yield Evidence(f"rank {self.rank}: {row.text}")


def first_elsewhere(run: RunView, step: int, in_loss: bool) -> Elsewhere | None:
    """The process whose loss was non-finite before anything was in this one."""
    found = []
    for rank, other in run.other_ranks.items():
        bad, series = first_bad(other, signals.LOSS)
        if bad is None or series is None or bad > step or (bad == step and in_loss):
            continue
        values = series.since(bad).values
        kind = "NaN" if np.isnan(values[~np.isfinite(values)][0]) else "infinite"
        culprit = culprit_at(other, bad)
        why = culprit.because(other.module_name(culprit.site)) if culprit else None
        found.append(Elsewhere(rank, bad, kind, culprit, _replay(other, bad), why))
    return min(found, key=lambda one: (one.step, one.rank), default=None)


def _replay(run: RunView, step: int) -> str | None:
    """The command that runs the saved step again, if it was saved."""
    for repro in run.known(ReproFact):
        if repro.step == step and repro.written and repro.path:
            shorter = os.path.relpath(repro.path)
            return f"clew replay {repro.path if shorter.startswith(os.pardir) else shorter}"
    return None
