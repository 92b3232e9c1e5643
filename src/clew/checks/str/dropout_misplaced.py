"""STR003 dropout-misplaced

## What it detects
Dropout whose output goes straight into a batch normalisation or into the loss, or that drops nine tenths
of the values or more.

## Why is this bad?
Dropout is off in evaluation. A batch normalisation after it has learned a variance of its input that is
1/(1-p) times the one in evaluation. Before the loss, dropout replaces predictions by random zeros, which
no training can correct. And a layer that loses nine tenths of its values can hardly learn anything;
often the number was meant as the probability of keeping a value.

## How to fix
Dropout belongs after the activation of a hidden layer and after its normalisation: layer,
normalisation, activation, dropout. Remove it from the output. Use p between 0.1 and 0.5.

## Known problems
Wide residual networks use dropout before a batch normalisation on purpose; below p = 0.5 that is only
advice. A hand-written loss is not recognised.

## References
- Li et al., Understanding the disharmony between dropout and batch normalization, 2019.
- Srivastava et al., Dropout, 2014.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.layer_pairs import dropouts
from clew.checks.run_view import RunView
from clew.records.facts.model_facts import DropoutRow, StructureFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class DropoutMisplaced(Check):
    id = "STR003"
    name = "dropout-misplaced"
    needs = (StructureFact,)
    on_one_forward = True

    groups = ("layer-faults",)

    most: float = 0.9  # probability to drop; papers use 0.1 to 0.5, rarely 0.8 on wide layers
    shift: float = 2.0  # variance in training over that in evaluation, 1/(1-p); 2: outputs are 30% too small

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for root, dropout in dropouts(run):
            site = _site(root, dropout)
            if dropout.loss:
                yield self._into_loss(run, site, dropout)
            elif dropout.p >= self.most:
                yield self._too_much(run, site, dropout)
            elif dropout.norm is not None:
                yield self._before_norm(run, site, dropout)

    def _into_loss(self, run: RunView, site: Site, dropout: DropoutRow) -> Finding:
        return self._finding(
            site,
            dropout,
            Severity.WARNING,
            f"{run.name(site)} drops {dropout.p:.0%} of the predictions themselves: its output goes "
            "straight into the loss",
            "remove the dropout from the output; it belongs between hidden layers",
        )

    def _too_much(self, run: RunView, site: Site, dropout: DropoutRow) -> Finding:
        return self._finding(
            site,
            dropout,
            Severity.ERROR if dropout.p >= 1 else Severity.WARNING,
            f"{run.name(site)} drops {dropout.p:.0%} of its input: p is the probability of dropping a value, "
            "not of keeping it",
            f"nn.Dropout({min(max(1 - dropout.p, 0.1), 0.5):.2g})  # instead of {dropout.p:.3g}",
        )

    def _before_norm(self, run: RunView, site: Site, dropout: DropoutRow) -> Finding:
        spread = 1 / (1 - dropout.p)
        norm = run.name(Site(module=dropout.norm, root=site.root))
        return self._finding(
            site,
            dropout,
            Severity.WARNING if spread >= self.shift else Severity.ADVICE,
            f"{run.name(site)} drops values right before the normalisation {norm}, which learns a variance "
            f"{spread:.1f} times that of evaluation, where nothing is dropped",
            "put the dropout after the normalisation and the activation",
        )

    def _finding(
        self, site: Site, dropout: DropoutRow, severity: Severity, message: str, fix: str
    ) -> Finding:
        return self.finding(
            severity,
            message=message,
            fix=fix,
            site=site,
            step=0,
            evidence=Evidence(f"seen in the forward pass: p = {dropout.p:.3g}"),
        )


def _site(root: str, dropout: DropoutRow) -> Site:
    if dropout.module:
        return Site(module=dropout.path, root=root)
    module = dropout.path.rpartition(".")[0]
    return Site(module=module, op="dropout", file=dropout.file, line=dropout.line, root=root)
