"""EXP047 device-literal

## What it detects
A tensor that a forward creates on a fixed device or with a fixed dtype, or that a module keeps as a
plain attribute, which `.to()` does not move. The model and its inputs are put on torch's meta device,
where nothing is computed: a tensor that stays on the CPU then fails as it would on a GPU. The model is
also run in float64.

## Why is this bad?
The program works until it is moved: to a GPU, to several of them, or to another precision. There it
fails in the middle of a run, or copies data in every step.

## How to fix
Create new tensors like the inputs: `torch.arange(n, device=x.device)`, `x.new_zeros(n)`,
`torch.zeros_like(x)`; keep constants in buffers: `self.register_buffer("scale", scale)`.

## Known problems
Only code that runs in the tested forward is seen. A scalar may be on any device and is not reported.

## References
- PyTorch docs, CUDA semantics: device-agnostic code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import op_name
from clew.checks.run_view import RunView
from clew.records.facts.network_experiment_facts import CpuTensor, DeviceLiteralFact, FixedDtype
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class DeviceLiteral(Check):
    id = "EXP047"
    name = "device-literal"
    needs = (DeviceLiteralFact,)
    on_one_forward = True

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(DeviceLiteralFact) or DeviceLiteralFact()
        if found.device is not None:
            yield self._device(run, found.device)
        if found.dtype is not None:
            yield self._dtype(found.dtype)

    def _device(self, run: RunView, tensor: CpuTensor) -> Finding:
        site = tensor.site
        if tensor.held:
            return self._held(run, site, tensor.held)
        return self.finding(
            Severity.ADVICE,
            message=f"on a GPU this forward would fail: {op_name(run, site)} creates its tensor on the CPU",
            fix="give it the device of an input: device=x.device",
            site=site,
            step=0,
            evidence=Evidence("with the model on the meta device, this tensor stays on the CPU"),
            confidence="certain",
        )

    def _held(self, run: RunView, site: Site, name: str) -> Finding:
        owner = run.name(Site(module=site.module, root=site.root)) if site.module else "the model"
        return self.finding(
            Severity.ADVICE,
            message=f"on a GPU this forward would fail: {name} of {owner} is a plain tensor, "
            "which .to() does not move",
            fix=f'self.register_buffer("{name}", …)  # moves with the model; persistent=False to not save it',
            site=site,
            step=0,
            evidence=Evidence("with the model on the meta device, this tensor stays on the CPU"),
            confidence="certain",
        )

    def _dtype(self, place: FixedDtype) -> Finding:
        return self.finding(
            Severity.ADVICE,
            message="the forward works only in single precision: one of its tensors has a fixed dtype",
            fix="use the dtype of an input: dtype=x.dtype, or x.new_zeros(…)",
            site=place.site,
            step=0,
            evidence=Evidence(f"in float64: {place.message}"),
        )
