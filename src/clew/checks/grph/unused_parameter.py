"""GRPH003 unused-parameter

## What it detects
Layers that are registered in the model and are in the optimizer, but that no forward pass calls: they
never get a gradient. `clew show` reports parameters that one forward does not read.

## Why is this bad?
The model is smaller than it looks. Usually a layer was added to `__init__` and forgotten in `forward`,
or the wrong one is called twice. DistributedDataParallel stops with an error on such a model.

## How to fix
Call the layer in `forward`, or remove it.

## Known problems
Heads that are trained in a later phase are reported until then. Parameters of your own modules that are
used only on some inputs, layers of installed packages, and models with loaded weights (which often
include a head that is not needed) are mentioned as advice. So are, in `clew show`, parameters that the
code mentions elsewhere than in `forward`.

## References
- PyTorch docs, DistributedDataParallel: find_unused_parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loop_facts import graphs
from clew.checks.evidence.parameter_holders import holders, never_trained
from clew.checks.run_view import RunView
from clew.checks.wording import in_code, listed, too_few
from clew.records.facts.model_facts import GraphFact, ParameterRow, ParametersFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class UnusedParameter(Check):
    id = "GRPH003"
    name = "unused-parameter"
    needs = (
        GraphFact,
        ParametersFact,
    )
    on_one_forward = True

    caused_by = ("optimizer-stale", "module-not-registered", "detached-graph", "half-precision-underflow")

    steps: int = 16  # of the run; by then, layers that are used now and then have been used

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for graph in graphs(run):
            if run.steps < self.steps and not graph.forward_only:
                continue
            never = never_trained(run, graph.root, held=not graph.forward_only)
            idle = [never[name] for name in graph.idle if name in never]
            if idle and graph.reached:
                for module, items in holders(idle, run.parameters[graph.root].items):
                    yield self._finding(run, graph, module, items)

    def _finding(self, run: RunView, graph: GraphFact, module: str, items: list[ParameterRow]) -> Finding:
        known = run.parameters[graph.root]
        site = Site(module=module, root=graph.root, param=items[0].param if len(items) == 1 else None)
        layer = run.layer_of(Site(module=module, root=graph.root))
        whole = all(
            p in items for p in known.items if p.module == module or p.module.startswith(f"{module}.")
        )
        own = layer is not None and layer.file is not None and "site-packages" not in layer.file
        clear = bool(module) and whole and own and not any(p.loaded for p in known.items)
        clear = clear and not any(p.name in graph.named for p in items)
        why = "nothing in this forward reads it"
        if not graph.forward_only:
            why = "it is in the optimizer, but no forward pass calls it"
        return self.finding(
            Severity.WARNING if clear else Severity.ADVICE,
            message=f"{run.name(site)} is {'not' if graph.forward_only else 'never'} used: {why}",
            fix=f"x = {in_code(module, 'self')}(x)  # in forward; or remove the layer"
            if module and whole
            else "use it in forward, or remove it",
            site=site,
            step=known.step,
            evidence=Evidence(
                f"{'not read' if graph.forward_only else 'never a gradient'}: "
                f"{listed([p.name for p in items], 8)}"
            ),
        )

    def unjudged(self, run: RunView) -> str | None:
        if any(graph.forward_only for graph in graphs(run)):
            return None
        return too_few(run.steps, self.steps, "steps")
