"""ACT003 saturated-activation

## What it detects
A sigmoid or tanh between two layers whose outputs mostly lie at the flat ends of the curve, from the
first steps on, or at the end of a training that makes no more progress.

## Why is this bad?
At the flat ends the slope is below a twentieth of its maximum: hardly any gradient passes, and the
layers before it learn very slowly. The layer after it sees little more than signs.

## How to fix
Normalise the input, and start with smaller weights, `nn.init.xavier_uniform_`. A normalisation layer
before the activation keeps it in range; `nn.ReLU()` and `nn.GELU()` do not saturate.

## Known problems
Only functions whose output is the input of another layer are checked. Gates (LSTM, squeeze and
excitation, anything that is multiplied) and the output of the model are meant to saturate.

## References
- Glorot and Bengio, Understanding the difficulty of training deep feedforward networks, 2010.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.layer_pairs import feeding
from clew.checks.evidence.loss_trend import only_loss, start_and_end
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.model_facts import StructureFact
from clew.records.finding import Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class SaturatedActivation(Check):
    id = "ACT003"
    name = "saturated-activation"
    rank = 1130
    needs = (
        signals.ACTIVATION_SATURATED,
        StructureFact,
    )

    groups = ("layer-faults",)
    # Large inputs saturate what squashes them.
    caused_by = ("poor-initialisation", "step-size-faults", "scale-faults")

    # Unit normal input puts 3% of a tanh's outputs there; networks that learn well stay below half.
    share: float = 0.6  # of a layer's outputs at the flat ends
    window: int = 20  # sampled steps in the window; fewer means no verdict
    sustained: float = 0.9  # share of the window that must be bad
    stuck: float = 0.9  # loss at the end over that at the start, if saturation came later
    held_back: float = 0.5  # the same, if it was there from the start; below it, training goes well anyway

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        hidden = feeding(run)
        found = [
            (site, series)
            for site, series in run.series(signals.ACTIVATION_SATURATED)
            if (run.key(site)[0], site.module or "", site.op or "") in hidden and self._saturated(run, series)
        ]
        found.sort(key=lambda hit: (-round(hit[1].last(self.window).median, 2), run.depth(hit[0])))
        for site, series in found:
            yield self._finding(run, site, series)

    def _saturated(self, run: RunView, series: Series) -> bool:
        first, last = series.first(self.window), series.last(self.window)
        if len(last.finite()) < self.window or last.share_above(self.share) < self.sustained:
            return False
        return first.share_above(self.share) >= self.sustained or self._kept(run) >= self.stuck

    def _kept(self, run: RunView) -> float:
        """The loss at the end over that at the start; 0 if it can't be judged."""
        loss = only_loss(run)
        if loss is None or len(loss) < 2 * self.window:
            return 0.0
        start, end = start_and_end(loss)
        return end / start if start > 0 else 0.0

    def _finding(self, run: RunView, site: Site, series: Series) -> Finding:
        share = series.last(self.window).median
        return self.finding(
            Severity.WARNING if self._kept(run) >= self.held_back else Severity.ADVICE,
            message=f"{share:.0%} of the outputs of {run.name(site)} are saturated: "
            "hardly any gradient passes",
            fix="nn.init.xavier_uniform_(layer.weight) and a normalised input before it; or nn.ReLU()",
            site=site,
            step=series.onset(series.values > self.share, self.sustained),
            evidence=series.evidence(f"share of outputs at the flat ends of {site.op or 'the function'}"),
        )

    def unjudged(self, run: RunView) -> str | None:
        known = [len(s) for _, s in run.series(signals.ACTIVATION_SATURATED) if len(s.finite())]
        most = max(known, default=self.window)  # without a squashing function there is nothing to find
        return too_few(most, self.window, "sampled steps")
