"""EXP003 capacity-too-small

## What it detects
A network too narrow for its task. On a snapshot it is trained on the same few dozen samples, without
dropout, weight decay and noise, at several learning rates: its loss levels off well above the lowest
there can be, while a copy with hidden layers several times as wide learns the samples by heart.

## Why is this bad?
What can't be learned by heart can't be learned at all: no data, no patience and no tuning makes up for
units that are not there.

## How to fix
Widen the hidden layers, the narrowest first, or add one. Then see whether the training loss comes down;
regularise only after that.

## Known problems
A model may be small on purpose: exempt it. Autoencoders, whose narrow layer is their point, are not
judged, and of the others only those of linear, convolutional, recurrent, embedding and
batch-normalisation layers, of which a wider copy can be made.

## References
- Zhang et al., Understanding deep learning requires rethinking generalization, 2017.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, number, place, why_not
from clew.checks.run_view import RunView
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class CapacityTooSmall(Check):
    id = "EXP003"
    name = "capacity-too-small"
    needs = ("fact:experiment.capacity-too-small",)

    left: float = 0.5  # share of the way to the floor that the network leaves; enough capacity leaves 0.1
    right: float = 0.8  # share of right answers above which it is not too small
    share: float = 0.4  # of what the network leaves, that the wider copy leaves at most
    falling: float = 0.15  # fall in the last third of the steps over what is left; more is not level yet

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        data = run.experiment(self.name)
        narrow, wide = (data.get("narrow"), data.get("wide")) if data else (None, None)
        if data is None or not isinstance(narrow, Mapping) or not isinstance(wide, Mapping):
            return
        left, wider = number(narrow.get("remaining")), number(wide.get("remaining"))
        if (
            not left > self.left
            or number(narrow.get("accuracy")) > self.right
            or not wider < self.share * left
        ):
            return
        if not number(narrow.get("falling")) < self.falling:
            return
        factor, width = data.get("factor"), data.get("width")
        ends = [number(x.get("end")) for x in (narrow, wide)]
        yield self.finding(
            Severity.WARNING,
            message=f"the network is too narrow to learn {data.get('samples')} samples: its loss levels off "
            f"at {ends[0]:.3g}, and with layers {factor} times as wide at {ends[1]:.3g}",
            fix=f"widen the hidden layers; the narrowest has {width} units",
            site=place(data),
            step=0,
            evidence=[
                *curve(run, self.name, 0),
                *curve(run, self.name, 1),
                Evidence(f"it leaves {left:.0%} of the way to the lowest loss, the wider copy {wider:.0%}"),
            ],
        )

    def unjudged(self, run: RunView) -> str | None:
        return why_not(run, self.name)
