"""PERF009 double-precision

## What it detects
Data or a network in float64 where float32 would do: batches that arrive in float64 and are converted in
every step, or a model whose parameters are float64.

## Why is this bad?
Every number takes twice the memory and twice the time to move, and processors do half as many operations
per second; most accelerators far fewer. NumPy uses float64 by default, so it is rarely intended.

## How to fix
Convert once, where the data is created: `data = data.astype(np.float32)`; keep the network in float32.
Use float64 only where you need the digits, such as a sum over millions of numbers.

## Known problems
Networks that need double precision exist (physics, gradient checks): ignore the check for them. The gain
is estimated from the measured speed of this machine.

## References
- PyTorch docs, torch.set_default_dtype.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.speed_gains import (
    Costs,
    Loading,
    WorthwhileGain,
    costs_of,
    expected,
    loadings,
    of_step,
    size,
    times,
)
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import ProfileFact
from clew.records.facts.model_facts import ModelFact
from clew.records.finding import Evidence, Finding
from clew.records.site import Site


@dataclass(frozen=True)
class DoublePrecision(Check):
    id = "PERF009"
    name = "double-precision"
    needs = (ProfileFact,)

    groups = ("loading-faults",)

    wide: float = 0.5  # share of the parameters in float64; with more, the model computes in it
    touched: float = 2.5  # how often the bytes of a batch are read or written because it is too wide
    gain: WorthwhileGain = field(default_factory=WorthwhileGain)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        costs = costs_of(run)
        if costs is None:
            return
        share, site = _double_share(run)
        if share >= self.wide:
            yield from self._model(costs, site)
        elif share == 0.0:
            for loading in loadings(run):
                yield from self._batches(costs, loading)

    def _model(self, costs: Costs, site: Site) -> Iterator[Finding]:
        """Float32 saves half of the time that the processor computes; the overhead stays."""
        timed = [m for m in costs.profile.modules if m.roof is not None]
        own = costs.detailed_scale * sum(m.self_forward + m.self_backward for m in timed)
        # The roof is that of float32, of which float64 reaches half at best.
        busy = 2 * sum((m.roof or 0.0) * (m.self_forward + m.self_backward) for m in timed)
        busy = min(busy / own, 1.0) if own > 0 else 0.0
        saved = 0.5 * busy * (costs["forward"] + costs["backward"])
        gain = costs.gain(saved)
        severity = self.gain.severity(gain)
        if severity is not None:
            yield self.finding(
                severity,
                message=f"the network computes in float64; in float32 a step would be about {times(gain)} "
                "as fast",
                fix="keep the model in float32 (no .double(), no float64 default), and the data too: "
                "data.astype(np.float32)",
                site=site,
                evidence=expected(gain, f"{of_step(saved, costs)} would be saved"),
            )

    def _batches(self, costs: Costs, loading: Loading) -> Iterator[Finding]:
        wide = [part for part in loading.seen.parts if part.dtype == "float64"]
        count = sum(part.bytes for part in wide)
        speed = costs.profile.roof.bytes if costs.profile.roof is not None else 0.0
        if not count or not speed > 0:
            return
        gain = costs.gain(self.touched * count * max(loading.seen.batches, 1.0) / speed)
        severity = self.gain.severity(gain)
        if severity is not None:
            yield self.finding(
                severity,
                message=f"batches arrive in float64 for a network in float32; a step would be about "
                f"{times(gain)} as fast with data in float32",
                fix="convert once, where the data is created: data = data.astype(np.float32)",
                site=loading.made,
                evidence=[
                    expected(gain, f"{size(count)} in every batch, half of it unnecessary"),
                    Evidence(f"float64 {wide[0].shape}"),
                ],
            )


def _double_share(run: RunView) -> tuple[float, Site]:
    """The share of the parameters in float64, and the first model that has any."""
    total = double = 0
    place = Site()
    for fact in run.known(ModelFact):
        for parameter in fact.parameters:
            total += parameter.numel
            if parameter.dtype in ("float64", "torch.float64"):
                double += parameter.numel
                place = place if place.root else Site("", root=fact.root)
    return (double / total if total else 0.0), place
