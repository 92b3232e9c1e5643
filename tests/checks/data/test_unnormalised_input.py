from __future__ import annotations

from fake_run import FakeRun, findings

from clew.checks.data.unnormalised_input import UnnormalisedInput
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = UnnormalisedInput()
FIRST = Site(module="conv1", root="model", phase="train")


def first_input(
    mean: float, std: float, low: float, high: float, spread: float = 1.0, samples: int = 3
) -> FakeRun:
    run = FakeRun().model(("conv1", "Conv2d"))
    values = {"mean": mean, "std": std, "min": low, "max": high, "feature_spread": spread}
    for name, value in values.items():
        run.signal(f"first_input.{name}", [value] * samples, FIRST)
    return run


def test_a_root_mean_square_above_ten_is_found_at_the_first_layer() -> None:
    (found,) = findings(CHECK, first_input(6.0, 8.01, -20, 40))
    assert (found.severity, found.site, found.step) == (Severity.WARNING, FIRST, 0)
    assert "the input of conv1 ranges from -20 to 40" in found.message
    assert found.fix == "x = (x - 6) / 8.01"
    assert not findings(CHECK, first_input(6.0, 8.0, -20, 40))


def test_pixels_are_divided_by_255() -> None:
    (found,) = findings(CHECK, first_input(120.7, 63.9, 0, 255))
    assert found.fix.startswith("x = x / 255")


def test_features_of_very_different_spread_are_found_if_some_are_large() -> None:
    (found,) = findings(CHECK, first_input(0.1, 1.0, -1, 11, spread=100))
    assert "standard deviations differ 100-fold" in found.message
    assert "x_train.std(0)" in found.fix
    assert not findings(CHECK, first_input(0.1, 1.0, -1, 11, spread=99))
    assert not findings(CHECK, first_input(0.1, 1.0, -1, 10, spread=100))


def test_two_batches_give_no_verdict() -> None:
    run = first_input(120.7, 63.9, 0, 255, samples=2)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 3 sampled batches, has 2"


def test_one_odd_batch_does_not_count() -> None:
    run = first_input(0.0, 1.0, -3, 3, samples=10)
    for name in ("mean", "std", "min", "max"):
        run.signal(f"first_input.{name}", [1e6], FIRST, [10])
    assert not findings(CHECK, run)
