"""EXP046 custom-layer-broken

## What it detects
A custom layer that breaks the rules for layers. Each module class that the user wrote is tested alone,
with the inputs it got. Reported are tensors in plain attributes that its output depends on, state that
`state_dict` does not restore, a gradient that disagrees with finite differences, and an output for one
sample that depends on the others.

## Why is this bad?
A tensor in a plain attribute is not trained, is not moved to a GPU with the model and is missing from
checkpoints: the loaded model differs from the saved one. With the other faults, a layer does not compute
what it seems to.

## How to fix
`self.scale = nn.Parameter(torch.ones(n))` for what is learned, `self.register_buffer("mean",
torch.zeros(n))` for what is not.

## Known problems
Attributes that hold something of the batch itself (a hidden state) are skipped. Gradients are not
checked where the code stops them itself, nor independence of samples where batch-leak has found none.

## References
- PyTorch docs, torch.nn.Module.register_buffer; torch.autograd.gradcheck.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import or_nan
from clew.checks.run_view import RunView
from clew.records.facts.network_experiment_facts import BatchLeakFact, CustomLayerBrokenFact, ModuleFault
from clew.records.finding import Evidence, Finding, Severity


@dataclass(frozen=True)
class CustomLayerBroken(Check):
    id = "EXP046"
    name = "custom-layer-broken"
    needs = (CustomLayerBrokenFact,)

    groups = ("network-faults",)
    caused_by = ("dimension-mixup", "batch-leak", "gradient-mismatch", "module-not-registered")

    error: float = 1e-3  # of a gradient, relative; right ones come to 1e-6
    effect: float = 1e-3  # of other samples, relative to the sample's own

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(CustomLayerBrokenFact) or CustomLayerBrokenFact()
        for fault in found.faults:
            result = self._describe(run, fault)
            if result is not None:
                severity, message, fix, evidence = result
                yield self.finding(
                    severity,
                    message=message,
                    fix=fix,
                    site=fault.place.site,
                    step=0,
                    evidence=Evidence(evidence),
                    confidence="certain" if severity is Severity.ERROR else None,
                )

    def _describe(self, run: RunView, fault: ModuleFault) -> tuple[Severity, str, str, str] | None:
        kind, what = fault.kind, fault.what
        if what == "plain":
            return _plain(fault)
        if what == "state_dict":
            return (
                Severity.WARNING,
                f"a copy of {kind} that loads its state_dict gives a different output",
                "keep everything that the output depends on in parameters and buffers",
                "the layer and its copy got the same input",
            )
        if what == "gradient" and or_nan(fault.error) > self.error:
            return (
                Severity.ERROR,
                f"the gradient of {kind} does not match its forward",
                "look for what autograd can't see in this forward: values changed in place, a custom "
                "backward",
                f"for {fault.of}, backward() gives a slope of {or_nan(fault.autograd):.4g}, "
                f"finite differences {or_nan(fault.finite):.4g}",
            )
        if what == "leak" and or_nan(fault.effect) > self.effect and _leaks_at_all(run):
            return (
                Severity.ERROR,
                f"{kind} mixes the samples of a batch",
                "keep the batch dimension out of its operations: x.transpose, dim=-1",
                "with all other samples replaced, a sample's output changes "
                f"{or_nan(fault.effect):.2g} times as much as when the sample itself is replaced",
            )
        return None


def _leaks_at_all(run: RunView) -> bool:
    """Whether samples mix in the model's output; within it they may: it can sort them and sort them back."""
    whole = run.outcome(BatchLeakFact)
    return whole is None or (whole.effect > 0 and not whole.meant)


def _plain(fault: ModuleFault) -> tuple[Severity, str, str, str]:
    kind, name, shape = fault.kind, fault.name, list(fault.shape or ())
    buffer = f'self.register_buffer("{name}", …)'
    seen = f"the output depends on self.{name}, of shape {shape}, which is in no parameter or buffer"
    if fault.use == "trained":
        text = f"self.{name} of {kind} requires a gradient but is not a parameter: no optimizer gets it"
        return Severity.ERROR, text, f"self.{name} = nn.Parameter(…)", seen
    if fault.use == "state":
        text = (
            f"self.{name} of {kind} changes in training but is a plain attribute: checkpoints do not "
            "contain it"
        )
        return Severity.WARNING, text, buffer, seen
    text = f"self.{name} of {kind} is a plain tensor: it is not moved to another device with the model"
    return Severity.ADVICE, text, f"{buffer[:-1]}, persistent=False)", seen
