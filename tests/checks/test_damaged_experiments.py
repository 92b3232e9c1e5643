"""A run from another version or a damaged disk may contain anything: no check fails on it."""

from __future__ import annotations

from typing import Any

import pytest
from fake_run import FakeRun

from clew.checks import catalog
from clew.checks.base import Check
from clew.checks.needs import fact_kinds
from clew.checks.runner import ask

CHECKS = [kind for kind in catalog.CHECKS if f"experiment.{kind.name}" in fact_kinds(kind.needs)]
# Not those that are a finding by being there at all, such as the place of a tensor on a fixed device.
KEYS = (
    "accuracy", "alike", "attempts", "autograd", "autograd_slope", "batch", "batches", "best",
    "by_position", "by_sample", "chance", "clear", "coarse_slope", "collate", "compared", "curves", "dataset",
    "decay", "detail", "deviations", "distance", "dropouts", "effect", "ends", "equal",
    "error", "fall", "far", "faults", "fields", "file", "finite", "first", "fresh_ends",
    "functions", "gains", "generators", "given", "held", "judged", "last", "layers", "learners",
    "line", "losses", "low", "meant", "means", "message", "mirrored", "model", "module", "name", "narrow",
    "noise", "of", "op", "padding_effect", "pairs", "param", "place", "points", "position", "positions",
    "random", "rate", "read", "reads", "relation", "relative", "right", "root", "row", "rows", "rungs",
    "samples", "scores", "shape", "sides", "sizes", "slope", "start", "steps", "stops",
    "suspect_count", "suspects", "task", "time_first", "transforms", "trials", "tried", "tries", "use",
    "verdict", "what", "whole", "why", "wide", "wrong", "x", "y",
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
    return ask(check, FakeRun().fact(f"experiment.{check.name}", **fact).view())


@pytest.mark.parametrize("kind", CHECKS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("value", NONSENSE, ids=repr)
def test_nonsense_is_no_finding_and_no_failure(kind: type[Check], value: Any) -> None:
    found, reason = said(kind(), {"status": "done", "data": dict.fromkeys(KEYS, value), "plots": value})
    assert found == []
    assert reason is None or "failed" not in reason


@pytest.mark.parametrize("kind", CHECKS, ids=lambda kind: kind.name)
def test_an_experiment_that_could_not_be_made_gives_its_reason(kind: type[Check]) -> None:
    assert said(kind(), {"status": "unjudged", "reason": "no loader was seen"}) == ([], "no loader was seen")
