"""GRPH001 module-not-registered

## What it detects
Layers or parameters that a model uses and that get gradients, but that are stored where torch does not
see them (a plain list, tuple or dict), so that they are in no optimizer.

## Why is this bad?
`parameters()` does not contain them: they keep their random initial weights. They are also missing
from `state_dict()`, and do not follow `.to(device)`, `.train()` and `.eval()`.

## How to fix
Keep layers in `nn.ModuleList` or `nn.ModuleDict`, and parameters in `nn.ParameterList` or
`nn.ParameterDict`.

## Known problems
A frozen helper network that is kept in a list on purpose should have `requires_grad_(False)` or
run under `no_grad`; then it is not reported. Nor are parameters that an optimizer has.

## References
- PyTorch docs, torch.nn.ModuleList.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loop_facts import graphs, optimizer_uses
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records.facts.model_facts import GraphFact, UnregisteredRow
from clew.records.facts.run_facts import IdleFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted
from clew.records.site import Site

EMPTY = "optimizer got an empty parameter list"  # torch's words when nothing at all is registered


@dataclass(frozen=True)
class ModuleNotRegistered(Check):
    id = "GRPH001"
    name = "module-not-registered"
    withdrawal = "the optimizer has had them since then"
    needs = (any_of(GraphFact, IdleFact),)

    groups = ("wiring-faults",)
    from_the_start = True

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        yield from self._nothing_registered(run)
        if any(use.stepped for use in optimizer_uses(run)):
            for graph in graphs(run):
                for found in graph.unregistered:
                    if not found.held and found.with_grad:
                        yield self._finding(run, graph, found)

    def _finding(self, run: RunView, graph: GraphFact, found: UnregisteredRow) -> Finding:
        bare = found.within is None
        model = run.module_name(Site(module="", root=graph.root)) or "the model"
        within = Site(module=found.within or "", root=graph.root)
        what = counted(found.count, "parameter") if bare else f"a {found.kind}"
        owner = model if bare else run.module_name(within) or model
        return self.finding(
            Severity.WARNING,
            message=f"{owner} uses {what} that parameters() does not contain and no optimizer updates",
            fix="nn.ParameterList([...])  # instead of a plain list"
            if bare
            else "nn.ModuleList([...])  # instead of a plain list; nn.ModuleDict instead of a dict",
            site=Site(module=within.module, root=graph.root, file=found.file, line=found.line),
            step=graph.step,
            evidence=Evidence(f"have gradients, but are in no optimizer: {listed(found.parameters, 8)}"),
        )

    def _nothing_registered(self, run: RunView) -> Iterator[Finding]:
        for site in run.raised(EMPTY):
            yield self.finding(
                Severity.ERROR,
                message="the model has no parameters: its layers are in a plain list or dict, or "
                "were never created",
                fix="nn.ModuleList([...])  # instead of a plain list; nn.ModuleDict instead of a dict",
                site=site,
                step=0,
                evidence=Evidence(f"torch: {EMPTY}"),
            )
