"""MODE003 batch-size-unfit

## What it detects
Batch normalisation in training mode on batches of a single sample, and the crash that such a batch
causes where a channel has only one value.

## Why is this bad?
The statistics of one sample say nothing about the data: each sample is normalised by itself, its
own mean and scale are erased, and the running statistics that evaluation uses fit no sample well.

## How to fix
Larger batches; or a normalisation that does not look at the batch (GroupNorm, LayerNorm). If only
the last batch of an epoch has one sample: `DataLoader(..., drop_last=True)`. For fine-tuning on
single samples keep the batch-normalisation layers in evaluation mode.

## Known problems
Some image-to-image models use a batch of one with BatchNorm on purpose, as instance normalisation;
InstanceNorm says so and behaves alike in evaluation. Gradient accumulation does not help here: each
small batch is normalised by itself.

## References
- Ioffe & Szegedy 2015, Batch normalization.
- Wu & He 2018, Group normalization.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.api import Check
from clew.checks.facts import text, whole
from clew.checks.loop_facts import Graph, graphs
from clew.checks.view import RunView
from clew.checks.wording import counted, listed
from clew.records import Evidence, Finding, Severity, Site

ONE_VALUE = "Expected more than 1 value per channel when training"  # torch's words


@dataclass(frozen=True)
class BatchSizeUnfit(Check):
    id = "MODE003"
    name = "batch-size-unfit"
    needs = ("fact:graph|fact:idle",)

    steps: int = 10  # of training on single samples; fewer may be a trial

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for event in run.events("exception"):
            if ONE_VALUE in (text(event.data.get("message")) or ""):
                yield self._crash(text(event.data.get("user_file")), whole(event.data.get("user_line")))
        if run.steps >= self.steps:
            for graph in graphs(run):
                yield from self._single_samples(run, graph)

    def _crash(self, file: str | None, line: int | None) -> Finding:
        return self.finding(
            Severity.ERROR,
            message="batch normalisation got a single sample in training, of which it can't take a variance: "
            "most often the last batch of an epoch",
            fix="DataLoader(..., drop_last=True)",
            site=Site(file=file, line=line, phase="train"),
            evidence=Evidence(f"torch: {ONE_VALUE}"),
        )

    def _single_samples(self, run: RunView, graph: Graph) -> Iterator[Finding]:
        training = [n for n in graph.norms if n.training]
        if not training or any(n.samples != 1 for n in training):
            return
        first = training[0]
        yield self.finding(
            Severity.WARNING,
            message=f"batch normalisation sees one sample at a time in {counted(len(training), 'layer')}: "
            "its statistics are those of that sample",
            fix=f"nn.GroupNorm(groups, channels)  # instead of {first.kind}; or a larger batch_size",
            site=Site(module=first.path, root=graph.root),
            step=graph.step,
            evidence=[
                Evidence(f"in training mode with one sample: {listed([n.path for n in training], 8)}"),
                *(s.evidence("samples in a step") for _, s in list(run.series("batch.size"))[:1]),
            ],
        )

    def unjudged(self, run: RunView) -> str | None:
        return None if run.steps >= self.steps else f"needs {self.steps} steps, has {run.steps}"
