from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from fake_run import LOSS, STEP, FakeRun, findings, weight

from clew.checks.opt.learning_rate_too_high import LearningRateTooHigh
from clew.checks.runner import ask
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = LearningRateTooHigh()
NAN, INF = math.nan, math.inf


def training(losses: Sequence[float], ratios: Sequence[float], lr: float = 0.3) -> FakeRun:
    run = (
        FakeRun().model(("fc", "Linear")).signal("loss", losses, LOSS).signal("lr", [lr] * len(losses), STEP)
    )
    return run.signal("update.ratio", ratios, weight("fc"))


def test_a_loss_that_went_to_nan_with_large_steps_is_an_error_at_the_step_call() -> None:
    (found,) = findings(CHECK, training([2.0, 5.0, 1e4, NAN], [0.4, 0.9, 3.0, NAN]))
    assert (found.severity, found.site, found.step) == (Severity.ERROR, STEP, 0)
    assert "learning rate 0.3 is too high: one step changes the weights by 90%" in found.message
    assert found.fix == "lr=0.003  # instead of 0.3"


def test_a_nan_without_growth_is_another_fault() -> None:
    assert not findings(CHECK, training([2.0, 1.8, 1.7, NAN], [0.4, 0.9, 0.4, NAN]))


def test_a_loss_above_three_times_its_start_has_diverged() -> None:
    (found,) = findings(CHECK, training([2.0] * 20 + [6.1] * 20, [0.2] * 40))
    assert found.severity is Severity.ERROR
    assert not findings(CHECK, training([2.0] * 20 + [6.0] * 20, [0.2] * 40))


def test_a_loss_that_does_not_move_is_a_warning_after_fifty_steps() -> None:
    (found,) = findings(CHECK, training([2.0] * 50, [0.2] * 50))
    assert found.severity is Severity.WARNING
    run = training([2.0] * 49, [0.2] * 49)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 50 steps, has 49"


def test_large_steps_that_make_progress_are_fine() -> None:
    assert not findings(CHECK, training([2.0] * 30 + [1.79] * 30, [0.9] * 60))
    assert findings(CHECK, training([2.0] * 30 + [1.81] * 30, [0.9] * 60))


def test_small_steps_are_never_to_blame() -> None:
    assert not findings(CHECK, training([2.0] * 20 + [1e9] * 40, [0.1] * 60))
    assert findings(CHECK, training([2.0] * 20 + [1e9] * 40, [0.11] * 60))


def test_one_step_that_replaced_half_of_the_weights_is_enough() -> None:
    """Adam at 0.3 kills a network in its first step, and then moves nothing."""
    assert findings(CHECK, training([2.0] * 60, [0.51] + [1e-3] * 59))
    assert not findings(CHECK, training([2.0] * 60, [0.5] + [1e-3] * 59))


def test_weights_that_start_at_zero_do_not_jump() -> None:
    assert not findings(CHECK, training([2.0] * 60, [INF, 1.0] + [1e-3] * 58))


def test_a_cliff_after_progress_is_not_the_learning_rate() -> None:
    falling = [2.0 - 0.05 * n for n in range(30)]
    assert not findings(CHECK, training([*falling, 1e5, 1e9, NAN], [0.01] * 30 + [5.0] * 20))


def test_slow_divergence_from_the_start_is_found_by_its_end() -> None:
    rising = [2.0 * 1.2**n for n in range(60)]
    assert findings(CHECK, training(rising, [0.01] * 30 + [0.5] * 30))


def test_gradients_out_of_scale_from_the_first_step_are_to_blame_at_an_ordinary_rate() -> None:
    for lr, blamed in ((0.1, False), (0.11, True)):
        run = training([2.0, 1e5, 1e9, NAN], [5.0] * 4, lr=lr)
        run.signal("gradient.norm", [10.0], weight("fc")).signal("weight.norm", [1.0], weight("fc"))
        assert bool(findings(CHECK, run)) is blamed


def test_a_loss_that_changes_sign_is_not_expected_to_fall() -> None:
    assert not findings(CHECK, training([0.5, -0.5, 0.3, -0.2] * 30, [0.2] * 120))


def test_two_losses_that_do_not_move_are_left_alone() -> None:
    run = training([0.7] * 60, [0.2] * 60)
    run.signal("loss", [0.7] * 60, Site(op="backward", file="train.py", line=60, phase="train"))
    assert not findings(CHECK, run)


def test_biases_do_not_count() -> None:
    run = training([2.0] * 60, [0.01] * 60)
    run.signal("update.ratio", [5.0] * 60, Site(module="fc", root="model", param="bias"))
    assert not findings(CHECK, run)


def test_a_network_that_the_first_steps_wrecked_is_told_from_one_that_recovered() -> None:
    jump = [0.9] + [1e-3] * 59
    assert findings(CHECK, training([2.0] + [21.0] * 5 + [1.01] * 54, jump))
    assert not findings(CHECK, training([2.0] + [21.0] * 5 + [0.99] * 54, jump))
    assert not findings(CHECK, training([2.0] + [19.0] * 5 + [1.01] * 54, jump))
    assert not findings(CHECK, training([2.0] + [21.0] * 5 + [1.01] * 54, [0.05] * 60))


BLOWN_UP = [70.0, 20_000.0, *[900.0] * 18, *[27.0] * 80]  # a summed loss that ends at the best constant


def test_a_loss_that_the_first_steps_blew_up_with_a_layer_they_killed_is_the_rate() -> None:
    def run(dead: list[float]) -> FakeRun:
        made = training(BLOWN_UP, [3.5] + [1e-3] * 40)
        return made.signal("activation.dead_fraction", dead, Site(module="fc", op="relu"))

    (found,) = findings(CHECK, run([0.01] + [1.0] * 40))
    assert found.severity is Severity.WARNING
    assert "from 70 to 2e+04, then to 27" in found.message
    assert not findings(CHECK, run([0.01] + [0.6] * 40)), "a layer that lives"
    assert not findings(CHECK, run([1.0] * 41)), "silent before the first step"


def test_large_gradients_are_no_excuse_for_an_optimizer_that_does_not_mind_their_scale() -> None:
    def run(kind: str) -> FakeRun:
        made = training([2.0] * 60, [0.9] * 60, lr=0.1).fact("optimizer", **{"class": kind})
        return made.signal("gradient.norm", [100.0], weight("fc")).signal("weight.norm", [1.0], weight("fc"))

    assert findings(CHECK, run("Adam"))
    assert not findings(CHECK, run("SGD"))


def leap(rates: Sequence[float], losses: Sequence[float]) -> FakeRun:
    run = FakeRun().model(("fc", "Linear")).signal("loss", losses, LOSS).signal("lr", rates, STEP)
    return run.signal("update.ratio", [1e-3] * 40, weight("fc"))


def test_a_rate_that_jumps_and_takes_the_loss_with_it_for_good_is_found_at_its_step() -> None:
    rates = [0.02] * 20 + [3.0] + [0.02] * 99
    wrecked = [2.3] * 21 + [4000.0] * 4 + [2.3] * 95
    (found,) = findings(CHECK, leap(rates, wrecked))
    assert (found.severity, found.step) == (Severity.WARNING, 20)
    assert "jumps from 0.02 to 3 at step 20" in found.message
    assert not findings(CHECK, leap(rates, [2.3] * 21 + [4000.0] * 4 + [1.0] * 95)), "it came back"
    assert not findings(CHECK, leap(rates, [2.3] * 120)), "no harm was done"


def test_schedules_that_rise_are_no_jump() -> None:
    losses = [2.3] * 21 + [40.0] * 20 + [2.3] * 79
    warm_up = [1e-7 * 1.5**n for n in range(40)] + [1.0] * 80
    restarts = [1e-5 + 0.1 * (1 - (n % 30) / 30) for n in range(120)]
    for rates in (warm_up, restarts, [0.0] * 10 + [0.1] * 110):
        assert not findings(CHECK, leap(rates, losses))


def test_silence_about_large_steps_is_no_proof_against_them() -> None:
    progress = [2.0] * 30 + [1.0] * 30
    assert CHECK.clears(training(progress, [0.1] * 60).view())
    assert not CHECK.clears(training(progress, [0.4] + [0.1] * 59).view())


def compared(gains: Sequence[float], lower: float = 1.0, rate: float = 0.1, **more: object) -> FakeRun:
    """The experiment: by how much the loss falls at a rate of 1, and at a lower one."""
    rows = [
        {"factor": 1.0, "rate": 1.0, "gains": list(gains)},
        {"factor": rate, "rate": rate, "gains": [lower] * len(gains)},
    ]
    return FakeRun().experiment("learning-rate-too-high", start=2.0, steps=40, rate=1.0, rows=rows, **more)


@pytest.mark.parametrize(
    ("run", "count"),
    [
        (compared([0.1] * 3), 1),
        (compared([0.11] * 3), 0),
        (compared([0.0, 0.0, 0.2]), 0),  # one shuffle disagrees
        (compared([0.0] * 2), 0),  # too few shuffles
        (compared([-1.0] * 3, lower=0.09), 0),  # the lower rate hardly helps
        (compared([0.0] * 3, rate=10.0), 0),  # the better rate is higher
    ],
)
def test_a_lower_rate_that_learns_where_this_one_does_not_shows_that_it_is_too_high(
    run: FakeRun, count: int
) -> None:
    found = findings(CHECK, run)
    assert len(found) == count
    assert all(f.evidence[-1].text.startswith("loss after 40 steps from 2, over 3 shuffles: ") for f in found)


def test_a_rate_that_a_schedule_warms_up_to_is_not_judged_by_an_experiment_without_it() -> None:
    found, reason = ask(CHECK, compared([0.0] * 3, warms_up=True).view())
    assert not found
    assert reason is not None
    assert reason.endswith("but the experiment used it from the first step")
