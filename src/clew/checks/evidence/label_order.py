"""The order of the labels: mixed, sorted, or one class per batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.evidence.data_feed import class_counts
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records import signals
from clew.records.site import Site


@dataclass(frozen=True)
class LabelOrder:
    """What the labels of one loss call look like, batch by batch."""

    site: Site
    switches: Series  # share of neighbours in a batch that differ
    top: Series  # share of the most frequent class in a batch
    first: Series  # label of the batch's first sample
    count: Series
    classes: int  # over all batches
    by_chance: float  # share of neighbours that would differ in a random order
    top_overall: float  # share of the most frequent class over all batches

    @property
    def samples(self) -> int:
        return len(self.switches)

    @property
    def mixing(self) -> float:
        """Differing neighbours over those of a random order: about 1 if shuffled, 0 if sorted."""
        return self.switches.median / self.by_chance if self.by_chance > 0 else float("nan")

    @property
    def lumping(self) -> float:
        """How uneven batches are: 0 if each is a fair mixture of classes, 1 if each has only one class."""
        rest = 1 - self.top_overall
        return (self.top.median - self.top_overall) / rest if rest > 0 else 0.0

    @property
    def single_share(self) -> float:
        """Share of the batches that contain only one class."""
        return self.top.share_above(0.999)  # exactly 1, but for rounding

    @property
    def runs(self) -> float:
        """How often a batch begins with the class of the batch before it: 0 by chance, 1 if sorted."""
        follow = np.diff(self.first.steps) == 1
        same = (np.diff(self.first.values) == 0)[follow]
        by_chance = 1 - self.by_chance
        if not len(same) or by_chance >= 1:
            return float("nan")
        return (float(same.mean()) - by_chance) / (1 - by_chance)


def label_orders(run: RunView) -> Iterator[LabelOrder]:
    """The order of labels at every loss call that has classes, one label a sample."""
    for site, switches in run.series(signals.LABEL_SWITCHES, "train"):
        counts = class_counts(run, site)
        top, first = run.at_site(signals.LABEL_TOP_SHARE, site), run.at_site(signals.LABEL_FIRST, site)
        count = run.at_site(signals.LABEL_COUNT, site)
        if not counts or top is None or first is None or count is None or not has_several_batches(run):
            continue
        last = counts[-1]
        yield LabelOrder(
            site=site,
            switches=switches.finite(),
            top=top,
            first=first,
            count=count,
            classes=len(last.counts),
            by_chance=1 - last.collision,
            top_overall=max(last.shares.values(), default=1.0),
        )


def has_several_batches(run: RunView) -> bool:
    """Whether there is more than one batch: otherwise the order means nothing."""
    hashes = [s for _, s in run.series(signals.BATCH_HASH, "train")]
    return any(len(np.unique(s.finite().values)) > 1 for s in hashes)
