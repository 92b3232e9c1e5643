"""OUT003 noise-scale-sign

## What it detects
Random noise that is multiplied by a network output with negative entries and added to another one, as in
`mu + logvar * eps`: a log-variance (or any raw output) used as a standard deviation.

## Why is this bad?
A standard deviation is never negative. The samples do not come from the distribution that the loss (its
KL term) assumes: a log-variance of 0 means a standard deviation of 1 to the loss, but gives no noise at
all.

## How to fix
`std = torch.exp(0.5 * logvar)`, then `mu + std * torch.randn_like(std)`; or `F.softplus` of a raw output.

## Known problems
Only noise that is drawn, scaled and added inside a model's forward is seen. Multiplicative noise (`x +
x * eps`), and scales that are parameters (noisy networks), are not reported.

## References
- Kingma and Welling, Auto-encoding variational Bayes, 2013, section 2.4: the reparameterisation trick.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.loss_facts import LossFact
from clew.records.finding import Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class NoiseScaleSign(Check):
    id = "OUT003"
    name = "noise-scale-sign"
    rank = 770
    needs = (any_of(signals.LOSS, LossFact),)

    groups = ("layer-faults",)

    negative: float = 0.02  # share of a scale's entries that are below zero; a standard deviation has none
    samples: int = 5  # sampled forwards that are needed
    sustained: float = 0.8  # share of them that must show it

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site, series in run.series(signals.NOISE_NEGATIVE):
            if len(series) >= self.samples and series.share_above(self.negative) >= self.sustained:
                yield self._finding(site, series)

    def _finding(self, site: Site, series: Series) -> Finding:
        return self.finding(
            Severity.ERROR,
            message=f"noise is scaled by an output that is {series.median:.0%} negative: is a log-variance "
            "used as a standard deviation?",
            fix="std = torch.exp(0.5 * logvar); z = mu + std * torch.randn_like(std)",
            site=site,
            step=int(series.steps[int((series.values > self.negative).argmax())]),
            evidence=series.evidence("share of the noise's scale that is negative"),
        )

    def unjudged(self, run: RunView) -> str | None:
        most = run.longest(signals.NOISE_NEGATIVE)
        return too_few(most, self.samples, "sampled forwards with noise") if most else None
