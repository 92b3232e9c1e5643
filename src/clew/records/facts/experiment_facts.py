"""Facts that experiments record: one kind per experiment, with the same fields but its own `data`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.records.codec import unwritten
from clew.records.facts.fact import FactSink, TypedFact

PREFIX = "experiment."
DONE, UNJUDGED = "done", "unjudged"


@dataclass(frozen=True)
class ExperimentFact(TypedFact):
    """What an experiment of `clew check` or `clew.examine` found, for the check of that name: `status`
    (`done` or `unjudged`), `reason` and `hint` (why it could not be judged, and the line of code that would
    change that), `seconds`, `question`, `data` (its numbers), `plots` (`[{title, x, y, x_label, y_label,
    log_x}]`), `exhibits` (samples to look at: `[{kind, caption, data}]`, kind `image`, `text`, `numbers` or
    `wave`).
    """

    fact_kind = "experiment.<name>"

    status: str = ""
    reason: str = ""
    hint: str = ""
    seconds: float = 0.0
    question: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    plots: tuple[Mapping[str, Any], ...] = ()
    exhibits: tuple[Mapping[str, Any], ...] = ()
    name: str = unwritten("")  # of the experiment: it is part of the kind

    def write(self, sink: FactSink, step: int) -> None:
        """Record it under the name of its experiment, which may be one of the user's own."""
        sink.fact(f"{PREFIX}{self.name}", step, self.to_json())


class CannotOverfitBatchFact(ExperimentFact):
    """`data`: `samples`, `start` (loss before the first step), `spread` (of that over random numbers),
    `line` (`[file, line]`, as in all that follow), `attempts`: `[{how, calm (without dropout, decay and
    noise), own (the program's optimizer), steps, end, floor (the lowest loss there can be), constant (the
    loss of one answer for all), accuracy, remaining (share of the way from there to the floor that is
    left)}]`; null where it is not known.
    """

    fact_kind = "experiment.cannot-overfit-batch"


class ToyTaskFailedFact(ExperimentFact):
    """`data`: `samples`, `rungs`: `[{name, words, how, steps, start, end, floor, accuracy, remaining,
    taken}]`, up to the first that was not taken.
    """

    fact_kind = "experiment.toy-task-failed"


class LearningRateTooHighFact(ExperimentFact):
    """`data`: `start`, `steps`, `rate`, `optimizer`, `warms_up` (a schedule begins lower), `rows`: the
    program's rate and the best other one, `[{factor, rate, gains (by which the loss fell, one for each
    order of the batches; one only where it is clear)}]`.
    """

    fact_kind = "experiment.learning-rate-too-high"


class LearningRateTooLowFact(ExperimentFact):
    """`data`: `start`, `steps`, `rate`, `optimizer`, `warms_up` (a schedule begins lower), `rows`: the
    program's rate and the best other one, `[{factor, rate, gains (by which the loss fell, one for each
    order of the batches; one only where it is clear)}]`.
    """

    fact_kind = "experiment.learning-rate-too-low"


class HyperparametersOffFact(ExperimentFact):
    """The range test. `data`: `rate`, `low` and `best` (where the loss begins to fall and where it is
    lowest), `diverges` (null if it did not), `start`, `fall`, `noise` (of the loss at rates that change
    nothing); its plot is the loss by learning rate.
    """

    fact_kind = "experiment.hyperparameters-off"


class OverRegularisedFact(ExperimentFact):
    """`data`: `start`, `steps`, `decay`, `dropouts`: `[[module, share]]`, `gains`: by which the loss fell
    with both `on`, both `off`, `without dropout`, `without decay`.
    """

    fact_kind = "experiment.over-regularised"


class PoorInitialisationFact(ExperimentFact):
    """`data`: `start`, `steps`, `layers`: `[{module, gain (rms of the weights times the root of the
    fan-in), alike, output, gradient}]` in forward order, `ends` and `fresh_ends` (losses after the same
    training from the program's weights and from new ones; empty where no layer is odd).
    """

    fact_kind = "experiment.poor-initialisation"


class BatchSizeUnfitFact(ExperimentFact):
    """`data`: `batch`, `compared` (batches), `points`: `[{step, scale, least, most}]`, the gradient noise
    scale in samples with its bounds.
    """

    fact_kind = "experiment.batch-size-unfit"


class OptimizerUnfitFact(ExperimentFact):
    """`data`: `start`, `steps`, `optimizer`, `rows`: the program's optimizer and the best other one,
    `[{name, own, rate, gains}]`; the first only where nothing can be far ahead.
    """

    fact_kind = "experiment.optimizer-unfit"


class CapacityTooSmallFact(ExperimentFact):
    """`data`: `samples`, `narrow` and `wide`: `{rate, start, end, remaining, accuracy, falling (in the last
    third, over what is left), steps, enough}`, `factor`, `width` (of the narrowest hidden layer); without
    `wide` where the network is large enough.
    """

    fact_kind = "experiment.capacity-too-small"


class BatchLeakFact(ExperimentFact):
    """`data`: `samples` and `models` looked at; `effect` (change of one sample's output as all others are
    replaced, relative to replacing the sample itself; 0: none), `row` (which sample), `by_sample` (the same
    for each sample alone), `place` (`{root, module, op, file, line}` of the first op whose result changes),
    `time_first` (the layer that takes the samples for time, if it is one), `meant` (why samples may look at
    each other; null).
    """

    fact_kind = "experiment.batch-leak"


class DimensionMixupFact(ExperimentFact):
    """`data`: `samples`, `tried` (how many were tried); `time_first` with `place` and `effect` as above;
    `position` (the output depends on the place in the batch), `stuck` (`{model, shape}`: an output that
    does not follow the number of samples), `failed` (`{message, code}` with fewer samples), `equal` (the
    batch size is also another size).
    """

    fact_kind = "experiment.dimension-mixup"


class FutureLeakFact(ExperimentFact):
    """`data`: `why` (it is meant to look back only), `length`, `last` (position after which inputs were
    replaced), `effect` (change of outputs up to there, relative to those after it), `place`.
    """

    fact_kind = "experiment.future-leak"


class GradientMismatchFact(ExperimentFact):
    """`data`: `functions`: `[{name, meant, place, verdict, autograd, finite, error}]` (autograd Functions
    tried alone), `compared` (parameters by verdict `same`, `wrong`, `unsure`), `wrong`: `[{root, module,
    param, autograd, finite, error}]`, `stops`: `[{what, file, line}]` (where the code stops gradients).
    """

    fact_kind = "experiment.gradient-mismatch"


class LossPrefersWrongFact(ExperimentFact):
    """`data`: `task` (`classes`, `binary`, `values`), `start`, `right`, `wrong` (the loss of the
    prediction, of right and of wrong answers), `x` and `y` (the loss along the way to the target), `far` (a
    hundred and a thousand times as far), `mirrored` (at minus the target), `slope`, `coarse_slope`,
    `autograd_slope` (along that way), `place` of the loss.
    """

    fact_kind = "experiment.loss-prefers-wrong"


class NondeterministicStepFact(ExperimentFact):
    """`data`: `kind` (`same`, `outside`, `generator`, `kept`, `backward`), `whole` (false: the model
    alone), `losses`, `relative`, `generators` (names), `place`.
    """

    fact_kind = "experiment.nondeterministic-step"


class CustomLayerBrokenFact(ExperimentFact):
    """`data`: `tried` (paths), `faults`: `[{what, class, place, …}]` with `what` `plain` (`name`, `shape`,
    `use`: `trained`, `state`, `constant`), `state_dict`, `gradient` (`of`, `autograd`, `finite`, `error`)
    or `leak` (`effect`).
    """

    fact_kind = "experiment.custom-layer-broken"


class DeviceLiteralFact(ExperimentFact):
    """`data`: `models`, `device` (place of a tensor that stays on the CPU, with `held`: the attribute that
    holds it, null if it is made in the forward; null), `dtype` (place and `message` of a forward that fails
    in float64; null).
    """

    fact_kind = "experiment.device-literal"


class MaskInvertedFact(ExperimentFact):
    """`data`: `padding_effect` (of noise on the embeddings of padding, relative to the output), `positions`
    (real tokens shaken one by one), `read` (how many of them change the output), `by_position` (an output
    for every token), `share` (of padding), `place`.
    """

    fact_kind = "experiment.mask-inverted"


class InputIgnoredFact(ExperimentFact):
    """`data`: `samples`, `line`, `tries`: `[{optimizer, own, steps, losses, first, last, used, given, data,
    alike}]`; `first` and `last` are the losses on `real` inputs, on those of `others` and on `noise` before
    and after training, `given` and `data` how much the output changes with what the model is given and with
    the batch (null: not known), `alike` whether the model is given the same whatever the batch.
    """

    fact_kind = "experiment.input-ignored"


class LabelsMisalignedFact(ExperimentFact):
    """`data`: `samples`, `line`, `sides`: by name (`training`, …) `{matched, other (samples whose label
    differs from the dataset's), consistent}`, `learners`: how well cheap learners predict the labels of the
    `dataset` and of `training`, in standard errors, with `samples` of both.
    """

    fact_kind = "experiment.labels-misaligned"


class LoaderCorruptsDataFact(ExperimentFact):
    """`data`: `samples` compared, `dataset`, `collate` (the function's name), `line`, `fields`: `[{name,
    relation, batches, of, detail}]`, how what the loader delivers relates to what the dataset returns, in
    how many `of` the batches.
    """

    fact_kind = "experiment.loader-corrupts-data"


class DatasetMutatesFact(ExperimentFact):
    """`data`: `dataset`, `samples`, `reads` (how often each was read), `fields` (that changed), `arrays`
    (attributes that changed), `means` and `deviations` (by reading), `line`.
    """

    fact_kind = "experiment.dataset-mutates"


class NoSignalFact(ExperimentFact):
    """`data`: `samples`, `kind` (of the labels), `scores`: `[{learner, real, permuted, deviations}]` of
    cheap learners on real and on permuted labels, `chance`, `accuracy`, `model` (`{steps, held_out,
    trained}`: the loss of the model on `real` and `permuted` labels; null where it was not tried), `line`.
    """

    fact_kind = "experiment.no-signal"


class LabelNoiseFact(ExperimentFact):
    """`data`: `samples`, `accuracy`, `chance`, `judged` (samples the learners are surest of), `wrong` (of
    these), `clear` (share with a clear margin), `suspects`: `[{index, given, suggested, share,
    share_given}]`, `suspect_count`, `pairs` (labels most often taken for each other), `line`.
    """

    fact_kind = "experiment.label-noise"


class ExcessiveAugmentationFact(ExperimentFact):
    """`data`: `random` (whether there are random transforms), `transforms` (their names), `distance` (of
    augmented samples from plain ones), `samples`, `trials` (what training with each switched off gave),
    `line`.
    """

    fact_kind = "experiment.excessive-augmentation"


class TooFewExamplesFact(ExperimentFact):
    """`data`: `samples`, `steps`, `parameters`, `sizes` (of the training sets tried), `curves`:
    `[{held_out, trained, start}]`, the losses by size, `line`.
    """

    fact_kind = "experiment.too-few-examples"
