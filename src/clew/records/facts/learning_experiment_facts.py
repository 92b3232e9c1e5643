"""Facts of the experiments on how the network learns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from clew.records.facts.experiment_facts import NO_LINE, ExperimentFact, SourceLine


@dataclass(frozen=True)
class OverfitTraining:
    """One of the trainings on the same samples."""

    how: str = ""
    calm: bool = False
    own: bool = False  # with the user's own optimizer
    steps: int = 0
    end: float = math.inf
    floor: float | None = None
    constant: float | None = None
    accuracy: float | None = None
    remaining: float | None = None


@dataclass(frozen=True)
class CannotOverfitBatchFact(ExperimentFact):
    """`data`: `samples`, `start` (loss before the first step), `spread` (of that loss over random
    numbers), `line` (`[file, line]`, as in all that follow), `attempts`: `[{how, calm (without dropout,
    weight decay and noise), own (the program's optimizer), steps, end, floor (the lowest possible loss),
    constant (the loss of the best constant prediction), accuracy, remaining (share of the way from
    `constant` to `floor` that is left)}]`; null where unknown.
    """

    fact_kind = "experiment.cannot-overfit-batch"

    samples: int = 0
    start: float = math.inf
    spread: float = 0.0
    line: SourceLine = NO_LINE
    attempts: tuple[OverfitTraining, ...] = ()


@dataclass(frozen=True)
class ToyRung:
    """A toy task, and the best attempt to learn it."""

    name: str = ""
    words: str = "learn a toy task"
    how: str = ""
    steps: int = 0
    start: float = math.nan
    end: float = math.nan
    floor: float | None = None
    accuracy: float | None = None
    remaining: float = math.nan
    taken: bool = False


@dataclass(frozen=True)
class ToyTaskFailedFact(ExperimentFact):
    """`data`: `samples`, `line`, `rungs`: `[{name, words, how, steps, start, end, floor, accuracy,
    remaining, taken}]`, the toy tasks up to the first that was not learned (`taken`: learned).
    """

    fact_kind = "experiment.toy-task-failed"

    samples: int = 0
    line: SourceLine = NO_LINE
    rungs: tuple[ToyRung, ...] = ()


@dataclass(frozen=True)
class ProgramTraining:
    """How the program itself trains."""

    optimizer: str = ""
    warms_up: bool = False
    line: SourceLine = NO_LINE


@dataclass(frozen=True)
class RateGains:
    """A learning rate, and by how much the loss fell with each order of the batches."""

    factor: float = math.nan
    rate: float = math.nan
    gains: tuple[float, ...] = ()


@dataclass(frozen=True)
class ComparedRates(ProgramTraining):
    """The program's learning rate and another."""

    start: float = math.inf
    steps: int = 0
    rate: float = 0.0
    rows: tuple[RateGains, ...] = ()


@dataclass(frozen=True)
class LearningRateTooHighFact(ComparedRates, ExperimentFact):
    """`data`: `start`, `steps`, `rate`, `optimizer`, `warms_up` (a schedule begins lower), `line`,
    `rows`: the program's learning rate and the best other one, `[{factor, rate, gains (by how much the
    loss fell, one number per order of the batches; a single one if the result was clear)}]`.
    """

    fact_kind = "experiment.learning-rate-too-high"


@dataclass(frozen=True)
class LearningRateTooLowFact(ComparedRates, ExperimentFact):
    """`data`: `start`, `steps`, `rate`, `optimizer`, `warms_up` (a schedule begins lower), `line`,
    `rows`: the program's learning rate and the best other one, `[{factor, rate, gains (by how much the
    loss fell, one number per order of the batches; a single one if the result was clear)}]`.
    """

    fact_kind = "experiment.learning-rate-too-low"


@dataclass(frozen=True)
class HyperparametersOffFact(ProgramTraining, ExperimentFact):
    """The learning-rate range test. `data`: `optimizer`, `warms_up`, `line`, `rate`, `low` (where the
    loss begins to fall), `best` (where it is lowest), `diverges` (null if it did not), `start`, `fall`,
    `noise` (of the loss at rates too low to change anything); its plot is the loss by learning rate.
    """

    fact_kind = "experiment.hyperparameters-off"

    rate: float | None = None
    low: float | None = None
    best: float | None = None
    diverges: float | None = None
    start: float | None = None
    fall: float | None = None
    noise: float | None = None


@dataclass(frozen=True)
class OverRegularisedFact(ExperimentFact):
    """`data`: `start`, `steps`, `line`, `decay`, `dropouts`: `[[module, share]]`, `gains`: by how much
    the loss fell with both `on`, both `off`, `without dropout` and `without decay`.
    """

    fact_kind = "experiment.over-regularised"

    start: float = math.inf
    steps: int = 0
    line: SourceLine = NO_LINE
    decay: float = 0.0
    dropouts: tuple[tuple[str, float], ...] = ()
    gains: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class InitialLayer:
    """One layer before the first step."""

    module: str = ""
    gain: float = math.nan  # 1 keeps the scale
    alike: bool = False  # all units have the same weights
    output: float = math.nan  # standard deviation
    gradient: float = math.nan  # root mean square, of the weight


@dataclass(frozen=True)
class PoorInitialisationFact(ExperimentFact):
    """`data`: `start`, `steps`, `line`, `layers`: `[{module, gain (rms of the weights times the square
    root of the fan-in), alike (all units have the same weights), output, gradient}]` in forward order,
    `ends` and `fresh_ends` (losses after the same training from the program's weights and from newly
    drawn ones; empty if no layer is suspicious).
    """

    fact_kind = "experiment.poor-initialisation"

    start: float = math.inf
    steps: int = 0
    line: SourceLine = NO_LINE
    layers: tuple[InitialLayer, ...] = ()
    ends: tuple[float, ...] = ()
    fresh_ends: tuple[float, ...] = ()


@dataclass(frozen=True)
class NoisePoint:
    """The gradient noise scale at a step of a short training."""

    step: int = 0
    scale: float = math.nan
    least: float = math.nan
    most: float = math.nan


@dataclass(frozen=True)
class BatchSizeUnfitFact(ExperimentFact):
    """`data`: `batch`, `line`, `compared` (number of batches), `points`: `[{step, scale, least, most}]`,
    the gradient noise scale in samples, with its bounds.
    """

    fact_kind = "experiment.batch-size-unfit"

    batch: int = 0
    line: SourceLine = NO_LINE
    compared: int = 0
    points: tuple[NoisePoint, ...] = ()


@dataclass(frozen=True)
class OptimizerGains:
    """An optimizer at its best rate, and by how much the loss fell with each order of the batches."""

    name: str = ""
    own: bool = False
    rate: float = math.nan
    gains: tuple[float, ...] = ()


@dataclass(frozen=True)
class OptimizerUnfitFact(ProgramTraining, ExperimentFact):
    """`data`: `start`, `steps`, `optimizer`, `warms_up`, `line`, `rows`: the program's optimizer and the
    best other one, `[{name, own, rate, gains}]`; only the program's if no other could be much better.
    """

    fact_kind = "experiment.optimizer-unfit"

    start: float = math.inf
    steps: int = 0
    rows: tuple[OptimizerGains, ...] = ()


@dataclass(frozen=True)
class WidthTraining:
    """The best training of the network at one width."""

    rate: float = math.nan
    start: float = math.nan
    end: float = math.nan
    remaining: float = math.nan
    accuracy: float | None = None
    falling: float = math.nan
    steps: int = 0
    enough: bool = False


@dataclass(frozen=True)
class CapacityTooSmallFact(ExperimentFact):
    """`data`: `samples`, `line`, `narrow` (the network) and `wide` (a wider copy): `{rate, start, end,
    remaining, accuracy, falling (in the last third, relative to what remains), steps, enough}`, `factor`
    (how much wider), `width` (of the narrowest hidden layer). `wide`, `factor` and `width` are null if
    the network is large enough.
    """

    fact_kind = "experiment.capacity-too-small"

    samples: int = 0
    line: SourceLine = NO_LINE
    narrow: WidthTraining | None = None
    wide: WidthTraining | None = None
    factor: int | None = None
    width: int | None = None


@dataclass(frozen=True)
class LearningCurve:
    """Losses by the number of training samples, for one split."""

    held_out: tuple[float, ...] = ()
    trained: tuple[float, ...] = ()
    start: float = math.nan


@dataclass(frozen=True)
class TooFewExamplesFact(ExperimentFact):
    """`data`: `samples`, `steps`, `parameters`, `sizes` (of the training sets tried), `curves`:
    `[{held_out, trained, start}]` (losses by size, one curve per split), `line`.
    """

    fact_kind = "experiment.too-few-examples"

    samples: int = 0
    steps: int = 0
    parameters: int = 0
    sizes: tuple[int, ...] = ()
    curves: tuple[LearningCurve, ...] = ()
    line: SourceLine = NO_LINE
