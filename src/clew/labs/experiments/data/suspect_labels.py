"""Which labels look wrong? Finds samples for which cheap learners confidently predict another label.

As in confident learning, only predictions for held-out samples count. Wrong labels are found where the
learners are confident; hard samples are found where they are not.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import torch
from torch import Tensor

from clew.labs.experiments.base import Experiment, Plot, Result
from clew.labs.experiments.tools.labelled_samples import CLASSES, LabelledSamples, chance, labelled_samples
from clew.labs.experiments.tools.reference_learners import accuracy
from clew.labs.snapshot.sample_exhibits import exhibits
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.records.facts.data_experiment_facts import ConfusedLabels, LabelNoiseFact, SuspectLabel
from clew.records.facts.experiment_facts import SourceLine

MOST_SHOWN = 8
MOST_LISTED = 100
TYPICAL = 0.8  # quantile of the margins that represents a clear case


@dataclass(frozen=True)
class SuspectLabels(Experiment):
    name = "label-noise"
    question = "are labels wrong?"
    rank = 44

    least: int = 200  # samples; of a third of them five per cent are three
    per_class: int = 8  # samples of each class that is judged
    near: float = 0.05  # a learner counts if its accuracy is within this of the best
    sure: float = 1 / 3  # share of the samples on which the learners are most confident
    clear: float = 0.5  # share of a typical margin from which a prediction is clear

    def run(self, subject: Subject, clock: Clock) -> Result:
        samples = labelled_samples(subject, clock, self.least)
        if samples.labels.kind != CLASSES:
            raise CannotJudge("only class labels are checked")
        if min(n for n in samples.labels.counts if n) < self.per_class:
            raise CannotJudge(f"a class has fewer than {self.per_class} samples among those drawn")
        given = samples.labels.values
        shares, right = self._predicted(samples)
        clock.tick(0.8)
        top = shares.topk(2).values
        margin, suggested = top[:, 0] - top[:, 1], shares.argmax(1)
        typical = margin.quantile(TYPICAL).clamp(min=1e-12)
        surest = margin.argsort(descending=True)[: max(1, int(self.sure * len(margin)))]
        wrong = suggested != given
        rows = [int(n) for n in (wrong & (margin >= self.clear * typical)).nonzero().flatten()]
        suspects = sorted(rows, key=lambda n: -float(margin[n]))
        found = LabelNoiseFact(
            samples=len(given),
            accuracy=right,
            chance=chance(samples.labels),
            judged=len(surest),
            wrong=int(wrong[surest].sum()),
            clear=float((margin >= self.clear * typical).double().mean()),
            suspects=tuple(_suspect(samples, n, suggested, shares) for n in suspects[:MOST_LISTED]),
            suspect_count=len(suspects),
            pairs=_pairs(given, suggested, suspects),
            line=SourceLine(*subject.line),
        )
        notes = [f"looks like {int(suggested[n])}" for n in suspects[:MOST_SHOWN]]
        shown = exhibits(samples.batch, suspects[:MOST_SHOWN], subject, notes)
        return Result(found, [_course(margin, wrong)], shown)

    def _predicted(self, samples: LabelledSamples) -> tuple[Tensor, float]:
        """The share of each class, predicted by the good learners, and the accuracy of the best one."""
        columns = samples.labels.columns
        each = [learner.predict(columns).clamp(0, 1) for learner in samples.learners]
        rights = [accuracy(p, samples.labels.values) for p in each]
        good = [p for p, right in zip(each, rights, strict=True) if right >= max(rights) - self.near]
        mean = torch.stack([p / p.sum(1, keepdim=True).clamp(min=1e-12) for p in good]).mean(0)
        return mean, max(rights)


def _suspect(samples: LabelledSamples, row: int, suggested: Tensor, shares: Tensor) -> SuspectLabel:
    given = int(samples.labels.values[row])
    index = samples.batch.indices[row] if samples.batch.indices is not None else None
    return SuspectLabel(
        index=index,
        given=given,
        suggested=int(suggested[row]),
        share=float(shares[row, suggested[row]]),
        share_given=float(shares[row, given]),
    )


def _pairs(given: Tensor, suggested: Tensor, suspects: list[int]) -> tuple[ConfusedLabels, ...]:
    """The most frequent confusions."""
    counts = Counter((int(given[n]), int(suggested[n])) for n in suspects)
    return tuple(ConfusedLabels(*pair, count) for pair, count in counts.most_common(5))


def _course(margin: Tensor, wrong: Tensor) -> Plot:
    """Disagreement by tenths of the samples, most confident first: flat for noise, rising for hard ones."""
    tenths = wrong[margin.argsort(descending=True)].double().tensor_split(10)
    shares = [float(part.mean()) for part in tenths]
    return Plot(
        "share with a different label, most confident tenth first", range(1, 11), shares, "tenth", "share"
    )
