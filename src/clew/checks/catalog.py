"""All checks, listed by hand: a check that is not listed here does not run."""

from __future__ import annotations

from difflib import get_close_matches

from clew.checks.activations.activation_mean_shift import ActivationMeanShift
from clew.checks.activations.activation_scale_off import ActivationScaleOff
from clew.checks.activations.dead_units import DeadUnits
from clew.checks.activations.poor_initialisation import PoorInitialisation
from clew.checks.activations.saturated_activation import SaturatedActivation
from clew.checks.advice.hyperparameters_off import HyperparametersOff
from clew.checks.advice.still_improving import StillImproving
from clew.checks.advice.too_few_examples import TooFewExamples
from clew.checks.api import Check, UnknownCheck
from clew.checks.custom import own_checks
from clew.checks.data.augmentation_repeats import AugmentationRepeats
from clew.checks.data.class_imbalance import ClassImbalance
from clew.checks.data.constant_input import ConstantInput
from clew.checks.data.constant_target import ConstantTarget
from clew.checks.data.corrupt_samples import CorruptSamples
from clew.checks.data.dataset_mutates import DatasetMutates
from clew.checks.data.duplicate_samples import DuplicateSamples
from clew.checks.data.inconsistent_samples import InconsistentSamples
from clew.checks.data.label_map_mismatch import LabelMapMismatch
from clew.checks.data.labels_misaligned import LabelsMisaligned
from clew.checks.data.nonfinite_input import NonfiniteInput
from clew.checks.data.outlier_samples import OutlierSamples
from clew.checks.data.pretrained_preprocessing_mismatch import PretrainedPreprocessingMismatch
from clew.checks.data.repeated_batch import RepeatedBatch
from clew.checks.data.single_label_batches import SingleLabelBatches
from clew.checks.data.train_val_leakage import TrainValLeakage
from clew.checks.data.train_val_preprocessing_mismatch import TrainValPreprocessingMismatch
from clew.checks.data.unnormalised_input import UnnormalisedInput
from clew.checks.data.unnormalised_target import UnnormalisedTarget
from clew.checks.data.unshuffled_data import UnshuffledData
from clew.checks.data.worker_seed_duplicated import WorkerSeedDuplicated
from clew.checks.experiments.batch_leak import BatchLeak
from clew.checks.experiments.cannot_overfit_batch import CannotOverfitBatch
from clew.checks.experiments.capacity_too_small import CapacityTooSmall
from clew.checks.experiments.custom_layer_broken import CustomLayerBroken
from clew.checks.experiments.device_literal import DeviceLiteral
from clew.checks.experiments.dimension_mixup import DimensionMixup
from clew.checks.experiments.excessive_augmentation import ExcessiveAugmentation
from clew.checks.experiments.future_leak import FutureLeak
from clew.checks.experiments.gradient_mismatch import GradientMismatch
from clew.checks.experiments.input_ignored import InputIgnored
from clew.checks.experiments.label_noise import LabelNoise
from clew.checks.experiments.loader_corrupts_data import LoaderCorruptsData
from clew.checks.experiments.loss_prefers_wrong import LossPrefersWrong
from clew.checks.experiments.no_signal import NoSignal
from clew.checks.experiments.nondeterministic_step import NondeterministicStep
from clew.checks.experiments.optimizer_unfit import OptimizerUnfit
from clew.checks.experiments.toy_task_failed import ToyTaskFailed
from clew.checks.gradients.exploding_gradient import ExplodingGradient
from clew.checks.gradients.vanishing_gradient import VanishingGradient
from clew.checks.graph.detached_graph import DetachedGraph
from clew.checks.graph.module_not_registered import ModuleNotRegistered
from clew.checks.graph.unused_parameter import UnusedParameter
from clew.checks.graph.weights_untied import WeightsUntied
from clew.checks.losses.initial_loss_off_chance import InitialLossOffChance
from clew.checks.losses.logits_into_bce import LogitsIntoBce
from clew.checks.losses.loss_term_imbalance import LossTermImbalance
from clew.checks.losses.loss_unfit import LossUnfit
from clew.checks.losses.raw_scores_into_nll import RawScoresIntoNll
from clew.checks.losses.sigmoid_before_bce_with_logits import SigmoidBeforeBceWithLogits
from clew.checks.losses.silent_broadcast import SilentBroadcast
from clew.checks.losses.softmax_before_cross_entropy import SoftmaxBeforeCrossEntropy
from clew.checks.losses.wrong_softmax_dim import WrongSoftmaxDim
from clew.checks.metrics.metric_disagrees import MetricDisagrees
from clew.checks.metrics.metric_implausible import MetricImplausible
from clew.checks.modes.batch_size_unfit import BatchSizeUnfit
from clew.checks.modes.eval_mode_in_training import EvalModeInTraining
from clew.checks.modes.train_mode_in_evaluation import TrainModeInEvaluation
from clew.checks.numerics.half_precision_overflow import HalfPrecisionOverflow
from clew.checks.numerics.half_precision_underflow import HalfPrecisionUnderflow
from clew.checks.numerics.non_finite import NonFinite
from clew.checks.optimisation.accumulation_lost import AccumulationLost
from clew.checks.optimisation.accumulation_unscaled import AccumulationUnscaled
from clew.checks.optimisation.clip_ineffective import ClipIneffective
from clew.checks.optimisation.frozen_parameters import FrozenParameters
from clew.checks.optimisation.learning_rate_too_high import LearningRateTooHigh
from clew.checks.optimisation.learning_rate_too_low import LearningRateTooLow
from clew.checks.optimisation.missing_backward import MissingBackward
from clew.checks.optimisation.missing_optimizer_step import MissingOptimizerStep
from clew.checks.optimisation.missing_zero_grad import MissingZeroGrad
from clew.checks.optimisation.optimizer_stale import OptimizerStale
from clew.checks.optimisation.over_regularised import OverRegularised
from clew.checks.optimisation.parameter_not_in_optimizer import ParameterNotInOptimizer
from clew.checks.optimisation.scheduler_before_optimizer import SchedulerBeforeOptimizer
from clew.checks.optimisation.scheduler_stuck import SchedulerStuck
from clew.checks.optimisation.update_ratio_off import UpdateRatioOff
from clew.checks.optimisation.weights_diverging import WeightsDiverging
from clew.checks.outputs.mask_inverted import MaskInverted
from clew.checks.outputs.noise_scale_sign import NoiseScaleSign
from clew.checks.outputs.output_activation_unfit import OutputActivationUnfit
from clew.checks.outputs.prediction_collapse import PredictionCollapse
from clew.checks.speed.data_in_python_lists import DataInPythonLists
from clew.checks.speed.double_precision import DoublePrecision
from clew.checks.speed.eager_overhead import EagerOverhead
from clew.checks.speed.graph_in_evaluation import GraphInEvaluation
from clew.checks.speed.host_sync_in_step import HostSyncInStep
from clew.checks.speed.large_sample_transfer import LargeSampleTransfer
from clew.checks.speed.loader_worker_count import LoaderWorkerCount
from clew.checks.speed.memory_format_unfit import MemoryFormatUnfit
from clew.checks.speed.memory_growth import MemoryGrowth
from clew.checks.speed.optimizer_per_parameter import OptimizerPerParameter
from clew.checks.speed.padding_waste import PaddingWaste
from clew.checks.speed.python_bound_step import PythonBoundStep
from clew.checks.speed.slow_loader import SlowLoader
from clew.checks.speed.small_batch_throughput import SmallBatchThroughput
from clew.checks.speed.tensor_from_array_list import TensorFromArrayList
from clew.checks.structure.dropout_misplaced import DropoutMisplaced
from clew.checks.structure.no_nonlinearity import NoNonlinearity
from clew.checks.structure.redundant_bias import RedundantBias
from clew.checks.symptoms.loss_oscillates import LossOscillates
from clew.checks.symptoms.loss_spikes import LossSpikes
from clew.checks.symptoms.loss_stuck import LossStuck
from clew.checks.symptoms.overfitting import Overfitting
from clew.checks.symptoms.underfitting import Underfitting

__all__ = ["CHECKS", "UnknownCheck", "everything", "find"]

CHECKS: tuple[type[Check], ...] = (
    NonFinite,
    HalfPrecisionOverflow,
    HalfPrecisionUnderflow,
    MissingZeroGrad,
    MissingBackward,
    MissingOptimizerStep,
    AccumulationLost,
    AccumulationUnscaled,
    OptimizerStale,
    SchedulerBeforeOptimizer,
    SchedulerStuck,
    ClipIneffective,
    ModuleNotRegistered,
    DetachedGraph,
    UnusedParameter,
    WeightsUntied,
    ParameterNotInOptimizer,
    FrozenParameters,
    LearningRateTooHigh,
    VanishingGradient,
    ExplodingGradient,
    DeadUnits,
    SoftmaxBeforeCrossEntropy,
    SilentBroadcast,
    InitialLossOffChance,
    LogitsIntoBce,
    LossTermImbalance,
    LossUnfit,
    RawScoresIntoNll,
    SigmoidBeforeBceWithLogits,
    WrongSoftmaxDim,
    MetricDisagrees,
    MetricImplausible,
    MaskInverted,
    NoiseScaleSign,
    OutputActivationUnfit,
    PredictionCollapse,
    EvalModeInTraining,
    TrainModeInEvaluation,
    BatchSizeUnfit,
    UnnormalisedInput,
    NonfiniteInput,
    ConstantInput,
    RepeatedBatch,
    UnshuffledData,
    SingleLabelBatches,
    ClassImbalance,
    ConstantTarget,
    UnnormalisedTarget,
    TrainValPreprocessingMismatch,
    TrainValLeakage,
    LabelsMisaligned,
    LabelMapMismatch,
    DatasetMutates,
    PretrainedPreprocessingMismatch,
    WorkerSeedDuplicated,
    AugmentationRepeats,
    CorruptSamples,
    InconsistentSamples,
    DuplicateSamples,
    OutlierSamples,
    NoNonlinearity,
    RedundantBias,
    DropoutMisplaced,
    LearningRateTooLow,
    Overfitting,
    PoorInitialisation,
    SaturatedActivation,
    OverRegularised,
    LossStuck,
    LossSpikes,
    LossOscillates,
    Underfitting,
    WeightsDiverging,
    UpdateRatioOff,
    ActivationScaleOff,
    ActivationMeanShift,
    StillImproving,
    TooFewExamples,
    HyperparametersOff,
    BatchLeak,
    FutureLeak,
    CannotOverfitBatch,
    ToyTaskFailed,
    GradientMismatch,
    InputIgnored,
    LoaderCorruptsData,
    NoSignal,
    LossPrefersWrong,
    OptimizerUnfit,
    DimensionMixup,
    LabelNoise,
    CapacityTooSmall,
    NondeterministicStep,
    ExcessiveAugmentation,
    CustomLayerBroken,
    DeviceLiteral,
    SlowLoader,
    LoaderWorkerCount,
    LargeSampleTransfer,
    HostSyncInStep,
    SmallBatchThroughput,
    PythonBoundStep,
    MemoryGrowth,
    DataInPythonLists,
    DoublePrecision,
    TensorFromArrayList,
    GraphInEvaluation,
    OptimizerPerParameter,
    MemoryFormatUnfit,
    EagerOverhead,
    PaddingWaste,
)


def everything() -> list[Check]:
    """Every check with its default thresholds, the user's own last."""
    return [*(kind() for kind in CHECKS), *own_checks()]


def find(name: str) -> Check:
    """The check of a name or id; `UnknownCheck` suggests what may have been meant."""
    wanted = name.strip().lower()
    checks = everything()
    for check in checks:
        if wanted in (check.name, check.id.lower()):
            return check
    known = [check.name for check in checks]
    raise UnknownCheck(name, get_close_matches(wanted.replace("_", "-"), known, n=3, cutoff=0.6))
