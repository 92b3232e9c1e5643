"""DATA011 train-val-leakage

## What it detects
Evaluation samples that are bit-identical to training samples: part of a validation set, or all of the
data that the program calls validation or test data. `clew data` compares the datasets themselves, and
finds near copies too: an image that was saved again, a text with a few words changed.

## Why is this bad?
The score on training samples measures how well the model has memorised them. It looks fine while the
model fails on new data.

## How to fix
Split once, before you repeat or augment samples, and take both parts from the same permutation: `train,
val = random_split(data, [0.8, 0.2])`. Records of one person, place or file belong on one side.

## Known problems
Evaluating on the training data itself, to compare the two scores, is not a leak: if the program does not
call it validation or test data and training has seen all of it, it is not reported. Data in which
samples repeat by nature is not checked.

## References
- Kaufman et al., Leakage in data mining, 2012.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.evidence.data_feed import (
    first_input,
    says_training,
    says_validation,
    source_site,
    sources,
    training_loaders,
)
from clew.checks.evidence.survey_facts import between, by_nature, exhibits, place_of
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records import signals
from clew.records.dataset_survey import Between
from clew.records.facts.document_facts import SurveyFact
from clew.records.facts.step_facts import FedFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

COLUMNS = (signals.EVAL_SOURCE, signals.EVAL_SAMPLES, signals.EVAL_SEEN, signals.EVAL_KNOWN)


@dataclass(frozen=True)
class Overlap:
    """How much of an evaluation source training has seen."""

    source: FedFact
    step: int
    samples: int
    seen: int
    coverage: float  # share of the training data that was compared

    @property
    def share(self) -> float:
        return self.seen / self.samples if self.samples else 0.0

    @property
    def estimate(self) -> float:
        """What the share would be if all training samples had been compared."""
        return min(self.share / self.coverage, 1.0) if self.coverage else 0.0


@dataclass(frozen=True)
class TrainValLeakage(Check):
    id = "DATA011"
    name = "train-val-leakage"
    needs = (any_of(signals.EVAL_SEEN, SurveyFact),)

    # Copies that a random split puts on both sides.
    caused_by = ("duplicate-samples",)

    share: float = 0.05  # share of the evaluated samples that training has seen; chance gives none
    seen: int = 8  # samples that training has seen; fewer may be accidents
    whole: float = 0.9  # share; with more, it is the training data itself, which may be intended
    copies: float = 0.01  # share of copies within a training batch; with more, samples repeat by nature
    natural: float = 100.0  # copies in `clew data` over those that chance would make; the same with fewer

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = list(self._recorded(run))
        yield from found or self._surveyed(run)

    def _recorded(self, run: RunView) -> Iterator[Finding]:
        """In the batches that were trained on."""
        for overlap in _overlaps(run):
            source = overlap.source
            if overlap.share < self.share or overlap.seen < self.seen or says_training(source.names):
                continue
            if overlap.estimate >= self.whole and not says_validation(source.names):
                continue
            if not self._repeats_by_nature(run, source.root):
                yield self._finding(run, overlap)

    def _surveyed(self, run: RunView) -> Iterator[Finding]:
        for pair in between(run):
            known = pair.exact.copies if not pair.same_dataset else pair.shared
            exact = (
                pair.exact.share >= self.share
                and known >= self.seen
                and not by_nature(pair.exact, self.natural)
            )
            if says_training((pair.second,)):
                continue
            if pair.same_dataset or (exact and pair.exact.share >= self.whole):
                if says_validation((pair.second,)):
                    yield self._pair(pair, known, ": it is the training data", "exact")
            elif exact or pair.shared >= self.seen:
                yield self._pair(pair, max(known, pair.shared), "", "exact")
            elif self._is_near(pair):
                yield self._pair(pair, pair.near.copies, "", "near")

    def _is_near(self, pair: Between) -> bool:
        return pair.near.share >= self.share and pair.near.copies >= self.seen

    def _pair(self, pair: Between, known: int, also: str, about: str) -> Finding:
        copies = pair.near if about == "near" else pair.exact
        are = "are nearly the same as samples of" if about == "near" else "are also in"
        text = listed([f"{p.second} ({p.first})" for p in copies.pairs], 6)
        return self.finding(
            Severity.WARNING,
            message=f"{known:,} samples of {pair.second} {are} {pair.first}{also}",
            fix="train, val = torch.utils.data.random_split(dataset, [0.8, 0.2])  # one split for both"
            if pair.shared or pair.same_dataset
            else "split by file, person or time before you cut, copy or augment samples; drop copies first",
            site=place_of(pair),
            step=0,
            evidence=[
                Evidence(
                    f"{copies.compared:,} samples of {pair.second} were compared with {pair.coverage:.0%} of "
                    f"{pair.first}" + (f"; by index, in brackets there: {text}" if text else "")
                )
            ],
            confidence="likely" if about == "near" else "certain",
            exhibits=exhibits(pair, about),
        )

    def _repeats_by_nature(self, run: RunView, root: str) -> bool:
        distinct = run.at_site(signals.SAMPLE_DISTINCT, first_input(root))
        return distinct is None or distinct.median < 1 - self.copies

    def _finding(self, run: RunView, overlap: Overlap) -> Finding:
        name = next((n for n in overlap.source.names if says_validation((n,))), None)
        called = f"the evaluation data ({name})" if name else "the evaluation data"
        whole = overlap.estimate >= self.whole
        return self.finding(
            Severity.WARNING,
            message=f"{overlap.seen} of {overlap.samples} samples of {called} were used in training"
            + (": it is the training data" if whole else ""),
            fix="train, val = torch.utils.data.random_split(dataset, [0.8, 0.2])  # one split for both",
            site=source_site(run, overlap.source),
            step=overlap.step,
            evidence=Evidence(
                f"compared with {overlap.coverage:.0%} of the training samples, bit by bit",
                signal=signals.EVAL_SEEN.name,
                steps=(overlap.step,),
                values=(float(overlap.seen),),
            ),
        )


def _overlaps(run: RunView) -> Iterator[Overlap]:
    """The section of each source that was most fully compared."""
    for source in sources(run):
        site = Site("", phase="eval", root=source.root)
        columns = [run.at_site(signal, site) for signal in COLUMNS]
        if any(c is None for c in columns):
            continue
        numbers, samples, seen, known = (c.values for c in columns if c is not None)
        steps = columns[0].steps if columns[0] is not None else np.array([])
        if not len(numbers) == len(samples) == len(seen) == len(known):
            continue
        sections = [
            Overlap(
                source,
                int(step),
                int(samples[mask].sum()),
                int(seen[mask].sum()),
                _coverage(run, source.root, float(known[mask].max())),
            )
            for step in np.unique(steps[numbers == source.source])
            for mask in [(steps == step) & (numbers == source.source)]
            if np.isfinite(samples[mask]).all() and np.isfinite(seen[mask]).all()
        ]
        if sections:
            yield max(sections, key=lambda o: (o.seen, o.samples, -o.step))


def _coverage(run: RunView, root: str, known: float) -> float:
    """Share of the training data that was compared; 1 if its size is not known."""
    lengths = [loader.length for loader in training_loaders(run, root) if loader.length]
    if not np.isfinite(known):
        return 0.0
    return min(known / max(lengths), 1.0) if lengths else 1.0
