"""Facts of the experiments on the data.

A number that is missing in a recorded run has the default with which its check reports nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from clew.records.facts.experiment_facts import NO_LINE, ExperimentFact, SourceLine


@dataclass(frozen=True)
class MatchedSamples:
    """Samples that were found again in the dataset."""

    matched: int = 0
    other: int = 0  # of these, those with another label
    consistent: float = 1.0  # share that one fixed renaming of the labels explains


@dataclass(frozen=True)
class LearnablePairs:
    """How well cheap learners predict the labels, in standard errors."""

    dataset: float = 0.0
    training: float = math.nan
    samples: tuple[int, ...] = ()  # of both


@dataclass(frozen=True)
class LabelsMisalignedFact(ExperimentFact):
    """`data`: `samples`, `line`, `sides`: by name (`training`, …) `{matched, other (samples whose label
    differs from the dataset's), consistent}`, `learners`: how well simple learners predict the labels of
    the `dataset` and of `training`, in standard errors, with `samples` of both.
    """

    fact_kind = "experiment.labels-misaligned"

    samples: int = 0
    sides: Mapping[str, MatchedSamples] = field(default_factory=dict)
    learners: LearnablePairs | None = None
    line: SourceLine = NO_LINE


@dataclass(frozen=True)
class DeliveredField:
    """How one field of the batches relates to what the dataset returned for their samples."""

    name: str = ""
    relation: str = ""
    batches: int = 0
    of: int = 0  # batches compared
    detail: str = ""


@dataclass(frozen=True)
class LoaderCorruptsDataFact(ExperimentFact):
    """`data`: `samples` compared, `dataset`, `collate` (the function's name), `line`, `fields`: `[{name,
    relation, batches, of, detail}]`: how the loader's values relate to the dataset's, in `batches` `of`
    those compared.
    """

    fact_kind = "experiment.loader-corrupts-data"

    samples: int = 0
    fields: tuple[DeliveredField, ...] = ()
    collate: str = ""
    dataset: str = ""
    line: SourceLine = NO_LINE


@dataclass(frozen=True)
class DatasetMutatesFact(ExperimentFact):
    """`data`: `dataset`, `samples`, `reads` (how often each was read), `fields` (that changed), `arrays`
    (attributes that changed), `means` and `deviations` (one per reading), `line`.
    """

    fact_kind = "experiment.dataset-mutates"

    dataset: str = ""
    samples: int = 0
    reads: int = 0
    fields: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    deviations: tuple[float, ...] = ()
    line: SourceLine = NO_LINE


@dataclass(frozen=True)
class LearnerScore:
    """How well a learner's predictions correlate with the labels, and with permuted ones."""

    learner: str = ""
    real: float = 0.0
    permuted: tuple[float, ...] = ()
    deviations: float = 0.0  # of the real score from the permuted ones, in their standard deviations


@dataclass(frozen=True)
class PermutedLosses:
    """The loss of a model with the labels as they are, and with permuted ones."""

    real: float = 0.0
    permuted: tuple[float, ...] = ()


@dataclass(frozen=True)
class ModelSignal:
    """What the user's own model learned in a short training."""

    steps: int = 0
    held_out: PermutedLosses = PermutedLosses()
    trained: PermutedLosses = PermutedLosses()


@dataclass(frozen=True)
class NoSignalFact(ExperimentFact):
    """`data`: `samples`, `kind` (of the labels), `scores`: `[{learner, real, permuted, deviations}]` of
    simple learners on real and on permuted labels, `chance`, `accuracy`, `model` (`{steps, held_out,
    trained}`: the loss of the model on `real` and `permuted` labels; null if it was not tried), `line`.
    """

    fact_kind = "experiment.no-signal"

    samples: int = 0
    kind: str = ""
    scores: tuple[LearnerScore, ...] = ()
    chance: float = 0.0
    accuracy: float | None = None
    model: ModelSignal | None = None
    line: SourceLine = NO_LINE


@dataclass(frozen=True)
class SuspectLabel:
    """A sample that looks like a class other than its label."""

    index: int | None = None  # in the dataset
    given: int | None = None
    suggested: int | None = None
    share: float = 0.0  # of the prediction, for the suggested label
    share_given: float = 0.0


class ConfusedLabels(NamedTuple):
    """Written as `[given, suggested, samples]`."""

    given: int
    suggested: int
    samples: int


@dataclass(frozen=True)
class LabelNoiseFact(ExperimentFact):
    """`data`: `samples`, `accuracy`, `chance`, `judged` (samples for which the learners are most
    confident), `wrong` (those of them with another label), `clear` (share of them predicted by a clear
    margin), `suspects`: `[{index, given, suggested, share, share_given}]`, `suspect_count`, `pairs`
    (labels most often confused), `line`.
    """

    fact_kind = "experiment.label-noise"

    samples: int = 0
    accuracy: float = 0.0
    chance: float = 1.0
    judged: int = 0
    wrong: int = 0
    clear: float = 0.0
    suspects: tuple[SuspectLabel, ...] = ()
    suspect_count: int = 0
    pairs: tuple[ConfusedLabels, ...] = ()
    line: SourceLine = NO_LINE


@dataclass(frozen=True)
class AugmentationComparison:
    """Losses of a training without augmentation (`off`) and of one with it (`on`), both of `steps` steps."""

    start: float = math.nan  # on held-out samples; `held_off` and `held_on` are the same after training
    held_off: float = math.nan
    end_off: float = math.nan  # of the training loss
    held_on: float = math.nan
    end_on: float = math.nan
    steps: int = 0


@dataclass(frozen=True)
class ExcessiveAugmentationFact(ExperimentFact):
    """`data`: `random` (whether there are random transforms), `transforms` (their names), `distance`
    (between augmented and plain samples), `samples`, `trials`: `[{start, held_off, end_off, held_on,
    end_on, steps}]`, losses of trainings without augmentation (`off`) and with it (`on`), `line`.
    """

    fact_kind = "experiment.excessive-augmentation"

    random: bool = False
    transforms: tuple[str, ...] = ()
    distance: float = 0.0
    samples: int = 0
    trials: tuple[AugmentationComparison, ...] = ()
    line: SourceLine = NO_LINE
