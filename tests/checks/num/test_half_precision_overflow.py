from __future__ import annotations

import math

from fake_run import FakeRun, findings

from clew.checks.num.half_precision_overflow import HalfPrecisionOverflow
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = HalfPrecisionOverflow()
LAYER = Site(module="fc", phase="train", root="model")
LIMIT = 65504.0


def layer(bits: list[float], dtype: str = "float16", sign: float = 1.0) -> FakeRun:
    """A layer whose largest output is so many bits below the limit of float16."""
    largest = [LIMIT / 2**b for b in bits]
    run = FakeRun().model(("fc", "Linear"))
    run.fact("precision", items=[{"root": "model", "module": "fc", "op": None, "dtype": dtype}])
    run.signal("activation.max", [v if sign > 0 else 0.0 for v in largest], LAYER)
    return run.signal("activation.min", [0.0 if sign > 0 else -v for v in largest], LAYER)


def layer_at(steps: list[int], bits: list[float]) -> FakeRun:
    """The same, sampled at these steps."""
    run = FakeRun().model(("fc", "Linear"))
    run.fact("precision", items=[{"root": "model", "module": "fc", "op": None, "dtype": "float16"}])
    run.signal("activation.max", [LIMIT / 2**b for b in bits], LAYER, steps=steps)
    return run.signal("activation.min", [0.0] * len(bits), LAYER, steps=steps)


def test_values_within_two_bits_of_the_limit_are_found() -> None:
    (found,) = findings(CHECK, layer([1.9] * 10))
    assert (found.severity, found.site) == (Severity.WARNING, LAYER)
    assert "1.9 bits below the limit of float16" in found.message
    assert found.evidence[0].signal == "activation.headroom"


def test_just_over_two_bits_is_room_enough() -> None:
    assert not findings(CHECK, layer([2.1] * 10))


def test_large_negative_values_count_as_well() -> None:
    assert findings(CHECK, layer([1.0] * 10, sign=-1.0))


def test_one_sample_too_few_gives_no_verdict() -> None:
    run = layer([1.0] * 9)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 10 sampled steps, has 9"


def test_steady_growth_that_will_reach_the_limit_is_found_before_it_does() -> None:
    falling = [10 - 0.2 * step for step in range(36)]  # 3 bits left
    (found,) = findings(CHECK, layer(falling))
    assert "and growing" in found.message


def test_growth_that_has_stopped_is_not_found() -> None:
    assert not findings(CHECK, layer([10 - 0.35 * step for step in range(20)] + [3.3] * 20))


def test_growth_that_leaves_more_than_four_bits_is_not_found() -> None:
    assert not findings(CHECK, layer([12 - 0.2 * step for step in range(36)]))


def test_the_same_values_in_float32_and_bfloat16_are_far_from_the_limit() -> None:
    assert not findings(CHECK, layer([0.5] * 10, dtype="bfloat16"))
    assert not findings(CHECK, layer([0.5] * 10, dtype="float32"))


def test_a_layer_that_went_back_to_float32_is_not_judged() -> None:
    run = layer([0.5] * 10)
    run.fact("precision", 5, items=[{"root": "model", "module": "fc", "op": None, "dtype": "float32"}])
    assert not findings(CHECK, run)


def test_a_run_without_half_precision_has_nothing_to_judge() -> None:
    run = FakeRun().signal("activation.max", [math.nan], LAYER).signal("activation.min", [0.0], LAYER)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) is None


def test_growth_goes_on_after_the_last_sample() -> None:
    """Sampled every tenth step at last, at five bits; twenty steps of a sixth of a bit later, at two."""
    steps = [*range(28), 37, 47, 57]
    run = layer_at(steps, [14.4 - step / 6 for step in steps])
    assert not findings(CHECK, run)
    run.signal("loss", [1.0] * 78, Site(op="backward", phase="train"))
    (found,) = findings(CHECK, run)
    assert "4.9 bits below the limit of float16" in found.message
    assert "growing: 14.1 bits at the start, 0 at about step 86" in found.message


def test_a_line_is_not_drawn_further_than_it_was_seen_to_hold() -> None:
    run = layer_at(list(range(30)), [12 - step / 6 for step in range(30)])
    assert not findings(CHECK, run.signal("loss", [1.0] * 100, Site(op="backward", phase="train")))


def test_large_values_that_only_scatter_are_not_growing() -> None:
    bits = [10.0] * 10 + [3.0 + (step * 7 % 5 - 2) * 0.4 for step in range(20)]
    assert not findings(CHECK, layer(bits))
