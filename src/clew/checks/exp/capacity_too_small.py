"""EXP003 capacity-too-small

## What it detects
A network too narrow for its task. On a snapshot it is trained on the same few dozen samples, without
dropout, weight decay and noise, at several learning rates: its loss levels off well above the lowest
possible loss, while a copy with hidden layers several times as wide memorises the samples.

## Why is this bad?
A network that can't memorise a few samples can't learn the task: no amount of data, training or tuning
makes up for missing units.

## How to fix
Widen the hidden layers, the narrowest first, or add one. Then check whether the training loss falls;
regularise only after that.

## Known problems
A model may be small on purpose: ignore the check for it. Autoencoders, which are narrow by design, are
not checked. Other models are checked only if a wider copy can be built: linear, convolutional,
recurrent, embedding and batch normalisation layers.

## References
- Zhang et al., Understanding deep learning requires rethinking generalization, 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, or_nan
from clew.checks.run_view import RunView
from clew.records.facts.learning_experiment_facts import CapacityTooSmallFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted


@dataclass(frozen=True)
class CapacityTooSmall(Check):
    id = "EXP003"
    name = "capacity-too-small"
    rank = 1460
    needs = (CapacityTooSmallFact,)

    caused_by = ("learning-faults",)
    not_caused_by = ("rate-faults",)

    left: float = 0.5  # share of the way to the floor that the network leaves; enough capacity leaves 0.1
    right: float = 0.8  # share of right answers above which it is not too small
    share: float = 0.4  # largest share of that which the wider copy leaves
    falling: float = 0.15  # fall in the last third of the steps over what is left; with more, it is not level

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(CapacityTooSmallFact)
        if found is None or found.narrow is None or found.wide is None:
            return
        narrow, wide = found.narrow, found.wide
        left, wider = narrow.remaining, wide.remaining
        too_narrow = left > self.left and wider < self.share * left
        if not too_narrow or or_nan(narrow.accuracy) > self.right or not narrow.falling < self.falling:
            return
        yield self.finding(
            Severity.WARNING,
            message=f"the network is too narrow to learn {found.samples} samples: its loss levels off "
            f"at {narrow.end:.3g}, but with layers {found.factor} times as wide at {wide.end:.3g}",
            fix=f"widen the hidden layers; the narrowest has {counted(found.width or 0, 'unit')}",
            site=found.line.site,
            step=0,
            evidence=[
                *curve(run, self.name, 0),
                *curve(run, self.name, 1),
                Evidence(f"it ends {left:.0%} short of the lowest possible loss, the wider copy {wider:.0%}"),
            ],
        )
