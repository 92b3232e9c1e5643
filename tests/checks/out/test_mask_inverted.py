from __future__ import annotations

import math

import pytest
from fake_run import FakeRun, findings

from clew.checks.out.mask_inverted import MaskInverted
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = MaskInverted()
NAN = math.nan


def masked(
    inverted: list[float], empty: float = 0.0, future: float = NAN, op: str = "scaled_dot_product_attention"
) -> FakeRun:
    site = Site("block", op, "net.py", 20, phase="train", root="model")
    run = FakeRun().signal("loss", [1.0]).signal("mask.inverted", inverted, site)
    run.signal("mask.padding", [0.25] * len(inverted), site).signal(
        "mask.empty", [empty] * len(inverted), site
    )
    return run.signal("mask.future_only", [future] * len(inverted), site)


def test_a_mask_that_hides_just_the_real_tokens_is_an_error_at_its_line() -> None:
    (found,) = findings(CHECK, masked([1.0, 0.99, 1.0]))
    assert (found.severity, found.site.line) == (Severity.ERROR, 20)
    assert "25% of the tokens" in found.message
    assert "!= pad" in found.fix


@pytest.mark.parametrize("values", [[1.0, 0.98, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, NAN]])
def test_a_mask_that_is_not_always_the_opposite_is_left_alone(values: list[float]) -> None:
    assert not findings(CHECK, masked(values))


def test_pooling_over_padding_is_named_so() -> None:
    assert "pooling" in findings(CHECK, masked([1.0] * 3, op="mul"))[0].message


def test_a_causal_mask_that_shows_only_the_future_is_an_error() -> None:
    (found,) = findings(CHECK, masked([NAN] * 3, empty=NAN, future=1.0))
    assert "comes after" in found.message
    assert not findings(CHECK, masked([NAN] * 3, empty=NAN, future=0.0))


@pytest.mark.parametrize(("empty", "found"), [(0.02, 1), (0.01, 0)])
def test_samples_of_which_everything_is_hidden_are_a_warning(empty: float, found: int) -> None:
    assert len(findings(CHECK, masked([0.0] * 3, empty=empty))) == found


def test_two_forwards_give_no_verdict() -> None:
    run = masked([1.0, 1.0])
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 3 sampled forwards with a mask, has 2"


@pytest.mark.parametrize(
    ("effect", "read", "by_position", "count"),
    [(0.0011, 1, False, 1), (0.001, 1, False, 0), (0.5, 2, False, 0), (0.5, 0, True, 1), (0.5, 1, True, 0)],
)
def test_an_experiment_shows_a_model_that_reads_the_padding_alone(
    effect: float, read: int, by_position: bool, count: int
) -> None:
    data = {"padding_effect": effect, "positions": 4, "read": read, "by_position": by_position}
    found = findings(CHECK, FakeRun().experiment("mask-inverted", **data))
    assert [(f.severity, f.confidence) for f in found] == [(Severity.ERROR, "certain")] * count
