"""LOOP005 optimizer-stale

## What it detects
An optimizer whose parameters belong to no model in use and get no gradient, while the model that is
trained has parameters with gradients that are in no optimizer: the model (or one of its layers) was
replaced, copied or recreated after the optimizer was created.

## Why is this bad?
The optimizer updates the old object. The one that computes the loss never changes.

## How to fix
Create the optimizer after the model has its final form, and again whenever the model is replaced. To
restore weights use `model.load_state_dict(...)`, which keeps the same parameter objects.

## Known problems
An optimizer for a later phase, together with parameters that were forgotten, looks the same; check both.
Optimizers of plain tensors, as in style transfer, get gradients and are not reported.

## References
- PyTorch docs, torch.optim: constructing an optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loop_facts import optimizer_uses
from clew.checks.evidence.parameter_holders import holders
from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records.facts.model_facts import ParameterRow, ParametersFact
from clew.records.facts.step_facts import OptimizerUseFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class OptimizerStale(Check):
    id = "LOOP005"
    name = "optimizer-stale"
    withdrawal = "a model in use has had these parameters since then"
    needs = (
        OptimizerUseFact,
        ParametersFact,
    )

    groups = ("wiring-faults",)
    from_the_start = True

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
        self, run: RunView, use: OptimizerUseFact, known: ParametersFact, missing: list[ParameterRow]
    ) -> Finding:
        whole = use.outside == use.held
        model = run.module_name(Site(module="", root=known.root))
        groups = holders(missing, known.items)
        parts = listed([path or "parameters" for path, _ in groups])
        verb = "is" if use.outside == 1 else "are"
        what = f"none of its {use.held} is" if whole else f"{use.outside} of its {use.held} {verb} not"
        return self.finding(
            Severity.ERROR if whole else Severity.WARNING,
            message=f"{use.kind} updates parameters that no forward pass uses: {what} in {model}, whose "
            f"{parts} {'is' if len(groups) == 1 else 'are'} in no optimizer",
            fix=f"optimizer = {use.kind}(model.parameters(), ...)  # after the last time the model is "
            "replaced",
            site=Site(op="step", file=use.file, line=use.line),
            step=known.step,
            evidence=[
                Evidence(f"in the optimizer without a gradient: {use.outside} of {use.held}"),
                Evidence(f"with a gradient but in no optimizer: {listed([p.name for p in missing], 8)}"),
            ],
        )


def _without_optimizer(known: ParametersFact) -> list[ParameterRow]:
    return [p for p in known.items if p.requires_grad and p.has_grad and p.optimizer is None]
