"""EXP044 dimension-mixup

## What it detects
A model that confuses two dimensions: a sequence layer that gets the samples where it expects time,
positions that are counted along the batch, an output that does not follow the number of samples, or code
that works with only one batch size. It is tested with fewer samples, a prime number that occurs nowhere
else, and with the same samples in a different order.

## Why is this bad?
Where two sizes happen to be equal, nothing fails and nothing warns: an LSTM then reads the batch as a
sequence, and each sample remembers those before it. With a different size, as in the last batch of an
epoch, it fails, or broadcasts.

## How to fix
Say which dimension comes first: `nn.LSTM(…, batch_first=True)`, `nn.TransformerEncoderLayer(…,
batch_first=True)`; `out[:, -1]` for the last step of a sequence that has the samples first. Take sizes
from the input (`x.shape[0]`), not from constants.

## Known problems
Time-first data is not checked where it is unknown which dimension holds the samples. States carried over
from one batch to the next fix the batch size on purpose and are not reported.

## References
- PyTorch docs, torch.nn.LSTM: batch_first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import op_name
from clew.checks.run_view import RunView
from clew.records.facts.experiment_facts import NO_PLACE
from clew.records.facts.network_experiment_facts import DimensionMixupFact, ShapeFailure, StuckOutput
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class OtherSamplesExperiment:
    """What other samples, or another order of the same ones, must change in the output for a sample."""

    effect: float = 1e-3  # of the output; rounding in another order is ten times smaller

    def shows(self, found: DimensionMixupFact) -> bool:
        """Whether it changes."""
        return found.effect > self.effect


@dataclass(frozen=True)
class DimensionMixup(Check):
    id = "EXP044"
    name = "dimension-mixup"
    rank = 1440
    needs = (DimensionMixupFact,)

    groups = ("network-faults",)

    others: OtherSamplesExperiment = field(default_factory=OtherSamplesExperiment)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(DimensionMixupFact)
        if found is None:
            return
        site, shown = (found.place or NO_PLACE).site, self.others.shows(found)
        if found.time_first and shown:
            yield self._time_first(found, site)
        elif found.position and shown:
            yield self._position(run, found, site)
        elif found.stuck is not None:
            yield self._stuck(found, found.stuck)
        elif found.failed is not None:
            yield self._failed(found, found.failed, site)

    def _time_first(self, found: DimensionMixupFact, site: Site) -> Finding:
        layer = found.time_first
        return self.finding(
            Severity.ERROR,
            message=f"{layer} reads the samples as time steps: it expects time first, but gets the "
            "samples first",
            fix=f"nn.{layer}(…, batch_first=True)",
            site=site,
            step=0,
            evidence=Evidence(
                f"with all samples but one replaced, its output changes {found.effect:.2g} times as much as "
                "when the sample itself is replaced"
            ),
            confidence="certain",
        )

    def _position(self, run: RunView, found: DimensionMixupFact, site: Site) -> Finding:
        return self.finding(
            Severity.ERROR,
            message="the output for a sample depends on its position in the batch: "
            f"{op_name(run, site)} counts along the samples",
            fix="index positions by the time dimension: positions[: x.shape[1]] where the samples come first",
            site=site,
            step=0,
            evidence=Evidence(
                "the same samples in reverse order give different outputs: a relative difference of "
                f"{found.effect:.2g}"
            ),
            confidence="certain",
        )

    def _stuck(self, found: DimensionMixupFact, stuck: StuckOutput) -> Finding:
        few, full = found.tried, found.samples
        return self.finding(
            Severity.ERROR,
            message=f"the output does not follow the batch size: {full} rows for {full} samples, and "
            f"also for {few}",
            fix="out[:, -1] takes the last step where the samples come first; out[-1] takes the last sample",
            site=Site(root=stuck.model, module=""),
            step=0,
            evidence=Evidence(f"{few} samples give an output of shape {list(stuck.shape)}"),
        )

    def _failed(self, found: DimensionMixupFact, failed: ShapeFailure, site: Site) -> Finding:
        equal = found.equal
        also = ", a number that is also the size of another dimension" if equal else ""
        return self.finding(
            Severity.WARNING if equal else Severity.ADVICE,
            message=f"the step works only with {found.samples} samples{also}",
            fix="take sizes from the input: x.shape[0] for the number of samples",
            site=site,
            step=0,
            evidence=[
                Evidence(f"with {found.tried} samples: {failed.message}"),
                Evidence(f"in: {failed.code}"),
            ],
            confidence="likely" if equal else "possible",
        )
