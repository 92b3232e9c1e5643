"""MODE003 batch-size-unfit

## What it detects
Batch normalisation in training mode on batches of a single sample, and the crash that such a batch
causes where a channel has only one value. `clew check` also measures the gradient noise scale, at the
start and within a short training: the batch size at which the gradient is as much signal as noise. A
batch that is many times smaller or larger gets advice.

## Why is this bad?
The statistics of one sample say nothing about the data: each sample is normalised by itself, its own
mean and scale are erased, and the running statistics that evaluation uses match no sample well.

## How to fix
Use larger batches; or a normalisation that does not depend on the batch (GroupNorm, LayerNorm). If only
the last batch of an epoch has one sample: `DataLoader(..., drop_last=True)`. For fine-tuning on
single samples keep the batch-normalisation layers in evaluation mode.

## Known problems
Some image-to-image models use a batch of one with BatchNorm on purpose, as instance normalisation;
InstanceNorm states that and behaves the same in evaluation. Gradient accumulation does not help here:
each small batch is normalised by itself. The noise scale grows during training; a batch that looks large
at first may be right later, so only a factor of a hundred is reported.

## References
- McCandlish et al. 2018, An empirical model of large-batch training.
- Ioffe & Szegedy 2015, Batch normalization.
- Wu & He 2018, Group normalization.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, why_not
from clew.checks.evidence.loop_facts import graphs
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import listed, too_few
from clew.records import signals
from clew.records.facts.learning_experiment_facts import BatchSizeUnfitFact
from clew.records.facts.model_facts import GraphFact
from clew.records.facts.run_facts import IdleFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted
from clew.records.site import Site

ONE_VALUE = "Expected more than 1 value per channel when training"  # torch's words


@dataclass(frozen=True)
class BatchSizeUnfit(Check):
    id = "MODE003"
    name = "batch-size-unfit"
    needs = (any_of(GraphFact, IdleFact, BatchSizeUnfitFact),)

    steps: int = 10  # of training on single samples; fewer may be a test run
    noisy: float = 10.0  # lower bound of the noise scale, in batches; below it, each step has some signal
    wasteful: float = 100.0  # batch in units of the noise scale's upper bound, which may grow later
    large: int = 1024  # samples; a smaller batch takes little more time than a few samples would

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site in run.raised(ONE_VALUE):
            yield self._crash(site)
        if run.steps >= self.steps:
            for graph in graphs(run):
                yield from self._single_samples(run, graph)
        yield from self._by_noise(run)

    def _by_noise(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(BatchSizeUnfitFact)
        if found is None or found.batch < 1 or len(found.points) < 2:
            return
        size, points = found.batch, found.points
        least, most = min(p.least for p in points), max(p.most for p in points)
        if math.isnan(least + most):
            return
        if least > self.noisy * size:
            words = (
                f"batches of {size:.0f} are nearly all noise: the gradient noise scale is at least "
                f"{least:.2g} samples"
            )
            fix = f"batch_size={2 ** math.ceil(math.log2(4 * size)):.0f} or more, or accumulate gradients"
        elif size >= self.large and max(most, 1.0) * self.wasteful < size:
            words = (
                f"batches of {size:.0f} are larger than necessary: beyond the gradient noise scale of at "
                f"most {max(most, 1.0):.2g} samples the gradient hardly changes"
            )
            fix = f"batch_size={2 ** math.ceil(math.log2(max(10 * most, 64))):.0f}, and more steps"
        else:
            return
        text = f"gradients of {found.compared} batches were compared {len(points)} times in a short training"
        yield self.finding(
            Severity.ADVICE,
            message=words,
            fix=fix,
            site=found.line.site,
            step=0,
            evidence=[*curve(run, self.name), Evidence(text)],
            confidence="possible",
        )

    def _crash(self, site: Site) -> Finding:
        return self.finding(
            Severity.ERROR,
            message="batch normalisation got a single sample in training and can't compute a variance: "
            "usually the last batch of an epoch",
            fix="DataLoader(..., drop_last=True)",
            site=replace(site, phase="train"),
            evidence=Evidence(f"torch: {ONE_VALUE}"),
        )

    def _single_samples(self, run: RunView, graph: GraphFact) -> Iterator[Finding]:
        training = [n for n in graph.norms if n.training]
        if not training or any(n.samples != 1 for n in training):
            return
        first = training[0]
        yield self.finding(
            Severity.WARNING,
            message=f"batch normalisation sees one sample at a time in {counted(len(training), 'layer')}: "
            "its mean and variance are those of that sample",
            fix=f"nn.GroupNorm(groups, channels)  # instead of {first.kind}; or a larger batch_size",
            site=Site(module=first.path, root=graph.root),
            step=graph.step,
            evidence=[
                Evidence(f"in training mode with one sample: {listed([n.path for n in training], 8)}"),
                *(s.evidence("samples in a step") for _, s in list(run.series(signals.BATCH_SIZE))[:1]),
            ],
        )

    def unjudged(self, run: RunView) -> str | None:
        if run.has(BatchSizeUnfitFact):
            return why_not(run, self.name)
        return too_few(run.steps, self.steps, "steps")
