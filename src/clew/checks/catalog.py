"""All checks, listed by hand: what is not here does not run."""

from __future__ import annotations

from difflib import get_close_matches

from clew.checks.act.activation_mean_shift import ActivationMeanShift
from clew.checks.act.activation_scale_off import ActivationScaleOff
from clew.checks.act.dead_units import DeadUnits
from clew.checks.act.poor_initialisation import PoorInitialisation
from clew.checks.act.saturated_activation import SaturatedActivation
from clew.checks.adv.hyperparameters_off import HyperparametersOff
from clew.checks.adv.still_improving import StillImproving
from clew.checks.adv.too_few_examples import TooFewExamples
from clew.checks.base import Check, UnknownCheck
from clew.checks.custom_checks import own_checks
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
from clew.checks.exp.batch_leak import BatchLeak
from clew.checks.exp.cannot_overfit_batch import CannotOverfitBatch
from clew.checks.exp.capacity_too_small import CapacityTooSmall
from clew.checks.exp.custom_layer_broken import CustomLayerBroken
from clew.checks.exp.device_literal import DeviceLiteral
from clew.checks.exp.dimension_mixup import DimensionMixup
from clew.checks.exp.excessive_augmentation import ExcessiveAugmentation
from clew.checks.exp.future_leak import FutureLeak
from clew.checks.exp.gradient_mismatch import GradientMismatch
from clew.checks.exp.input_ignored import InputIgnored
from clew.checks.exp.label_noise import LabelNoise
from clew.checks.exp.loader_corrupts_data import LoaderCorruptsData
from clew.checks.exp.loss_prefers_wrong import LossPrefersWrong
from clew.checks.exp.no_signal import NoSignal
from clew.checks.exp.nondeterministic_step import NondeterministicStep
from clew.checks.exp.optimizer_unfit import OptimizerUnfit
from clew.checks.exp.toy_task_failed import ToyTaskFailed
from clew.checks.grad.exploding_gradient import ExplodingGradient
from clew.checks.grad.vanishing_gradient import VanishingGradient
from clew.checks.grph.detached_graph import DetachedGraph
from clew.checks.grph.module_not_registered import ModuleNotRegistered
from clew.checks.grph.unused_parameter import UnusedParameter
from clew.checks.grph.weights_untied import WeightsUntied
from clew.checks.loop.accumulation_lost import AccumulationLost
from clew.checks.loop.accumulation_unscaled import AccumulationUnscaled
from clew.checks.loop.clip_ineffective import ClipIneffective
from clew.checks.loop.missing_backward import MissingBackward
from clew.checks.loop.missing_optimizer_step import MissingOptimizerStep
from clew.checks.loop.optimizer_stale import OptimizerStale
from clew.checks.loop.scheduler_before_optimizer import SchedulerBeforeOptimizer
from clew.checks.loop.scheduler_stuck import SchedulerStuck
from clew.checks.loss.initial_loss_off_chance import InitialLossOffChance
from clew.checks.loss.logits_into_bce import LogitsIntoBce
from clew.checks.loss.loss_term_imbalance import LossTermImbalance
from clew.checks.loss.loss_unfit import LossUnfit
from clew.checks.loss.raw_scores_into_nll import RawScoresIntoNll
from clew.checks.loss.sigmoid_before_bce_with_logits import SigmoidBeforeBceWithLogits
from clew.checks.loss.silent_broadcast import SilentBroadcast
from clew.checks.loss.softmax_before_cross_entropy import SoftmaxBeforeCrossEntropy
from clew.checks.loss.wrong_softmax_dim import WrongSoftmaxDim
from clew.checks.met.metric_disagrees import MetricDisagrees
from clew.checks.met.metric_implausible import MetricImplausible
from clew.checks.mode.batch_size_unfit import BatchSizeUnfit
from clew.checks.mode.eval_mode_in_training import EvalModeInTraining
from clew.checks.mode.train_mode_in_evaluation import TrainModeInEvaluation
from clew.checks.num.half_precision_overflow import HalfPrecisionOverflow
from clew.checks.num.half_precision_underflow import HalfPrecisionUnderflow
from clew.checks.num.non_finite import NonFinite
from clew.checks.opt.frozen_parameters import FrozenParameters
from clew.checks.opt.learning_rate_too_high import LearningRateTooHigh
from clew.checks.opt.learning_rate_too_low import LearningRateTooLow
from clew.checks.opt.missing_zero_grad import MissingZeroGrad
from clew.checks.opt.over_regularised import OverRegularised
from clew.checks.opt.parameter_not_in_optimizer import ParameterNotInOptimizer
from clew.checks.opt.update_ratio_off import UpdateRatioOff
from clew.checks.opt.weights_diverging import WeightsDiverging
from clew.checks.out.mask_inverted import MaskInverted
from clew.checks.out.noise_scale_sign import NoiseScaleSign
from clew.checks.out.output_activation_unfit import OutputActivationUnfit
from clew.checks.out.prediction_collapse import PredictionCollapse
from clew.checks.perf.data_in_python_lists import DataInPythonLists
from clew.checks.perf.double_precision import DoublePrecision
from clew.checks.perf.eager_overhead import EagerOverhead
from clew.checks.perf.graph_in_evaluation import GraphInEvaluation
from clew.checks.perf.host_sync_in_step import HostSyncInStep
from clew.checks.perf.large_sample_transfer import LargeSampleTransfer
from clew.checks.perf.loader_worker_count import LoaderWorkerCount
from clew.checks.perf.memory_format_unfit import MemoryFormatUnfit
from clew.checks.perf.memory_growth import MemoryGrowth
from clew.checks.perf.optimizer_per_parameter import OptimizerPerParameter
from clew.checks.perf.padding_waste import PaddingWaste
from clew.checks.perf.python_bound_step import PythonBoundStep
from clew.checks.perf.slow_loader import SlowLoader
from clew.checks.perf.small_batch_throughput import SmallBatchThroughput
from clew.checks.perf.tensor_from_array_list import TensorFromArrayList
from clew.checks.str.dropout_misplaced import DropoutMisplaced
from clew.checks.str.no_nonlinearity import NoNonlinearity
from clew.checks.str.redundant_bias import RedundantBias
from clew.checks.sym.loss_oscillates import LossOscillates
from clew.checks.sym.loss_spikes import LossSpikes
from clew.checks.sym.loss_stuck import LossStuck
from clew.checks.sym.overfitting import Overfitting
from clew.checks.sym.underfitting import Underfitting

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
