"""All checks, listed by hand: what is not here does not run."""

from __future__ import annotations

from difflib import get_close_matches

from clew.checks.activations.dead_units import DeadUnits
from clew.checks.api import Check, UnknownCheck
from clew.checks.data.unnormalised_input import UnnormalisedInput
from clew.checks.gradients.exploding_gradient import ExplodingGradient
from clew.checks.gradients.vanishing_gradient import VanishingGradient
from clew.checks.losses.silent_broadcast import SilentBroadcast
from clew.checks.losses.softmax_before_cross_entropy import SoftmaxBeforeCrossEntropy
from clew.checks.modes.eval_mode_in_training import EvalModeInTraining
from clew.checks.numerics.non_finite import NonFinite
from clew.checks.optimisation.frozen_parameters import FrozenParameters
from clew.checks.optimisation.learning_rate_too_high import LearningRateTooHigh
from clew.checks.optimisation.missing_zero_grad import MissingZeroGrad
from clew.checks.optimisation.parameter_not_in_optimizer import ParameterNotInOptimizer

__all__ = ["CHECKS", "UnknownCheck", "everything", "find"]

CHECKS: tuple[type[Check], ...] = (
    NonFinite,
    MissingZeroGrad,
    ParameterNotInOptimizer,
    FrozenParameters,
    LearningRateTooHigh,
    VanishingGradient,
    ExplodingGradient,
    DeadUnits,
    SoftmaxBeforeCrossEntropy,
    SilentBroadcast,
    EvalModeInTraining,
    UnnormalisedInput,
)


def everything() -> list[Check]:
    """Every check with its default thresholds."""
    return [kind() for kind in CHECKS]


def find(name: str) -> Check:
    """The check of a name or id; `UnknownCheck` suggests what may have been meant."""
    wanted = name.strip().lower()
    for kind in CHECKS:
        if wanted in (kind.name, kind.id.lower()):
            return kind()
    known = [kind.name for kind in CHECKS]
    raise UnknownCheck(name, get_close_matches(wanted.replace("_", "-"), known, n=3, cutoff=0.5))
