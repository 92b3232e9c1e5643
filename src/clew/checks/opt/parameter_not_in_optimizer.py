"""OPT002 parameter-not-in-optimizer

## What it detects
Parameters that require gradients and get them, but are in no optimizer, in a model whose other
parameters are optimised; and whole models in training mode that get gradients while only another model
is optimised.

## Why is this bad?
Their gradients are computed and thrown away. The layers keep their random initial weights, and
the rest of the network has to learn around them.

## How to fix
Give all parameters to the optimizer, `torch.optim.Adam(model.parameters())`, and create it after the
last layer is added. For several modules: `[*encoder.parameters(), *decoder.parameters()]`. If they
should not be trained, set `requires_grad_(False)`: that also saves the time and memory of their
gradients.

## Known problems
Training only a new head on top of loaded weights is common and is not reported, though freezing
the loaded part would be cheaper. Parameters that the script updates itself look forgotten.

## References
- PyTorch docs, torch.optim: constructing an optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.parameter_holders import holders
from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records.facts.model_facts import ParameterRow, ParametersFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted
from clew.records.site import Site


@dataclass(frozen=True)
class ParameterNotInOptimizer(Check):
    id = "OPT002"
    name = "parameter-not-in-optimizer"
    needs = (ParametersFact,)
    confidence = "certain"

    groups = ("wiring-faults",)
    from_the_start = True
    # A model that was replaced, or is kept in a list, has parameters that no optimizer updates.
    caused_by = ("optimizer-stale", "module-not-registered")

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        some_root_is_optimised = any(p.optimised for p in run.parameters.values())
        for known in run.parameters.values():
            missing = [p for p in known.items if p.requires_grad and p.has_grad and p.optimizer is None]
            if missing and known.optimised:
                yield from self._forgotten(run, known, missing)
            elif missing and known.training and some_root_is_optimised:
                yield from self._forgotten_model(run, known, missing)

    def _forgotten(
        self, run: RunView, known: ParametersFact, missing: list[ParameterRow]
    ) -> Iterator[Finding]:
        missing = [p for p in missing if not (p.loaded and _has_new_part(known))]
        held = sum(p.optimizer is not None for p in known.items)
        verb, everything = "is" if held == 1 else "are", counted(len(known.items), "parameter")
        for module, items in holders(missing, known.items):
            site = Site(module=module, root=known.root, param=items[0].param if len(items) == 1 else None)
            yield self.finding(
                Severity.WARNING,
                message=f"{run.name(site)} gets gradients, but no optimizer updates "
                f"{'it' if len(items) == 1 else f'its {len(items)} parameters'}",
                fix=_fix(run),
                site=site,
                step=known.step,
                evidence=[
                    Evidence(f"not in an optimizer: {listed([p.name for p in items], 8)}"),
                    Evidence(f"{held} of {everything} {verb} in an optimizer{_made(run)}"),
                ],
            )

    def _forgotten_model(
        self, run: RunView, known: ParametersFact, missing: list[ParameterRow]
    ) -> Iterator[Finding]:
        if any(p.loaded for p in known.items):
            return
        site = Site(module="", root=known.root)
        yield self.finding(
            Severity.WARNING,
            message=f"{run.name(site)} gets gradients, but none of its {len(known.items)} parameters is in "
            "an optimizer: it was forgotten, or should stay random",
            fix=f"[*model.parameters(), *{known.root or 'other'}.parameters()]  # in the optimizer; "
            "or requires_grad_(False), if it should not be trained",
            site=site,
            step=known.step,
            evidence=Evidence(f"with gradients: {listed([p.name for p in missing], 8)}{_made(run)}"),
        )


def _has_new_part(known: ParametersFact) -> bool:
    """Loaded weights beside new, optimised ones: a head is trained on top, on purpose."""
    return any(p.optimizer is not None and not p.loaded for p in known.items)


def _fix(run: RunView) -> str:
    kind = run.optimizers[0].kind if run.optimizers else "SGD"
    return f"{kind}(model.parameters(), ...)  # all parameters, after the last layer is added"


def _made(run: RunView) -> str:
    places = [f"{o.kind} created at {o.file}:{o.line}" for o in run.optimizers if o.file]
    return f"; {listed(places, 2)}" if places else ""
