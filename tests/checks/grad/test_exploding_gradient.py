from __future__ import annotations

import math

from fake_run import LOSS, STEP, FakeRun, findings, weight

from clew.checks.grad.exploding_gradient import ExplodingGradient
from clew.records.finding import Severity

CHECK = ExplodingGradient()


def norms(*values: float, loss: tuple[float, float] = (1.0, 2.0)) -> FakeRun:
    """Gradient norms, and a loss that goes straight from one value to another."""
    first, last = loss
    slope = [first + (last - first) * n / max(len(values) - 1, 1) for n in range(len(values))]
    return FakeRun().signal("grad.norm", values, STEP).signal("loss", slope, LOSS)


def test_sustained_growth_beyond_a_hundredfold_is_a_warning() -> None:
    (found,) = findings(CHECK, norms(*[1.0] * 20, *[101.0] * 20))
    assert (found.severity, found.site, found.step) == (Severity.WARNING, STEP, 20)
    assert "grew from 1 to 101" in found.message
    assert not findings(CHECK, norms(*[1.0] * 20, *[100.0] * 20))


def test_one_step_too_few_gives_no_verdict() -> None:
    run = norms(*[1.0] * 19, *[1000.0] * 20)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 40 steps, has 39"


def test_growth_while_the_loss_falls_is_fine() -> None:
    assert not findings(CHECK, norms(*[1.0] * 20, *[1000.0] * 20, loss=(2.0, 1.0)))


def test_a_few_spikes_are_fine() -> None:
    assert not findings(CHECK, norms(*[1.0] * 20, *[1e6, 1.0] * 20))


def test_a_norm_that_starts_large_and_falls_is_fine() -> None:
    assert not findings(CHECK, norms(*[1e8 / 2**n for n in range(60)]))


def test_a_thousandfold_growth_up_to_a_nan_is_an_error() -> None:
    (found,) = findings(CHECK, norms(*[1.0] * 10, 30.0, 1000.0, math.nan))
    assert (found.severity, found.step) == (Severity.ERROR, 11)
    assert "then became non-finite (step 12)" in found.message
    assert not findings(CHECK, norms(*[1.0] * 10, 30.0, 999.0, math.nan))


def test_growth_within_three_steps_is_seen() -> None:
    assert findings(CHECK, norms(2.0, 1e5, math.inf))
    assert not findings(CHECK, norms(2.0, math.inf)), "one value has not grown"


def test_a_nan_out_of_ordinary_gradients_is_another_fault() -> None:
    assert not findings(CHECK, norms(*[1.0] * 40, math.nan))


def test_a_first_norm_of_zero_is_no_measure() -> None:
    assert not findings(CHECK, norms(*[0.0] * 20, *[1.0] * 20))


def along_depth(*gradients: float) -> FakeRun:
    run = norms(*[1.0] * 40).model(*((f"l{n}", "Linear") for n in range(len(gradients))))
    for n, gradient in enumerate(gradients):
        run.signal("gradient.norm", [gradient] * 20, weight(f"l{n}"))
        run.signal("weight.norm", [1.0] * 20, weight(f"l{n}"))
    return run


def test_growth_along_depth_is_found_at_the_first_layer() -> None:
    (found,) = findings(CHECK, along_depth(1100.0, 33.0, 1.0, 1.0))
    assert found.site == weight("l0")
    assert "through 4 layers: at l0.weight it is 1.1e+03 times the weight" in found.message


def test_growth_along_depth_among_small_gradients_is_fine() -> None:
    assert not findings(CHECK, along_depth(900.0, 30.0, 1.0, 1.0))
    assert not findings(CHECK, along_depth(0.9, 0.01, 1e-4, 1e-4))


def at_once(first: float) -> FakeRun:
    run = norms(1e4, math.nan, math.nan).model(("fc", "Linear"))
    return run.signal("gradient.norm", [first], weight("fc")).signal("weight.norm", [1.0], weight("fc"))


def test_a_first_gradient_a_thousand_times_the_weights_before_a_nan_is_an_error() -> None:
    (found,) = findings(CHECK, at_once(1e3))
    assert (found.severity, found.step) == (Severity.ERROR, 0)
    assert "the first gradient is 1e+03 times the weights, and at step 1" in found.message
    assert not findings(CHECK, at_once(999.0))


def test_gradients_that_end_in_a_nan_or_a_peak_do_not_speak_against_it() -> None:
    assert CHECK.clears(norms(*[1.0] * 40).view())
    assert not CHECK.clears(at_once(1.0).view())
    assert not CHECK.clears(norms(*[1.0] * 20, 1e6, *[1.0] * 40).view())
