"""DATA017 augmentation-repeats

## What it detects
A training dataset whose `__getitem__` draws random numbers, but whose samples are bit-identical in every
epoch.

## Why is this bad?
Augmentation is meant to show each sample in many ways. If the random draw is always the same, or its
result was stored, the model sees the same distorted copy every time: the cost of augmentation without
the benefit.

## How to fix
Do not set a seed inside `__getitem__`, and do not cache augmented samples: store the raw samples and
augment on every access.

## Known problems
A random transform that does not change the input (it only picks another view for the target) looks the
same. Datasets whose augmentation is switched off are not reported.

## References
- PyTorch docs, Reproducibility: seed once, at the start of the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.data_feed import first_input, training_loaders
from clew.checks.run_view import RunView
from clew.records import signals
from clew.records.facts.step_facts import LoaderFact
from clew.records.finding import Finding, Severity


@dataclass(frozen=True)
class AugmentationRepeats(Check):
    id = "DATA017"
    name = "augmentation-repeats"
    needs = (
        signals.SAMPLE_SEEN,
        LoaderFact,
    )

    caused_by = ("labels-misaligned",)

    seen: float = 0.999  # share of a batch that repeats earlier samples exactly; random flips give 0.5
    batches: int = 5  # batches after the first epoch, all of which must show it
    distinct: float = 0.99  # share of samples in a batch that differ; copies would repeat anyway

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for loader in training_loaders(run):
            if not loader.random or not loader.length or not loader.batch_size:
                continue
            for site, series in run.series(signals.SAMPLE_SEEN, "train"):
                later = series.since(_epoch_end(run, loader.length))
                distinct = run.at_site(signals.SAMPLE_DISTINCT, first_input(site.root))
                if distinct is None or distinct.median < self.distinct or len(later) < self.batches:
                    continue
                if len(set(series.steps.tolist())) < len(series):
                    continue  # pairs and triplets: what is drawn is which samples meet
                if later.min >= self.seen:
                    yield self.finding(
                        Severity.WARNING,
                        message=f"{loader.dataset} draws random numbers, but its samples come back "
                        "bit-identical in every epoch: the augmentation repeats",
                        fix="remove the seed from __getitem__ (np.random.seed, manual_seed, default_rng(0)), "
                        "and augment on every access",
                        site=loader.site,
                        step=int(later.steps[0]),
                        evidence=later.evidence("share of samples that are bit-identical to earlier ones"),
                    )
                    return


def _epoch_end(run: RunView, length: int) -> int:
    """The first step after all samples of the loader have been seen once."""
    for _, sizes in run.series(signals.BATCH_SIZE):
        total = sizes.values.cumsum()
        return int(sizes.steps[min(int((total < length).sum()) + 1, len(sizes) - 1)])
    return 0
