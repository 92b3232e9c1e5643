"""DATA004 repeated-batch

## What it detects
The same batch, bit-identical, step after step, although the program has more data: the loader is asked
for a batch in every step, or the batch is sliced from a larger tensor in every step.

## Why is this bad?
The model memorises a handful of samples. The training loss falls as it should, but nothing else
improves.

## How to fix
Iterate over the loader: `for x, y in loader:`. `next(iter(loader))` starts over each time, and without
shuffling always returns the first batch. In a hand-written loop, use the loop's index in the slice.

## Known problems
Training on one batch that is fetched once, to see whether the model can memorise it, is a sound
experiment: if the loader has more data, it is mentioned as advice. A program whose data is a single
batch is not reported.

## References
- PyTorch docs, torch.utils.data.DataLoader: each `iter()` call starts a new epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.data_feed import feeding_site, first_input, training_loaders
from clew.checks.evidence.loop_facts import patterns
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.step_facts import LoaderFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class RepeatedBatch(Check):
    id = "DATA004"
    name = "repeated-batch"
    needs = (signals.BATCH_HASH,)

    groups = ("data-faults",)
    caused_by = ("constant-input",)

    samples: int = 10  # sampled batches in a row, to the end, that must be the same
    fetched: float = 0.9  # share of the steps in which a batch was requested
    larger: float = 4.0  # rows of the tensor that batches are cut from, over rows of the batch

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site, hashes in run.series(signals.BATCH_HASH, "train"):
            recent = hashes.last(self.samples)
            same = len(recent) == self.samples and (recent.values == recent.values[0]).all()
            if not same or len(set(hashes.values.tolist())) > 1 or not _nothing_new(run, site):
                continue
            found = self._from_loader(run, site, hashes) or self._from_slice(run, site, hashes)
            if found is not None:
                yield found

    def _from_loader(self, run: RunView, site: Site, hashes: Series) -> Finding | None:
        loader = next((x for x in training_loaders(run, site.root) if x.has_several_batches), None)
        if loader is None:
            return None
        asked = _share_of_steps_with_a_batch(run, int(hashes.steps[0]), int(hashes.steps[-1]))
        every_step = asked >= self.fetched
        of = f"the loader has {loader.length} samples"
        return self.finding(
            Severity.WARNING if every_step else Severity.ADVICE,
            message=f"all {len(hashes)} sampled batches are identical, although {of}",
            fix=_fix(loader),
            site=loader.site,
            step=int(hashes.steps[0]),
            evidence=[
                hashes.evidence("content hash of the batch: always the same"),
                Evidence(
                    f"a batch was requested in {asked:.0%} of the steps; batch size {loader.batch_size}"
                ),
            ],
        )

    def _from_slice(self, run: RunView, site: Site, hashes: Series) -> Finding | None:
        at_input = first_input(site.root)
        sliced = run.at_site(signals.SAMPLE_SLICED, at_input)
        count = run.at_site(signals.SAMPLE_COUNT, at_input)
        if sliced is None or count is None or len(sliced) < self.samples:
            return None
        if sliced.skip(1).min < self.larger * count.max:
            return None
        rows, batch = int(sliced.median), int(count.median)
        return self.finding(
            Severity.WARNING,
            message=f"every step trains on the same {batch} of {rows} rows",
            fix="start = (step * batch_size) % len(x); batch = x[start : start + batch_size]",
            site=feeding_site(run, site),
            step=int(hashes.steps[0]),
            evidence=hashes.evidence("content hash of the batch: always the same"),
        )

    def unjudged(self, run: RunView) -> str | None:
        return too_few(run.longest(signals.BATCH_HASH, "train"), self.samples, "sampled batches")


def _nothing_new(run: RunView, site: Site) -> bool:
    """Whether all arguments of the model, not only the first, were seen before."""
    seen = run.at_site(signals.SAMPLE_SEEN, first_input(site.root))
    return seen is not None and len(seen) > 1 and seen.skip(1).min == 1.0


def _share_of_steps_with_a_batch(run: RunView, first: int, last: int) -> float:
    """The share of the steps from `first` to `last` in which a loader was asked for a batch."""
    for _, series in run.series(signals.EVENTS_PATTERN):
        known = [patterns(run).get(int(v), "") for v in series.since(first).before(last + 1).finite().values]
        return sum("d" in pattern for pattern in known) / len(known) if known else 0.0
    return 0.0


def _fix(loader: LoaderFact) -> str:
    name = loader.names[0] if loader.names else "loader"
    return f"for x, y in {name}:  # instead of next(iter({name})), which starts over each time"
