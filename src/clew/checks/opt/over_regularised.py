"""OPT011 over-regularised

## What it detects
Regularisation that is stronger than the signal in the data: weight decay that pulls the weights to zero
as hard as the gradient pulls back, while they shrink and the loss does not improve; or dropout so strong
that the training loss stays far above the evaluation loss. `clew check` runs an experiment: from the
same start and over three seeds, the loss falls only once dropout and weight decay are off.

## Why is this bad?
Regularisation should choose among solutions that fit the data. Where it is stronger than the gradient,
there are none: the network underfits, however long it trains.

## How to fix
Use weight decay between 1e-5 and 1e-2 (up to 0.1 with AdamW) and dropout between 0.1 and 0.5. First get
the training loss down without any, then add as much as the evaluation loss needs.

## Known problems
A penalty that the script adds to the loss itself is not recognised. Augmentation of the training data
also raises the training loss: dropout is blamed only where it drops most values.

## References
- Loshchilov and Hutter, Decoupled weight decay regularization, 2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, why_not
from clew.checks.evidence.gradient_depth import is_weight
from clew.checks.evidence.layer_pairs import dropouts
from clew.checks.evidence.loss_trend import (
    eval_loss,
    highest_rate,
    only_loss,
    start_and_end,
)
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.learning_experiment_facts import OverRegularisedFact
from clew.records.facts.model_facts import DropoutRow
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

DECOUPLED = {"AdamW", "SGDW", "Lion", "NAdamW", "RAdamW", "Adafactor"}  # decay apart from the gradient


@dataclass(frozen=True)
class DecayPull:
    """Weights that shrink because weight decay outweighs their gradient."""

    pull: float = 0.5  # decay over gradient (or over the whole update); at 1 they are in balance
    shrunk: float = 0.7  # size of the weights at the end over that at the start
    stuck: float = 0.9  # loss at the end over that at the start
    gone: float = 0.1  # share of what all layers together passed on at first; below it, they pass on nothing
    constant: float = 0.5  # loss at the end over that at the start, where the weights pass on nothing
    window: int = 10  # sampled steps of the weights

    def shrinking(self, run: RunView, kept: float) -> Iterator[tuple[float, list[Series]]]:
        """A weight decay and the weights that it shrinks, where that keeps most of them from learning.

        `kept` is the loss at the end over that at the start.
        """
        groups = ((optimizer.kind, group) for optimizer in run.optimizers for group in optimizer.groups)
        for kind, group in groups:
            decay, rate = group.weight_decay, group.lr
            if not decay > 0:
                continue
            wanted = set(group.params)
            strong = [
                weight
                for site, weight in run.series(signals.WEIGHT.norm)
                if is_weight(run, site) and f"{site.module}.{site.param}" in wanted
                if self._outweighs(run, site, weight, decay, rate if kind in DECOUPLED else 0.0)
            ]
            weights = [weight for site, weight in run.series(signals.WEIGHT.norm) if is_weight(run, site)]
            gone = math.prod(self.left(weight) for weight in strong) <= self.gone
            if 2 * len(strong) > len(weights) and kept >= (self.constant if gone else self.stuck):
                yield decay, strong

    def left(self, weight: Series) -> float:
        """The size of a weight at the end over that at the start."""
        return weight.last(self.window).median / float(weight.values[0])

    def _outweighs(self, run: RunView, site: Site, weight: Series, decay: float, rate: float) -> bool:
        """Whether the weight shrinks, and by its decay; `rate` is given where that acts on its own."""
        other = run.of_parameter(signals.UPDATE.norm if rate else signals.GRADIENT.norm, run.key(site))
        if other is None or len(weight) < 2 * self.window or not weight.values[0] > 0:
            return False
        if not self.left(weight) <= self.shrunk:
            return False
        against = other.last(self.window).median
        force = decay * (rate or 1.0) * weight.last(self.window).median
        strength = force / against if against > 0 else float("inf")
        return strength > self.pull


@dataclass(frozen=True)
class DropoutCost:
    """Training that is much harder than evaluation, because it drops too much."""

    dropped: float = 0.7  # dropout that may be blamed; 0.5 is common
    harder: float = 1.5  # training loss over evaluation loss
    held_back: float = 0.7  # training loss at the end over that at the start; more is held back by dropout
    evaluations: int = 3  # evaluations that must show it

    def blamed(self, run: RunView, start: float, end: float) -> tuple[str, DropoutRow, Series] | None:
        """The strongest dropout, its root and the evaluation loss, if it is to blame for a training loss."""
        evaluation = eval_loss(run)
        strong = [(root, dropout) for root, dropout in dropouts(run) if dropout.p >= self.dropped]
        if not end >= self.held_back * start:
            return None
        if evaluation is None or len(evaluation) < self.evaluations or not strong:
            return None
        recent = evaluation.last(self.evaluations)
        to_blame = recent.min > 0 and bool(np.all(recent.values * self.harder <= end))
        return (*max(strong, key=lambda hit: hit[1].p), evaluation) if to_blame else None


@dataclass(frozen=True)
class RegularisationExperiment:
    """What training without regularisation must show."""

    seeds: int = 3  # seeds for which the experiment must give the same result
    behind: float = 0.2  # share of the fall without them; usual dropout leaves more than half of it
    moved: float = 0.1  # share of the first loss by which it must fall without them to show anything
    alone: float = 0.5  # share of that fall without weight decay alone, above which it alone is to blame

    def shows(self, on: Sequence[float], off: Sequence[float], start: float) -> bool:
        """Whether the loss falls without regularisation and hardly with it; falls are given seed by seed."""
        if min(len(on), len(off)) < self.seeds or not min(off) > self.moved * abs(start):
            return False
        return not max(on) > self.behind * min(off)


@dataclass(frozen=True)
class OverRegularised(Check):
    id = "OPT011"
    name = "over-regularised"
    rank = 1140
    needs = (any_of(signals.LOSS, OverRegularisedFact),)

    groups = ("learning-faults",)

    patience: int = 50  # losses before the check runs
    decay: DecayPull = field(default_factory=DecayPull)
    dropout: DropoutCost = field(default_factory=DropoutCost)
    trial: RegularisationExperiment = field(default_factory=RegularisationExperiment)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        tried = list(self._tried(run))
        yield from tried or self._watched(run)

    def _watched(self, run: RunView) -> Iterator[Finding]:
        loss = only_loss(run)
        if loss is None or len(loss) < self.patience:
            return
        start, end = start_and_end(loss)
        for decay, weights in self.decay.shrinking(run, end / start if start > 0 else 0.0):
            yield self._by_decay(run, loss, decay, weights)
        blamed = self.dropout.blamed(run, start, end)
        if blamed is not None:
            yield self._by_dropout(run, loss, *blamed)

    def _tried(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(OverRegularisedFact)
        if found is None:
            return
        on, off, start = found.gains.get("on", ()), found.gains.get("off", ()), found.start
        if not self.trial.shows(on, off, start):
            return
        what, fix, site = _blamed(found, self.trial.alone * min(off))
        yield self.finding(
            Severity.WARNING,
            message=f"{what} keeps the network from learning: on a snapshot, {found.steps} steps take the "
            f"loss from {start:.3g} to {start - median(on):.3g}, but without it to "
            f"{start - median(off):.3g}",
            fix=fix,
            site=site if site.module or site.file else found.line.site,
            step=0,
            evidence=[*curve(run, self.name, 0), *curve(run, self.name, 1), *_alone(found)],
        )

    def _by_decay(self, run: RunView, loss: Series, decay: float, weights: Sequence[Series]) -> Finding:
        worst = min(weights, key=self.decay.left)
        site, _ = highest_rate(run)
        made = run.optimizers[:1]
        where = Site(file=made[0].file, line=made[0].line) if made and made[0].file else site
        return self.finding(
            Severity.WARNING,
            message=f"weight decay {decay:.3g} outweighs the gradient: {run.name(worst.site)} has shrunk to "
            f"{self.decay.left(worst):.1%} of its initial norm, and the loss stays at "
            f"{loss.last(20).median:.3g}",
            fix=f"weight_decay={min(decay / 100, 0.01):.1g}  # instead of {decay:.3g}",
            site=where,
            step=int(worst.steps[0]),
            evidence=[worst.evidence(f"norm of {run.name(worst.site)}"), loss.evidence("loss")],
        )

    def _by_dropout(
        self, run: RunView, loss: Series, root: str, worst: DropoutRow, evaluation: Series
    ) -> Finding:
        site = Site(module=worst.path, root=root, file=worst.file, line=worst.line)
        with_it, without = loss.last(20).median, median(evaluation.last(self.dropout.evaluations).values)
        return self.finding(
            Severity.WARNING,
            message=f"dropout of {worst.p:.0%} holds training back: the loss is {with_it:.3g} with it and "
            f"{without:.3g} without, in evaluation",
            fix=f"nn.Dropout(0.3)  # instead of {worst.p:.3g}",
            site=site,
            step=0,
            evidence=[
                loss.evidence("training loss, with dropout"),
                evaluation.evidence("evaluation loss, without dropout"),
                Evidence(f"{run.name(site)} drops {worst.p:.0%}"),
            ],
        )

    def unjudged(self, run: RunView) -> str | None:
        if run.has(OverRegularisedFact):
            return why_not(run, self.name)
        return too_few(run.longest(signals.LOSS, "train"), self.patience, "steps")


def _blamed(found: OverRegularisedFact, fall: float) -> tuple[str, str, Site]:
    """Weight decay if the loss falls so far without that alone, or if nothing is dropped; else the
    strongest dropout."""
    decay, without_decay = found.decay, found.gains.get("without decay", ())
    alone = bool(without_decay) and max(without_decay) > fall
    if not found.dropouts or (decay > 0 and alone):
        return f"weight decay {decay:.3g}", f"weight_decay={min(decay / 100, 0.01):.1g}", Site()
    path, share = max(found.dropouts, key=lambda pair: pair[1])
    return f"dropout of {share:.0%}", f"dropout 0.2  # instead of {share:.2g}", Site(module=path or None)


def _alone(found: OverRegularisedFact) -> list[Evidence]:
    names = {"on": "as it is", "off": "without regularisation"}
    parts = [
        f"{found.start - gains[0]:.3g} {names.get(name, name)}"
        for name, gains in found.gains.items()
        if gains
    ]
    return [Evidence(f"loss after the experiment: {', '.join(parts)}")]
