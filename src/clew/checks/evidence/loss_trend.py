"""Trends of losses and learning rates, for the checks that look at a whole training."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from clew.checks.evidence.recorded_facts import Data, flag, rows
from clew.checks.run_view import RunView
from clew.checks.series import FloatArray, Series
from clew.records.site import Site


def only_loss(run: RunView) -> Series | None:
    """The training loss where it can be judged by its course.

    With several losses (GANs, actor and critic) each may rightly rise; one that changes sign, or is
    negative, has no scale that progress could be measured on.
    """
    losses = train_losses(run)
    if len(losses) != 1 or not losses[0].min >= 0:
        return None
    return losses[0].finite()


def start_and_end(loss: Series, start: int = 10, end: int = 20) -> tuple[float, float]:
    """The median of the first and of the last losses."""
    return loss.first(start).median, loss.last(end).median


def eval_loss(run: RunView) -> Series | None:
    """The evaluation loss with most points."""
    found = [series.finite() for site, series in run.series("loss") if site.phase == "eval"]
    return max(found, key=len, default=None)


def warming_up(run: RunView) -> bool:
    """Whether the learning rate was still on its way up when the run ended."""
    for _, rate in run.series("lr"):
        values = rate.finite().values
        if len(values) < 2 or not values[-1] > 0:
            continue
        late = values[int(0.8 * len(values))]
        if values[-1] >= 0.99 * values.max() and values[0] < 0.5 * values[-1] and late < 0.98 * values[-1]:
            return True
    return False


def highest_rate(run: RunView) -> tuple[Site, float | None]:
    """The `step()` call with the highest learning rate, and that rate."""
    rates = [(s.max, site) for site, s in run.series("lr") if not math.isnan(s.max)]
    if not rates:
        return next((site for site, _ in run.series("grad.norm")), Site()), None
    rate, site = max(rates, key=lambda pair: pair[0])
    return site, rate


def searches_lines(run: RunView) -> bool:
    """Whether an optimizer tries steps out (LBFGS): its losses are not a course."""
    return any(flag(fact.data.get("closure")) for fact in run.facts("optimizer"))


def pretrained(run: RunView) -> bool:
    """Whether any of the trained weights came from a checkpoint: then the start is not the beginning."""
    return any(
        flag(row.get("loaded")) for fact in run.facts("parameters") for row in rows(fact.data.get("items"))
    )


def optimizer_groups(run: RunView) -> list[tuple[str, Data]]:
    """Class of the optimizer and each of its parameter groups."""
    return [
        (str(fact.data.get("class")), group)
        for fact in run.facts("optimizer")
        for group in rows(fact.data.get("groups"))
    ]


def noise(values: FloatArray) -> float:
    """Standard deviation of what is not trend, from the differences of neighbours: robust to outliers."""
    if len(values) < 3:
        return 0.0
    return float(np.median(np.abs(np.diff(values))) / (0.6745 * math.sqrt(2)))


def train_losses(run: RunView) -> Sequence[Series]:
    """The loss at every `backward()` call."""
    return [series for _, series in run.series("loss", "train")]


def lead_loss(run: RunView) -> Series | None:
    """The loss with most values; in doubt the one seen first."""
    return max(train_losses(run), key=len, default=None)
