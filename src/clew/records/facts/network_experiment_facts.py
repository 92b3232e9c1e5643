"""Facts of the experiments on what the network computes."""

from __future__ import annotations

from dataclasses import dataclass

from clew.records.facts.experiment_facts import NO_PLACE, CodePlace, ExperimentFact


@dataclass(frozen=True)
class BatchLeakFact(ExperimentFact):
    """`data`: `samples` and `models` looked at; `effect` (change of one sample's output as all others are
    replaced, relative to replacing the sample itself; 0: none), `row` (which sample), `by_sample` (the same
    for each sample alone), `place` (`{root, module, op, file, line}` of the first op whose result changes),
    `time_first` (the layer that takes the samples for time, if it is one), `meant` (why samples may look at
    each other; null).
    """

    fact_kind = "experiment.batch-leak"

    samples: int = 0
    models: int = 0
    effect: float = 0.0
    row: int | None = None
    by_sample: tuple[float, ...] = ()
    place: CodePlace = NO_PLACE
    time_first: str | None = None
    meant: str | None = None


@dataclass(frozen=True)
class DimensionMixupFact(ExperimentFact):
    """`data`: `samples`, `tried` (how many were tried); `time_first` with `place` and `effect` as above;
    `position` (the output depends on the place in the batch), `stuck` (`{model, shape}`: an output that
    does not follow the number of samples), `failed` (`{message, code}` with fewer samples), `equal` (the
    batch size is also another size).
    """

    fact_kind = "experiment.dimension-mixup"


@dataclass(frozen=True)
class FutureLeakFact(ExperimentFact):
    """`data`: `why` (it is meant to look back only), `length`, `last` (position after which inputs were
    replaced), `effect` (change of outputs up to there, relative to those after it), `place`.
    """

    fact_kind = "experiment.future-leak"


@dataclass(frozen=True)
class GradientMismatchFact(ExperimentFact):
    """`data`: `functions`: `[{name, meant, place, verdict, autograd, finite, error}]` (autograd Functions
    tried alone), `compared` (parameters by verdict `same`, `wrong`, `unsure`), `wrong`: `[{root, module,
    param, autograd, finite, error}]`, `stops`: `[{what, file, line}]` (where the code stops gradients).
    """

    fact_kind = "experiment.gradient-mismatch"


@dataclass(frozen=True)
class LossPrefersWrongFact(ExperimentFact):
    """`data`: `task` (`classes`, `binary`, `values`), `start`, `right`, `wrong` (the loss of the
    prediction, of right and of wrong answers), `x` and `y` (the loss along the way to the target), `far` (a
    hundred and a thousand times as far), `mirrored` (at minus the target), `slope`, `coarse_slope`,
    `autograd_slope` (along that way), `place` of the loss.
    """

    fact_kind = "experiment.loss-prefers-wrong"


@dataclass(frozen=True)
class NondeterministicStepFact(ExperimentFact):
    """`data`: `kind` (`same`, `outside`, `generator`, `kept`, `backward`), `whole` (false: the model
    alone), `losses`, `relative`, `generators` (names), `place`.
    """

    fact_kind = "experiment.nondeterministic-step"


@dataclass(frozen=True)
class CustomLayerBrokenFact(ExperimentFact):
    """`data`: `tried` (paths), `faults`: `[{what, class, place, …}]` with `what` `plain` (`name`, `shape`,
    `use`: `trained`, `state`, `constant`), `state_dict`, `gradient` (`of`, `autograd`, `finite`, `error`)
    or `leak` (`effect`).
    """

    fact_kind = "experiment.custom-layer-broken"


@dataclass(frozen=True)
class DeviceLiteralFact(ExperimentFact):
    """`data`: `models`, `device` (place of a tensor that stays on the CPU, with `held`: the attribute that
    holds it, null if it is made in the forward; null), `dtype` (place and `message` of a forward that fails
    in float64; null).
    """

    fact_kind = "experiment.device-literal"


@dataclass(frozen=True)
class MaskInvertedFact(ExperimentFact):
    """`data`: `padding_effect` (of noise on the embeddings of padding, relative to the output), `positions`
    (real tokens shaken one by one), `read` (how many of them change the output), `by_position` (an output
    for every token), `share` (of padding), `place`.
    """

    fact_kind = "experiment.mask-inverted"


@dataclass(frozen=True)
class InputIgnoredFact(ExperimentFact):
    """`data`: `samples`, `line`, `tries`: `[{optimizer, own, steps, losses, first, last, used, given, data,
    alike}]`; `first` and `last` are the losses on `real` inputs, on those of `others` and on `noise` before
    and after training, `given` and `data` how much the output changes with what the model is given and with
    the batch (null: not known), `alike` whether the model is given the same whatever the batch.
    """

    fact_kind = "experiment.input-ignored"
