from __future__ import annotations

from collections.abc import Sequence

from fake_run import LOSS, FakeRun, findings

from clew.checks.act.activation_mean_shift import ActivationMeanShift
from clew.checks.act.activation_scale_off import ActivationScaleOff
from clew.records.finding import Severity
from clew.records.site import Site

SCALE, SHIFT = ActivationScaleOff(), ActivationMeanShift()


def run(stds: Sequence[float], means: Sequence[float] = (), end: float = 1.0, extra: str = "ReLU") -> FakeRun:
    """A hidden layer, and an output layer that is far off in every way."""
    made = FakeRun().model(("a", "Linear"), ("b", "Linear"), ("extra", extra))
    made.signal("loss", [1.0] * 30 + [end] * 30, LOSS)
    for path, column in (("a", list(stds)), ("b", [1e6] * len(stds))):
        made.signal("activation.std", column, Site(module=path, phase="train", root="model"))
    for path, column in (("a", list(means)), ("b", [1e9] * len(means))):
        made.signal("activation.mean", column, Site(module=path, phase="train", root="model"))
    return made


def test_a_hidden_layer_that_spreads_over_a_hundred_is_found_and_the_output_is_not() -> None:
    (found,) = findings(SCALE, run([101.0] * 20))
    assert (found.severity, found.site.module) == (Severity.WARNING, "a")
    assert not findings(SCALE, run([100.0] * 20))


def test_nineteen_samples_give_no_verdict() -> None:
    few = run([101.0] * 19, [1e6] * 19)
    assert not findings(SCALE, few)
    assert not findings(SHIFT, few)
    assert SCALE.unjudged(few.view()) == SHIFT.unjudged(few.view()) == "needs 20 sampled steps, has 19"


def test_where_the_loss_falls_or_is_normalised_it_is_advice() -> None:
    assert [f.severity for f in findings(SCALE, run([101.0] * 20, end=0.79))] == [Severity.ADVICE]
    assert [f.severity for f in findings(SCALE, run([101.0] * 20, extra="BatchNorm1d"))] == [Severity.ADVICE]


def test_an_offset_over_ten_times_the_spread_is_found_on_either_side_of_zero() -> None:
    for sign in (1, -1):
        (found,) = findings(SHIFT, run([1.0] * 20, [10.1 * sign] * 20))
        assert (found.severity, found.site.module) == (Severity.WARNING, "a")
    assert not findings(SHIFT, run([1.0] * 20, [10.0] * 20))


def test_an_offset_without_any_spread_can_not_be_judged() -> None:
    assert not findings(SHIFT, run([0.0] * 20, [10.0] * 20))
