"""Reads the experiments with learning rates: what the user's rate gained, and what the best other rate
gained."""

from __future__ import annotations

from dataclasses import dataclass

from clew.checks.evidence.experiment_outcome import curve, number, numbers, place
from clew.checks.evidence.loss_trend import highest_rate
from clew.checks.evidence.recorded_facts import flag, rows, whole
from clew.checks.run_view import RunView
from clew.records.finding import Evidence
from clew.records.site import Site


@dataclass(frozen=True)
class RateTrial:
    """The user's rate and the best other one, over the same seeds."""

    name: str  # of the experiment
    start: float  # loss before the first step
    steps: int
    rate: float
    other: float
    gains: list[float]  # by which the loss fell, seed by seed
    other_gains: list[float]
    warms_up: bool

    @property
    def bottomless(self) -> bool:
        """Without a lowest value a loss falls the further the higher the rate: gains can't be compared."""
        return self.start < max(self.other_gains)

    def evidence(self, run: RunView) -> list[Evidence]:
        told = ", ".join(f"{self.start - gain:.3g}" for gain in self.gains)
        other = ", ".join(f"{self.start - gain:.3g}" for gain in self.other_gains)
        seeds = (
            f"after {self.steps} steps from {self.start:.3g}, over {len(self.gains)} orders of the batches"
        )
        return [
            *curve(run, self.name, 0),
            *curve(run, self.name, 1),
            Evidence(f"loss {seeds}: {told} at {self.rate:.2g}; {other} at {self.other:.2g}"),
        ]


def rate_trial(run: RunView, name: str, seeds: int) -> RateTrial | None:
    """None where the experiment was not made, saw no better rate, or needed no second seed to be clear."""
    data = run.experiment(name)
    tried = rows(data.get("rows")) if data else []
    if data is None or len(tried) != 2:
        return None
    gains, other = numbers(tried[0].get("gains")), numbers(tried[1].get("gains"))
    if len(gains) < seeds or len(gains) != len(other):
        return None
    return RateTrial(
        name,
        number(data.get("start")),
        whole(data.get("steps")) or 0,
        number(tried[0].get("rate")),
        number(tried[1].get("rate")),
        gains,
        other,
        flag(data.get("warms_up")),
    )


def where(run: RunView, name: str) -> Site:
    """The call of `step()`, else the line at which the loss was seen."""
    site, _ = highest_rate(run)
    return site if site.file else place(run.experiment(name) or {})
