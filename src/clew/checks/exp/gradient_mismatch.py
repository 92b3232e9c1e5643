"""EXP042 gradient-mismatch

## What it detects
A gradient that is not the gradient of the loss. The user's own step is run in double precision; each
parameter is moved a little in a random direction, and the change of the loss is compared with the
gradient from `backward()`. Every custom `autograd.Function` is also tested alone, with the inputs that
it got.

## Why is this bad?
The optimizer follows the gradient. With a wrong one the loss still falls for a while, but ends far above
what is possible, without any error.

## How to fix
Derive the gradient in the named `backward` again, and test it: `torch.autograd.gradcheck(F.apply,
(x.double().requires_grad_(),))`. Better, leave it to autograd: write the forward with torch functions.

## Known problems
Gradients that are stopped or replaced on purpose (`detach`, a straight-through estimator, gradient
reversal, sampling) are not a mismatch: then only Functions with a smooth forward that is not the
identity are checked. Kinks and random numbers make the results of different step sizes disagree, and are
skipped.

## References
- PyTorch docs, torch.autograd.gradcheck.
- CS231n course notes, Gradient checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.run_view import RunView
from clew.records.facts.network_experiment_facts import (
    DerivativeComparison,
    FunctionGradient,
    GradientMismatchFact,
    ParameterGradient,
)
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

WRONG = "wrong"


@dataclass(frozen=True)
class GradientMismatch(Check):
    id = "EXP042"
    name = "gradient-mismatch"
    rank = 1420
    needs = (GradientMismatchFact,)
    confidence = "certain"

    groups = ("network-faults",)

    error: float = 1e-3  # relative, on which the step sizes agree; right gradients come to 1e-6

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(GradientMismatchFact) or GradientMismatchFact()
        functions = [f for f in found.functions if self._wrong(f)]
        judged = [f for f in functions if not f.meant]
        wrong = [w for w in found.wrong if self._wrong(w)]
        for function in judged:
            yield self._function(run, function, wrong)
        if not functions and not found.stops:
            for parameter in wrong[:1]:
                yield self._parameter(run, parameter, wrong)

    def _wrong(self, compared: DerivativeComparison) -> bool:
        return compared.verdict == WRONG and compared.error > self.error

    def _function(self, run: RunView, function: FunctionGradient, wrong: list[ParameterGradient]) -> Finding:
        name = function.name or "a Function"
        site = function.place.site
        used = f" It is used in {run.module_name(site)}." if site.module else ""
        return self.finding(
            Severity.ERROR,
            message=f"the backward of {name} is wrong: it does not return the derivative of its forward",
            fix=f"correct {name}.backward; torch.autograd.gradcheck({name}.apply, "
            "(x.double().requires_grad_(),)) shows when it is right",
            site=Site(site.module, name, site.file, site.line, root=site.root),
            step=0,
            evidence=[
                Evidence(f"in a random direction, {_numbers(function)}.{used}"),
                *(Evidence(f"the gradient of {_full(w)} is wrong too: {_numbers(w)}") for w in wrong[:3]),
            ],
        )

    def _parameter(
        self, run: RunView, parameter: ParameterGradient, wrong: list[ParameterGradient]
    ) -> Finding:
        site = Site(module=parameter.module, root=parameter.root, param=parameter.param)
        return self.finding(
            Severity.ERROR,
            message=f"backward() does not give the gradient of the loss for {run.name(site)}",
            fix="look for what autograd can't see between this parameter and the loss: values written in "
            "place through .data or numpy, hooks, or a custom backward",
            site=site,
            step=0,
            evidence=[Evidence(f"{_full(w)}: {_numbers(w)}") for w in wrong[:4]],
            confidence="likely",
        )

    def unjudged(self, run: RunView) -> str | None:
        found = run.outcome(GradientMismatchFact)
        if found is None or not any(map(self._wrong, found.wrong)):
            return None
        meant = [f for f in found.functions if self._wrong(f)]
        if meant:
            return f"{meant[0].name} has a custom gradient: {meant[0].meant}"
        if not found.stops:
            return None
        stop = found.stops[0]
        where = f" (line {stop.line})" if stop.line else ""
        return f"the step stops gradients itself: {stop.what}{where}"


def _numbers(compared: DerivativeComparison) -> str:
    return f"backward() gives a slope of {compared.autograd:.4g}, finite differences {compared.finite:.4g}"


def _full(parameter: ParameterGradient) -> str:
    return ".".join(name for name in (parameter.module, parameter.param) if name)
