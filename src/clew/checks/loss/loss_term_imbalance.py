"""LOSS008 loss-term-imbalance

## What it detects
A loss that is a sum of terms, one of which (a loss call with its own targets) makes up next to nothing
and is not learned.

## Why is this bad?
The gradient is a sum as well: the large term decides what the shared layers learn, and the gradient of
the small one is lost in it. The task of the small term is not learned, although its loss is in the code.

## How to fix
Bring the terms to the same size: normalise the targets of the large one, or weight the terms (`loss = a
+ 1e-4 * b`), so that both start within a factor of ten.

## Known problems
Values are compared, not gradients. Terms that are probably small on purpose are not reported: `kl_div`,
hand-written terms (penalties, KL terms of a VAE), terms with a constant target, anything in a run with
two optimizers (adversarial terms), and terms that were learned anyway.

## References
- Kendall, Gal and Cipolla, Multi-task learning using uncertainty to weigh losses, 2018.
- Chen et al., GradNorm, 2018.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loss_inputs import series_at
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.loss_facts import LossFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

MEANT_SMALL = ("kl_div", "cosine_embedding_loss")


@dataclass(frozen=True)
class LossTermImbalance(Check):
    id = "LOSS008"
    name = "loss-term-imbalance"
    rank = 570
    needs = (any_of(signals.LOSS, LossFact),)

    caused_by = ("unnormalised-target", "unnormalised-input")

    # Weighted auxiliary terms of published recipes (0.01 to 1) make up one percent and more of the loss.
    share: float = 0.005  # share of the whole loss that the small term makes up
    unlearned: float = 0.6  # its loss at the end over that at chance
    window: int = 10  # recorded steps at the end that are checked; twice as many are needed
    sustained: float = 0.9  # share of all steps in which it was so small

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        if len(run.optimizers) > 1:
            return
        shares = list(run.series(signals.TERM_SHARE))
        for site, series in shares:
            if site.op in MEANT_SMALL or len(series) < 2 * self.window:
                continue
            if series.share_below(self.share) >= self.sustained and self._unlearned(run, site):
                yield self._finding(run, site, series, shares)

    def _unlearned(self, run: RunView, site: Site) -> bool:
        """Still near chance; where that is not known, near where it began."""
        values = series_at(run, signals.LOSS_CALL_VALUE, site)
        even = series_at(run, signals.LOSS_CALL_CHANCE, site)
        spread = series_at(run, signals.TARGET.std, site)
        if values is None or even is None or spread is None or spread.max == 0.0:
            return False
        limit = even.last(self.window).median
        if not limit > 0:
            limit = values.first(self.window).median
        return values.last(self.window).median > self.unlearned * limit

    def _finding(
        self, run: RunView, site: Site, series: Series, shares: list[tuple[Site, Series]]
    ) -> Finding:
        lead_site, lead = max(shares, key=lambda pair: pair[1].median)
        known = lead.median > 0.5  # more than half: no other term can be larger
        what = f"{lead_site.op} makes up {lead.median:.2%}" if known else "the other terms make up the rest"
        values = series_at(run, signals.TERM_VALUE, site)
        evidence = [series.evidence(f"share of the loss, {series.median:.2g}")]
        if values is not None:
            evidence.append(
                values.evidence(f"value of {site.op}: {values.last(self.window).median:.3g} at the end")
            )
        if known:
            evidence.append(Evidence(f"the larger term: {lead_site.op}", site=lead_site))
        times = max(1.0 / max(series.median, 1e-12), 1.0)
        return self.finding(
            Severity.WARNING,
            message=f"{site.op} has no effect: its share of the loss is {series.median:.1g}, and {what}",
            fix=f"weight the terms: multiply the larger one by about {1 / times:.0e}, or normalise its "
            "targets",
            site=site,
            step=int(series.steps[0]),
            evidence=evidence,
        )

    def unjudged(self, run: RunView) -> str | None:
        if len(run.optimizers) > 1:
            return "with several optimizers a small term may be intended"
        most = run.longest(signals.TERM_SHARE)
        return too_few(most, 2 * self.window, "sampled steps") if most else None
