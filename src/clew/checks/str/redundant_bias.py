"""STR002 redundant-bias

## What it detects
A layer with a bias right before a batch or instance normalisation.

## Why is this bad?
The normalisation subtracts the mean of every channel, and the bias with it. The bias has no effect and
no gradient, but still takes memory and optimizer state.

## How to fix
`bias=False` in the layer; the normalisation has its own bias.

## Known problems
It costs little and does no harm, so it is advice. Models that must match published weights may keep it.

## References
- Ioffe and Szegedy, Batch normalization, 2015, section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.layer_pairs import biases
from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records.facts.model_facts import StructureFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class RedundantBias(Check):
    id = "STR002"
    name = "redundant-bias"
    needs = (StructureFact,)
    on_one_forward = True

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = [
            (Site(module=bias.layer, root=root, param="bias"), Site(module=bias.norm, root=root))
            for root, bias in biases(run)
        ]
        if found:
            layer, norm = found[0]
            others = [run.name(site) for site, _ in found]
            yield self.finding(
                Severity.ADVICE,
                message=f"{run.name(layer)} has no effect: the normalisation right after it "
                f"({run.name(norm)}) removes it",
                fix="bias=False  # in the layer before the normalisation",
                site=layer,
                step=0,
                evidence=Evidence(f"biases without effect, {len(others)} in all: {listed(others, 8)}"),
            )
