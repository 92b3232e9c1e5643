"""Trends of losses and learning rates, for the checks that look at a whole training."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from clew.checks.run_view import RunView
from clew.checks.series import FloatArray, Series
from clew.records import signals
from clew.records.facts.model_facts import ParametersFact
from clew.records.site import Site


def only_loss(run: RunView) -> Series | None:
    """The training loss, if its curve shows whether training works.

    With several losses (GANs, actor and critic) each may rise for good reason. A loss that changes sign, or
    is negative, has no scale on which to measure progress.
    """
    losses = train_losses(run)
    if len(losses) != 1 or not losses[0].min >= 0:
        return None
    return losses[0].finite()


def start_and_end(loss: Series, start: int = 10, end: int = 20) -> tuple[float, float]:
    """The median of the first and of the last losses: where a loss began and ended, for all checks."""
    return loss.first(start).median, loss.last(end).median


def eval_loss(run: RunView) -> Series | None:
    """The evaluation loss with most points."""
    found = [series.finite() for site, series in run.series(signals.LOSS) if site.phase == "eval"]
    return max(found, key=len, default=None)


def warming_up(run: RunView) -> bool:
    """Whether the learning rate was still on its way up when the run ended.

    No thresholds, but what counts as a warm-up for all checks: it begins below half of the last rate, is at
    its highest at the end, and still rises in the last fifth.
    """
    for _, rate in run.series(signals.LR):
        values = rate.finite().values
        if len(values) < 2 or not values[-1] > 0:
            continue
        late = values[int(0.8 * len(values))]
        if values[-1] >= 0.99 * values.max() and values[0] < 0.5 * values[-1] and late < 0.98 * values[-1]:
            return True
    return False


def highest_rate(run: RunView) -> tuple[Site, float | None]:
    """The `step()` call with the highest learning rate, and that rate."""
    rates = [(s.max, site) for site, s in run.series(signals.LR) if not math.isnan(s.max)]
    if not rates:
        return next((site for site, _ in run.series(signals.GRAD_NORM)), Site()), None
    rate, site = max(rates, key=lambda pair: pair[0])
    return site, rate


def searches_lines(run: RunView) -> bool:
    """Whether an optimizer tries out several steps (LBFGS): then its losses are not a training curve."""
    return any(optimizer.closure for optimizer in run.optimizers)


def pretrained(run: RunView) -> bool:
    """Whether any weights came from a checkpoint: then the run does not begin with untrained weights."""
    return any(row.loaded for fact in run.known(ParametersFact) for row in fact.items)


def noise(values: FloatArray) -> float:
    """Standard deviation without the trend, from the differences of neighbours; robust to outliers."""
    if len(values) < 3:
        return 0.0
    # Half of normal noise lies within 0.6745 standard deviations; a difference has twice the variance.
    return float(np.median(np.abs(np.diff(values))) / (0.6745 * math.sqrt(2)))


def train_losses(run: RunView) -> Sequence[Series]:
    """The loss at every `backward()` call."""
    return [series for _, series in run.series(signals.LOSS, "train")]


def lead_loss(run: RunView) -> Series | None:
    """The loss with most values; the first of several."""
    return max(train_losses(run), key=len, default=None)
