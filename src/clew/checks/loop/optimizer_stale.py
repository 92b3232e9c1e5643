"""LOOP005 optimizer-stale

## What it detects
An optimizer that holds parameters which no model in use has, and which get no gradient, while a
model that is trained has parameters with gradients that no optimizer holds: the model (or a layer
of it) was replaced, copied or made anew after the optimizer was built.

## Why is this bad?
The optimizer updates the old object. The one that computes the loss never changes.

## How to fix
Build the optimizer after the model has its final form, and again whenever it is replaced. To
restore weights use `model.load_state_dict(...)`, which keeps the parameters the same objects.

## Known problems
Mixing an optimizer of parameters that wait for a later phase with others that are forgotten looks
the same; both are worth a look. Optimizers of bare tensors, as in style transfer, get gradients
and are not reported.

## References
- PyTorch docs, torch.optim: constructing an optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loop_facts import OptimizerUse, optimizer_uses
from clew.checks.evidence.parameter_holders import holders
from clew.checks.evidence.recorded_facts import Parameter, Parameters
from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class OptimizerStale(Check):
    id = "LOOP005"
    name = "optimizer-stale"
    withdrawal = "a model in use has come to hold the parameters since"
    needs = ("fact:optimizer_use", "fact:parameters")

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        forgotten = [
            (known, missing) for known in run.parameters.values() if (missing := _without_optimizer(known))
        ]
        if not forgotten:
            return
        for use in optimizer_uses(run):
            if use.stepped and use.outside and not use.outside_with_grad:
                yield self._finding(run, use, *max(forgotten, key=lambda pair: len(pair[1])))

    def _finding(
        self, run: RunView, use: OptimizerUse, known: Parameters, missing: list[Parameter]
    ) -> Finding:
        whole = use.outside == use.held
        model = run.module_name(Site(module="", root=known.root))
        groups = holders(missing, known.items)
        parts = listed([path or "parameters" for path, _ in groups])
        what = f"none of the {use.held} it holds is" if whole else f"{use.outside} of {use.held} are not"
        return self.finding(
            Severity.ERROR if whole else Severity.WARNING,
            message=f"{use.kind} updates parameters that no forward uses: {what} in {model}, and "
            f"its {parts} {'is' if len(groups) == 1 else 'are'} in no optimizer",
            fix=f"optimizer = {use.kind}(model.parameters(), ...)  # after the model was last replaced",
            site=Site(op="step", file=use.file, line=use.line),
            step=known.step,
            evidence=[
                Evidence(f"held and without a gradient: {use.outside} of {use.held}"),
                Evidence(f"with gradients and without an optimizer: {listed([p.name for p in missing], 8)}"),
            ],
        )


def _without_optimizer(known: Parameters) -> list[Parameter]:
    return [p for p in known.items if p.requires_grad and p.has_grad and p.optimizer is None]
