"""A run from another version, or a damaged disk, may hold anything: no check fails over it."""

from __future__ import annotations

from typing import Any

import pytest
from subjects import Fact, Recorded

from clew.checks.act.poor_initialisation import PoorInitialisation
from clew.checks.adv.hyperparameters_off import HyperparametersOff
from clew.checks.base import Check
from clew.checks.exp.cannot_overfit_batch import CannotOverfitBatch
from clew.checks.exp.capacity_too_small import CapacityTooSmall
from clew.checks.exp.optimizer_unfit import OptimizerUnfit
from clew.checks.exp.toy_task_failed import ToyTaskFailed
from clew.checks.mode.batch_size_unfit import BatchSizeUnfit
from clew.checks.opt.learning_rate_too_high import LearningRateTooHigh
from clew.checks.opt.learning_rate_too_low import LearningRateTooLow
from clew.checks.opt.over_regularised import OverRegularised
from clew.checks.run_view import RunView
from clew.checks.runner import ask

CHECKS: tuple[type[Check], ...] = (
    BatchSizeUnfit,
    CannotOverfitBatch,
    CapacityTooSmall,
    HyperparametersOff,
    LearningRateTooHigh,
    LearningRateTooLow,
    OptimizerUnfit,
    OverRegularised,
    PoorInitialisation,
    ToyTaskFailed,
)
KEYS = (
    "attempts", "rungs", "rows", "gains", "layers", "ends", "fresh_ends", "points", "narrow", "wide", "start",
    "samples", "steps", "batch", "rate", "low", "best", "line", "dropouts", "decay",
)  # fmt: skip
NONSENSE: tuple[Any, ...] = (
    None,
    "nan",
    [],
    {},
    [{}],
    [[]],
    [None, "inf", 3],
    "text",
    -1,
    [{"gains": ["inf"]}] * 2,
)


def said(check: Check, fact: dict[str, Any]) -> tuple[list[Any], str | None]:
    return ask(check, RunView(Recorded(Fact(f"experiment.{check.name}", fact))))


@pytest.mark.parametrize("kind", CHECKS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("value", NONSENSE, ids=repr)
def test_nonsense_is_no_finding_and_no_failure(kind: type[Check], value: Any) -> None:
    found, reason = said(kind(), {"status": "done", "data": dict.fromkeys(KEYS, value), "plots": value})
    assert found == []
    assert reason is None or "failed" not in reason


@pytest.mark.parametrize("kind", CHECKS, ids=lambda kind: kind.name)
def test_an_experiment_that_could_not_be_made_gives_its_reason(kind: type[Check]) -> None:
    assert said(kind(), {"status": "unjudged", "reason": "no loader was seen"}) == ([], "no loader was seen")
