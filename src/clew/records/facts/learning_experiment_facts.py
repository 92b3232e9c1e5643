"""Facts of the experiments on how the network learns."""

from __future__ import annotations

from dataclasses import dataclass

from clew.records.facts.experiment_facts import ExperimentFact


@dataclass(frozen=True)
class CannotOverfitBatchFact(ExperimentFact):
    """`data`: `samples`, `start` (loss before the first step), `spread` (of that over random numbers),
    `line` (`[file, line]`, as in all that follow), `attempts`: `[{how, calm (without dropout, decay and
    noise), own (the program's optimizer), steps, end, floor (the lowest loss there can be), constant (the
    loss of one answer for all), accuracy, remaining (share of the way from there to the floor that is
    left)}]`; null where it is not known.
    """

    fact_kind = "experiment.cannot-overfit-batch"


@dataclass(frozen=True)
class ToyTaskFailedFact(ExperimentFact):
    """`data`: `samples`, `rungs`: `[{name, words, how, steps, start, end, floor, accuracy, remaining,
    taken}]`, up to the first that was not taken.
    """

    fact_kind = "experiment.toy-task-failed"


@dataclass(frozen=True)
class LearningRateTooHighFact(ExperimentFact):
    """`data`: `start`, `steps`, `rate`, `optimizer`, `warms_up` (a schedule begins lower), `rows`: the
    program's rate and the best other one, `[{factor, rate, gains (by which the loss fell, one for each
    order of the batches; one only where it is clear)}]`.
    """

    fact_kind = "experiment.learning-rate-too-high"


@dataclass(frozen=True)
class LearningRateTooLowFact(ExperimentFact):
    """`data`: `start`, `steps`, `rate`, `optimizer`, `warms_up` (a schedule begins lower), `rows`: the
    program's rate and the best other one, `[{factor, rate, gains (by which the loss fell, one for each
    order of the batches; one only where it is clear)}]`.
    """

    fact_kind = "experiment.learning-rate-too-low"


@dataclass(frozen=True)
class HyperparametersOffFact(ExperimentFact):
    """The range test. `data`: `rate`, `low` and `best` (where the loss begins to fall and where it is
    lowest), `diverges` (null if it did not), `start`, `fall`, `noise` (of the loss at rates that change
    nothing); its plot is the loss by learning rate.
    """

    fact_kind = "experiment.hyperparameters-off"


@dataclass(frozen=True)
class OverRegularisedFact(ExperimentFact):
    """`data`: `start`, `steps`, `decay`, `dropouts`: `[[module, share]]`, `gains`: by which the loss fell
    with both `on`, both `off`, `without dropout`, `without decay`.
    """

    fact_kind = "experiment.over-regularised"


@dataclass(frozen=True)
class PoorInitialisationFact(ExperimentFact):
    """`data`: `start`, `steps`, `layers`: `[{module, gain (rms of the weights times the root of the
    fan-in), alike, output, gradient}]` in forward order, `ends` and `fresh_ends` (losses after the same
    training from the program's weights and from new ones; empty where no layer is odd).
    """

    fact_kind = "experiment.poor-initialisation"


@dataclass(frozen=True)
class BatchSizeUnfitFact(ExperimentFact):
    """`data`: `batch`, `compared` (batches), `points`: `[{step, scale, least, most}]`, the gradient noise
    scale in samples with its bounds.
    """

    fact_kind = "experiment.batch-size-unfit"


@dataclass(frozen=True)
class OptimizerUnfitFact(ExperimentFact):
    """`data`: `start`, `steps`, `optimizer`, `rows`: the program's optimizer and the best other one,
    `[{name, own, rate, gains}]`; the first only where nothing can be far ahead.
    """

    fact_kind = "experiment.optimizer-unfit"


@dataclass(frozen=True)
class CapacityTooSmallFact(ExperimentFact):
    """`data`: `samples`, `narrow` and `wide`: `{rate, start, end, remaining, accuracy, falling (in the last
    third, over what is left), steps, enough}`, `factor`, `width` (of the narrowest hidden layer); without
    `wide` where the network is large enough.
    """

    fact_kind = "experiment.capacity-too-small"


@dataclass(frozen=True)
class TooFewExamplesFact(ExperimentFact):
    """`data`: `samples`, `steps`, `parameters`, `sizes` (of the training sets tried), `curves`:
    `[{held_out, trained, start}]`, the losses by size, `line`.
    """

    fact_kind = "experiment.too-few-examples"
