"""Facts of the experiments on the data."""

from __future__ import annotations

from dataclasses import dataclass

from clew.records.facts.experiment_facts import ExperimentFact


@dataclass(frozen=True)
class LabelsMisalignedFact(ExperimentFact):
    """`data`: `samples`, `line`, `sides`: by name (`training`, …) `{matched, other (samples whose label
    differs from the dataset's), consistent}`, `learners`: how well cheap learners predict the labels of the
    `dataset` and of `training`, in standard errors, with `samples` of both.
    """

    fact_kind = "experiment.labels-misaligned"


@dataclass(frozen=True)
class LoaderCorruptsDataFact(ExperimentFact):
    """`data`: `samples` compared, `dataset`, `collate` (the function's name), `line`, `fields`: `[{name,
    relation, batches, of, detail}]`, how what the loader delivers relates to what the dataset returns, in
    how many `of` the batches.
    """

    fact_kind = "experiment.loader-corrupts-data"


@dataclass(frozen=True)
class DatasetMutatesFact(ExperimentFact):
    """`data`: `dataset`, `samples`, `reads` (how often each was read), `fields` (that changed), `arrays`
    (attributes that changed), `means` and `deviations` (by reading), `line`.
    """

    fact_kind = "experiment.dataset-mutates"


@dataclass(frozen=True)
class NoSignalFact(ExperimentFact):
    """`data`: `samples`, `kind` (of the labels), `scores`: `[{learner, real, permuted, deviations}]` of
    cheap learners on real and on permuted labels, `chance`, `accuracy`, `model` (`{steps, held_out,
    trained}`: the loss of the model on `real` and `permuted` labels; null where it was not tried), `line`.
    """

    fact_kind = "experiment.no-signal"


@dataclass(frozen=True)
class LabelNoiseFact(ExperimentFact):
    """`data`: `samples`, `accuracy`, `chance`, `judged` (samples the learners are surest of), `wrong` (of
    these), `clear` (share with a clear margin), `suspects`: `[{index, given, suggested, share,
    share_given}]`, `suspect_count`, `pairs` (labels most often taken for each other), `line`.
    """

    fact_kind = "experiment.label-noise"


@dataclass(frozen=True)
class ExcessiveAugmentationFact(ExperimentFact):
    """`data`: `random` (whether there are random transforms), `transforms` (their names), `distance` (of
    augmented samples from plain ones), `samples`, `trials` (what training with each switched off gave),
    `line`.
    """

    fact_kind = "experiment.excessive-augmentation"
