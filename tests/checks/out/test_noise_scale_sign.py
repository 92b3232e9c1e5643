from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.out.noise_scale_sign import NoiseScaleSign
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = NoiseScaleSign()
PLACE = Site("", "noise", "vae.py", 12, phase="train", root="model")


def scaled(*negative: float) -> FakeRun:
    return FakeRun().signal("loss", [1.0]).signal("noise.negative", negative, PLACE)


def test_a_scale_that_is_partly_negative_is_an_error_at_its_line() -> None:
    (found,) = findings(CHECK, scaled(0.0, 0.03, 0.03, 0.5, 0.5))
    assert (found.severity, found.step, found.site) == (Severity.ERROR, 1, PLACE)


@pytest.mark.parametrize("values", [(0.02,) * 5, (0.0, 0.0, 0.5, 0.5, 0.5), (0.0,) * 5])
def test_a_scale_that_is_rarely_negative_is_left_alone(values: tuple[float, ...]) -> None:
    assert not findings(CHECK, scaled(*values))


def test_four_forwards_give_no_verdict() -> None:
    run = scaled(0.5, 0.5, 0.5, 0.5)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 5 sampled forwards with noise, has 4"
