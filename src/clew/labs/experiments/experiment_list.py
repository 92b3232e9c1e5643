"""The experiments there are, in the order in which they run: cheap and telling ones first."""

from __future__ import annotations

from clew.labs.experiments.base import Experiment
from clew.labs.experiments.data.augmentation_off import ExcessiveAugmentation
from clew.labs.experiments.data.label_pairs import LabelsMisaligned
from clew.labs.experiments.data.loader_against_dataset import LoaderCorruptsData
from clew.labs.experiments.data.permuted_labels import NoSignal
from clew.labs.experiments.data.reread_samples import DatasetMutates
from clew.labs.experiments.data.suspect_labels import LabelNoise
from clew.labs.experiments.learning.gradient_noise import BatchSizeUnfit
from clew.labs.experiments.learning.growing_subsets import TooFewExamples
from clew.labs.experiments.learning.other_optimizers import OptimizerUnfit
from clew.labs.experiments.learning.overfit_batch import CannotOverfitBatch
from clew.labs.experiments.learning.range_test import HyperparametersOff
from clew.labs.experiments.learning.redrawn_weights import PoorInitialisation
from clew.labs.experiments.learning.regularisation_off import OverRegularised
from clew.labs.experiments.learning.toy_ladder import ToyTaskFailed
from clew.labs.experiments.learning.wider_copy import CapacityTooSmall
from clew.labs.experiments.network.batch_independence import BatchLeak
from clew.labs.experiments.network.finite_differences import GradientMismatch
from clew.labs.experiments.network.future_inputs import FutureLeak
from clew.labs.experiments.network.loss_minimum import LossPrefersWrong
from clew.labs.experiments.network.meta_forward import DeviceLiteral
from clew.labs.experiments.network.module_contract import CustomLayerBroken
from clew.labs.experiments.network.other_batch_sizes import DimensionMixup
from clew.labs.experiments.network.padding_influence import MaskInverted
from clew.labs.experiments.network.repeated_step import NondeterministicStep
from clew.labs.experiments.network.swapped_inputs import InputIgnored
from clew.labs.experiments.tools.rate_races import LearningRateTooHigh, LearningRateTooLow

EXPERIMENTS: tuple[type[Experiment], ...] = (
    DatasetMutates,
    LoaderCorruptsData,
    InputIgnored,
    LossPrefersWrong,
    CannotOverfitBatch,
    DimensionMixup,
    BatchLeak,
    LabelsMisaligned,
    FutureLeak,
    ToyTaskFailed,
    LearningRateTooHigh,
    LearningRateTooLow,
    HyperparametersOff,
    GradientMismatch,
    OverRegularised,
    PoorInitialisation,
    BatchSizeUnfit,
    OptimizerUnfit,
    NoSignal,
    CapacityTooSmall,
    LabelNoise,
    NondeterministicStep,
    ExcessiveAugmentation,
    CustomLayerBroken,
    DeviceLiteral,
    TooFewExamples,
    MaskInverted,
)
