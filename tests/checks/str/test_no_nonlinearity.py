from __future__ import annotations

from typing import Any

import pytest
from fake_run import FakeRun, findings

from clew.checks.str.no_nonlinearity import NoNonlinearity
from clew.records.finding import Severity

CHECK = NoNonlinearity()


def pair(widths: list[int], kind: str = "Linear", **more: Any) -> dict[str, Any]:
    usual = {"first": "a", "then": "b", "kinds": [kind, kind], "widths": widths, "kernels": [[], []]}
    return {**usual, "grouped": False, "through": [], **more}


def net(*pairs: dict[str, Any]) -> FakeRun:
    run = FakeRun().model(("a", "Linear"), ("b", "Linear"), ("c", "Linear"))
    return run.fact("structure", root="model", pairs=list(pairs), biases=[], dropouts=[], squashing=[])


def test_two_layers_in_a_row_are_found_at_the_first() -> None:
    (found,) = findings(CHECK, net(pair([8, 16, 4])))
    assert (found.severity, found.site.module) == (Severity.WARNING, "a")
    assert "no activation function between a and b: " in found.message


def test_modules_between_that_are_no_activation_are_named() -> None:
    (found,) = findings(CHECK, net(pair([8, 16, 4], through=["drop", "norm"])))
    assert "between a and b (only drop, norm)" in found.message


def test_a_bottleneck_is_a_factorisation_and_one_unit_more_is_not() -> None:
    assert not findings(CHECK, net(pair([8, 7, 8])))
    assert findings(CHECK, net(pair([8, 8, 8])))


@pytest.mark.parametrize(
    "more",
    [
        {"grouped": True},
        {"kernels": [[1, 1], [3, 3]]},
        {"kinds": ["ConvTranspose2d", "Conv2d"]},
        {"kinds": ["Conv2d", "Linear"]},
    ],
)
def test_factorised_convolutions_and_changes_of_kind_are_left_alone(more: dict[str, Any]) -> None:
    assert not findings(CHECK, net(pair([8, 8, 8], "Conv2d", **more)))


def test_the_first_pair_of_the_forward_pass_leads() -> None:
    later = pair([8, 8, 8], first="b", then="c")
    assert [f.site.module for f in findings(CHECK, net(later, pair([8, 8, 8])))] == ["a", "b"]


def test_only_the_newest_structure_of_a_model_counts() -> None:
    run = net(pair([8, 8, 8]))
    run.fact("structure", 1, root="model", pairs=[], biases=[], dropouts=[], squashing=[])
    assert not findings(CHECK, run)
