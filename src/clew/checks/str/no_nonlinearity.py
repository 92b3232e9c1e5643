"""STR001 no-nonlinearity

## What it detects
Two linear layers, or two convolutions of the same kernel, with nothing but dropout, reshaping or batch
normalisation between them: the second gets exactly the output of the first, and nothing else uses it.
The check looks at the forward pass, so it sees an activation that is called as a function.

## Why is this bad?
A linear map of a linear map is a linear map: the two layers together can do no more than one of
them, and a network of such layers alone is linear regression with many parameters. Most often the
activation function was forgotten.

## How to fix
Put an activation function between the two, `nn.ReLU()` or `nn.GELU()`, or call one in `forward`.
If you want one linear map, keep one layer.

## Known problems
A layer that is narrower than both its neighbours is a low-rank factorisation (LoRA, the code of
an autoencoder, linear bottlenecks) and is not reported; nor are grouped and depthwise
convolutions, pairs of different kernels, and outputs that are used in a second place.

## References
- Goodfellow, Bengio and Courville, Deep Learning, 2016, section 6.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.layer_pairs import pairs
from clew.checks.run_view import RunView
from clew.checks.wording import in_code, listed
from clew.records.facts.model_facts import LayerPair, StructureFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class NoNonlinearity(Check):
    id = "STR001"
    name = "no-nonlinearity"
    needs = (StructureFact,)
    on_one_forward = True

    groups = ("layer-faults",)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = [(root, pair) for root, pair in pairs(run) if _collapses(pair)]
        for root, pair in sorted(found, key=lambda hit: run.depth(Site(module=hit[1].first, root=hit[0]))):
            yield self._finding(run, root, pair)

    def _finding(self, run: RunView, root: str, pair: LayerPair) -> Finding:
        first, then = (Site(module=path, root=root) for path in (pair.first, pair.then))
        a, b, c = pair.widths
        between = f" (only {listed(pair.through)})" if pair.through else ""
        return self.finding(
            Severity.WARNING,
            message=f"there is no activation function between {run.name(first)} and {run.name(then)}"
            f"{between}: the two layers can do no more than one",
            fix="add nn.ReLU() between them"
            if pair.first.rpartition(".")[2].isdigit()  # in a Sequential, as a rule
            else f"x = torch.relu({in_code(pair.first, 'self')}(x))  # before {run.name(then)}",
            site=first,
            step=0,
            evidence=Evidence(
                f"{pair.kinds[0]} from {a} to {b} goes straight into {pair.kinds[1]} from {b} to {c}: "
                f"the same as a single {pair.kinds[0]} from {a} to {c}"
            ),
        )


def _collapses(pair: LayerPair) -> bool:
    """Whether one layer could do what both do: same kind, and no bottleneck between."""
    if len(pair.widths) != 3 or len(pair.kinds) != 2 or pair.grouped:
        return False
    if pair.kinds[0] != pair.kinds[1] or len(set(pair.kernels)) > 1:
        return False
    before, between, after = pair.widths
    return between >= min(before, after)
