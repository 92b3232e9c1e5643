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


@dataclass(frozen=True)
class LowerRateTrial:
    """What a trial must show for a lower rate to be the better one."""

    seeds: int = 3  # orders of the batches in which the experiment must give the same result
    behind: float = 0.1  # share of the fall at a lower rate; rates in use gain several times the lower one's
    fell: float = 0.05  # share of its start by which the loss must fall at the lower rate to show anything

    def read(self, run: RunView, name: str) -> RateTrial | None:
        """The trial, whatever it shows."""
        return rate_trial(run, name, self.seeds)

    def shown(self, run: RunView, name: str) -> RateTrial | None:
        """The trial, if it shows that a lower rate is better."""
        trial = self.read(run, name)
        if trial is None or trial.warms_up or not trial.other < trial.rate:
            return None
        least = min(trial.other_gains)
        if least < self.fell * abs(trial.start) or max(trial.gains) > self.behind * least:
            return None
        return trial  # also where a loss that is not finite can't be compared


@dataclass(frozen=True)
class HigherRateTrial:
    """What a trial must show for a much higher rate to be the better one."""

    seeds: int = 3  # orders of the batches in which the experiment must give the same result
    share: float = 0.005  # of the best fall in the same steps; slow but usual rates have a few hundredths
    factor: float = 100.0  # by which the better rate is higher; less may be patience, or a cautious choice
    moved: float = 0.1  # share of its start by which the loss must fall at the higher rate

    def read(self, run: RunView, name: str) -> RateTrial | None:
        """The trial, whatever it shows."""
        return rate_trial(run, name, self.seeds)

    def shown(self, run: RunView, name: str) -> RateTrial | None:
        """The trial, if it shows that a higher rate is better."""
        trial = self.read(run, name)
        if trial is None or trial.other < 0.99 * self.factor * trial.rate or trial.bottomless:
            return None
        least = min(trial.other_gains)
        if least < self.moved * abs(trial.start) or max(trial.gains) > self.share * least:
            return None
        return trial


def where(run: RunView, name: str) -> Site:
    """The call of `step()`, else the line at which the loss was seen."""
    site, _ = highest_rate(run)
    return site if site.file else place(run.experiment(name) or {})
