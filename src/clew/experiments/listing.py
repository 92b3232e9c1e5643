"""The experiments there are, in the order in which they run: cheap and telling ones first."""

from __future__ import annotations

from clew.experiments.api import Experiment
from clew.experiments.batch_leak import BatchLeak
from clew.experiments.batch_size_unfit import BatchSizeUnfit
from clew.experiments.cannot_overfit_batch import CannotOverfitBatch
from clew.experiments.capacity_too_small import CapacityTooSmall
from clew.experiments.custom_layer_broken import CustomLayerBroken
from clew.experiments.dataset_mutates import DatasetMutates
from clew.experiments.device_literal import DeviceLiteral
from clew.experiments.dimension_mixup import DimensionMixup
from clew.experiments.excessive_augmentation import ExcessiveAugmentation
from clew.experiments.future_leak import FutureLeak
from clew.experiments.gradient_mismatch import GradientMismatch
from clew.experiments.hyperparameters_off import HyperparametersOff
from clew.experiments.input_ignored import InputIgnored
from clew.experiments.label_noise import LabelNoise
from clew.experiments.labels_misaligned import LabelsMisaligned
from clew.experiments.learning_rate_too_high import LearningRateTooHigh
from clew.experiments.learning_rate_too_low import LearningRateTooLow
from clew.experiments.loader_corrupts_data import LoaderCorruptsData
from clew.experiments.loss_prefers_wrong import LossPrefersWrong
from clew.experiments.mask_inverted import MaskInverted
from clew.experiments.no_signal import NoSignal
from clew.experiments.nondeterministic_step import NondeterministicStep
from clew.experiments.optimizer_unfit import OptimizerUnfit
from clew.experiments.over_regularised import OverRegularised
from clew.experiments.poor_initialisation import PoorInitialisation
from clew.experiments.too_few_examples import TooFewExamples
from clew.experiments.toy_task_failed import ToyTaskFailed

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
