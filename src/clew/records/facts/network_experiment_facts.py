"""Facts of the experiments on what the network computes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from clew.records.codec import keyed, sparse
from clew.records.facts.experiment_facts import NO_LINE, NO_PLACE, CodePlace, ExperimentFact, SourceLine


@dataclass(frozen=True)
class BatchLeakFact(ExperimentFact):
    """`data`: `samples` and `models` tested; `effect` (how much one sample's output changes when all
    others are replaced, relative to replacing the sample itself; 0: not at all), `row` (which sample),
    `by_sample` (the same when each sample is replaced alone; 1 for itself), `place` (`{root, module, op,
    file, line}` of the first op whose result changes), `time_first` (a layer that treats the batch
    dimension as time, if there is one), `meant` (why samples are meant to depend on each other; null).
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
class StuckOutput:
    """An output whose shape does not follow the number of samples."""

    model: str | None = None
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class ShapeFailure:
    """The error with fewer samples, and the line of code."""

    message: str = ""
    code: str = ""


@dataclass(frozen=True)
class DimensionMixupFact(ExperimentFact):
    """`data`: `samples`, `tried` (how many were tried); `time_first`, `place` and `effect` as above;
    `position` (the output depends on the position in the batch), `stuck` (`{model, shape}`: an output
    whose shape does not follow the number of samples), `failed` (`{message, code}` with fewer samples),
    `equal` (the batch size equals another size).
    """

    fact_kind = "experiment.dimension-mixup"

    samples: int = 0
    tried: int = 0
    time_first: str | None = None
    position: bool = False
    effect: float = 0.0
    place: CodePlace | None = None
    stuck: StuckOutput | None = None
    failed: ShapeFailure | None = None
    equal: bool = False


@dataclass(frozen=True)
class FutureLeakFact(ExperimentFact):
    """`data`: `why` (what shows that it is meant to look back only), `length`, `last` (position after
    which inputs were replaced), `effect` (change of the outputs up to there, relative to those after it),
    `place`.
    """

    fact_kind = "experiment.future-leak"

    why: str = ""
    length: int = 0
    last: int | None = None
    effect: float = 0.0
    place: CodePlace = NO_PLACE


@dataclass(frozen=True)
class DerivativeComparison:
    """One tensor, one direction."""

    verdict: str = ""
    autograd: float = math.nan
    finite: float = math.nan
    error: float = 0.0  # relative to the larger of the two, or of what a random direction gives on average


@dataclass(frozen=True)
class FunctionGradient(DerivativeComparison):
    """The worst input of an autograd Function."""

    name: str = ""
    meant: str | None = None
    place: CodePlace = NO_PLACE


@dataclass(frozen=True)
class ParameterGradient(DerivativeComparison):
    """One parameter."""

    root: str | None = None
    module: str | None = None
    param: str | None = None


@dataclass(frozen=True)
class GradientStop:
    """A line that keeps gradients from passing."""

    what: str = ""
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class GradientMismatchFact(ExperimentFact):
    """`data`: `functions`: `[{name, meant, place, verdict, autograd, finite, error}]` (autograd Functions
    tested on their own), `compared` (number of parameters for each verdict: `same`, `wrong`, `unsure`),
    `wrong`: `[{root, module, param, autograd, finite, error}]`, `stops`: `[{what, file, line}]` (where
    the code stops gradients).
    """

    fact_kind = "experiment.gradient-mismatch"

    functions: tuple[FunctionGradient, ...] = ()
    compared: Mapping[str, int] = field(default_factory=dict)
    wrong: tuple[ParameterGradient, ...] = ()
    stops: tuple[GradientStop, ...] = ()


@dataclass(frozen=True)
class LossPrefersWrongFact(ExperimentFact):
    """`data`: `task` (`classes`, `binary`, `values`), the loss of the prediction (`start`), of right
    answers (`right`) and of wrong ones (`wrong`), `x` and `y` (the loss on the way from the prediction to
    the target), `far` (the loss a hundred and a thousand times as far), `mirrored` (the loss at minus the
    target), `slope`, `coarse_slope` and `autograd_slope` (on that way), `place` of the loss.
    """

    fact_kind = "experiment.loss-prefers-wrong"

    task: str = ""
    start: float = math.nan
    right: float = math.nan
    wrong: float | None = None
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    far: tuple[float, ...] = ()
    mirrored: float | None = None
    slope: float = math.nan
    coarse_slope: float = math.nan
    autograd_slope: float = math.nan
    place: CodePlace = NO_PLACE


@dataclass(frozen=True)
class NondeterministicStepFact(ExperimentFact):
    """`data`: `kind` (`same`, `outside`, `generator`, `kept`, `backward`), `whole` (false: only the model
    was run), `losses`, `relative` (their difference), `generators` (names), `place`.
    """

    fact_kind = "experiment.nondeterministic-step"

    kind: str = "same"
    whole: bool = True
    losses: tuple[float, float] = (math.nan, math.nan)
    relative: float = 0.0
    generators: tuple[str, ...] = ()
    place: CodePlace | None = None


@dataclass(frozen=True)
class ModuleFault:
    """What is wrong with one of the user's modules; only what belongs to `what` is known."""

    what: str = ""
    kind: str = keyed("class", "")
    place: CodePlace = NO_PLACE
    name: str | None = sparse()
    use: str | None = sparse()
    shape: tuple[int, ...] | None = sparse()
    of: str | None = sparse()
    verdict: str | None = sparse()
    autograd: float | None = sparse()
    finite: float | None = sparse()
    error: float | None = sparse()
    effect: float | None = sparse()


@dataclass(frozen=True)
class CustomLayerBrokenFact(ExperimentFact):
    """`data`: `tried` (paths), `faults`: `[{what, class, place, …}]`, where `what` is `plain` (a tensor
    that is no parameter or buffer, with `name`, `shape`, `use`: `trained`, `state`, `constant`),
    `state_dict`, `gradient` (with `of`, `autograd`, `finite`, `error`) or `leak` (with `effect`).
    """

    fact_kind = "experiment.custom-layer-broken"

    tried: tuple[str, ...] = ()
    faults: tuple[ModuleFault, ...] = ()


@dataclass(frozen=True)
class CpuTensor(CodePlace):
    """A tensor that stays on the CPU: the op that creates it, or the attribute it is stored in."""

    held: str | None = None  # name of the attribute


@dataclass(frozen=True)
class FixedDtype(CodePlace):
    """Where a forward fails in float64."""

    message: str = ""


@dataclass(frozen=True)
class DeviceLiteralFact(ExperimentFact):
    """`data`: `models`, `device` (null, or the place of a tensor that stays on the CPU, with `held`: the
    attribute that stores it, null if the forward creates it), `dtype` (null, or place and `message` of a
    forward that fails in float64).
    """

    fact_kind = "experiment.device-literal"

    models: int = 0
    device: CpuTensor | None = None
    dtype: FixedDtype | None = None


@dataclass(frozen=True)
class MaskInvertedFact(ExperimentFact):
    """`data`: `padding_effect` (of noise on the embeddings of padding, relative to the output),
    `positions` (real tokens that got noise, one at a time), `read` (how many of them change the output),
    `by_position` (the model has one output per token), `share` (of padding), `place`.
    """

    fact_kind = "experiment.mask-inverted"

    padding_effect: float = 0.0
    positions: int = 0
    positions_read: int | None = keyed("read")
    by_position: bool = False
    share: float = 0.0
    place: CodePlace | None = None


@dataclass(frozen=True)
class SwappedLosses:
    """The losses after training, one for each draw of other inputs."""

    real: tuple[float, ...] = ()
    others: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()


@dataclass(frozen=True)
class SwappedTraining:
    """A short training with one optimizer."""

    optimizer: str = ""
    own: bool = False
    steps: int = 0
    losses: tuple[float, ...] = ()
    first: tuple[float, ...] = ()
    last: SwappedLosses = SwappedLosses()
    used: bool = False
    given: float | None = None
    data: float | None = None
    alike: bool = False


@dataclass(frozen=True)
class InputIgnoredFact(ExperimentFact):
    """`data`: `samples`, `line`, `tries`: `[{optimizer, own, steps, losses, first, last, used, given,
    data, alike}]`. `first` are the losses before training; `last` those after it on `real` inputs, on
    those of `others` and on `noise`; `given` and `data` say how much the output changes with the model's
    inputs and with the batch (null: unknown); `alike`: the model gets the same input for every batch.
    """

    fact_kind = "experiment.input-ignored"

    samples: int = 0
    line: SourceLine = NO_LINE
    tries: tuple[SwappedTraining, ...] = ()
