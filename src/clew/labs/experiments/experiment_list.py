"""The list of all experiments, in the order they run: cheap and informative ones first."""

from __future__ import annotations

from clew.labs.experiments.base import Experiment
from clew.labs.experiments.data.augmentation_off import AugmentationOff
from clew.labs.experiments.data.label_pairs import LabelPairs
from clew.labs.experiments.data.loader_against_dataset import LoaderAgainstDataset
from clew.labs.experiments.data.permuted_labels import PermutedLabels
from clew.labs.experiments.data.reread_samples import RereadSamples
from clew.labs.experiments.data.suspect_labels import SuspectLabels
from clew.labs.experiments.learning.gradient_noise import GradientNoise
from clew.labs.experiments.learning.growing_subsets import GrowingSubsets
from clew.labs.experiments.learning.other_optimizers import OtherOptimizers
from clew.labs.experiments.learning.overfit_batch import OverfitBatch
from clew.labs.experiments.learning.range_test import RangeTest
from clew.labs.experiments.learning.rate_races import HigherRates, LowerRates
from clew.labs.experiments.learning.redrawn_weights import RedrawnWeights
from clew.labs.experiments.learning.regularisation_off import RegularisationOff
from clew.labs.experiments.learning.toy_ladder import ToyLadder
from clew.labs.experiments.learning.wider_copy import WiderCopy
from clew.labs.experiments.network.batch_independence import BatchIndependence
from clew.labs.experiments.network.finite_differences import FiniteDifferences
from clew.labs.experiments.network.future_inputs import FutureInputs
from clew.labs.experiments.network.loss_minimum import LossMinimum
from clew.labs.experiments.network.meta_forward import MetaForward
from clew.labs.experiments.network.module_contract import ModuleContract
from clew.labs.experiments.network.other_batch_sizes import OtherBatchSizes
from clew.labs.experiments.network.padding_influence import PaddingInfluence
from clew.labs.experiments.network.repeated_step import RepeatedStep
from clew.labs.experiments.network.swapped_inputs import SwappedInputs

EXPERIMENTS: tuple[type[Experiment], ...] = (
    RereadSamples,
    LoaderAgainstDataset,
    SwappedInputs,
    LossMinimum,
    OverfitBatch,
    OtherBatchSizes,
    BatchIndependence,
    LabelPairs,
    FutureInputs,
    ToyLadder,
    LowerRates,
    HigherRates,
    RangeTest,
    FiniteDifferences,
    RegularisationOff,
    RedrawnWeights,
    GradientNoise,
    OtherOptimizers,
    PermutedLabels,
    WiderCopy,
    SuspectLabels,
    RepeatedStep,
    AugmentationOff,
    ModuleContract,
    MetaForward,
    GrowingSubsets,
    PaddingInfluence,
)
