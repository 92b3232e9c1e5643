from __future__ import annotations

import math

from fake_run import FakeRun, findings, weight

from clew.checks.num.half_precision_underflow import HalfPrecisionUnderflow
from clew.records.finding import Severity

CHECK = HalfPrecisionUnderflow()


def autocast(*layers: str, dtype: str = "float16") -> FakeRun:
    run = FakeRun().model(*[(path, "Linear") for path in layers])
    items = [{"root": "model", "module": path, "op": None, "dtype": dtype} for path in layers]
    return run.fact("precision", items=items)


def gradient(run: FakeRun, path: str, zeros: float, coarse: float, steps: int = 5) -> FakeRun:
    """`coarse` is the share of what is not zero that lies within four bits of the smallest number."""
    run.signal("gradient.zeros", [zeros] * steps, weight(path))
    run.signal("gradient.max", [2.0**-22] * steps, weight(path))
    for k in range(32):
        share = coarse / 4 if k < 4 else (1 - coarse) if k == 20 else 0.0
        run.signal(f"gradient.log2hist.{k:02d}", [255 * share] * steps, weight(path))
    return run


def test_many_zeros_beside_gradients_at_the_edge_are_found() -> None:
    (found,) = findings(CHECK, gradient(autocast("fc"), "fc", zeros=0.39, coarse=0.9))
    assert (found.severity, found.site.module) == (Severity.WARNING, "fc")
    assert "39% of the gradients of fc.weight are zero in float16" in found.message
    assert "GradScaler" in found.fix
    assert [e.signal for e in found.evidence] == ["gradient.zeros", "gradient.headroom"]


def test_fewer_zeros_are_not_found() -> None:
    assert not findings(CHECK, gradient(autocast("fc"), "fc", zeros=0.37, coarse=0.9))


def test_zeros_beside_ordinary_gradients_are_units_that_are_off() -> None:
    assert not findings(CHECK, gradient(autocast("fc"), "fc", zeros=0.9, coarse=0.7))


def test_one_sample_too_few_gives_no_verdict() -> None:
    run = gradient(autocast("fc"), "fc", zeros=0.9, coarse=1.0, steps=4)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 5 sampled steps, has 4"


def test_float32_and_bfloat16_reach_far_lower() -> None:
    for dtype in ("float32", "bfloat16"):
        assert not findings(CHECK, gradient(autocast("fc", dtype=dtype), "fc", zeros=0.9, coarse=1.0))


def test_a_layer_of_zeros_alone_may_be_dead() -> None:
    run = gradient(autocast("a", "b"), "a", zeros=1.0, coarse=0.0)
    assert not findings(CHECK, gradient(run, "b", zeros=0.1, coarse=0.0))


def test_beside_one_at_the_edge_it_has_underflowed_and_leads() -> None:
    run = gradient(autocast("a", "b"), "a", zeros=1.0, coarse=0.0)
    found = findings(CHECK, gradient(run, "b", zeros=0.6, coarse=0.9))
    assert [f.site.module for f in found] == ["a", "b"]


def test_zeros_in_every_layer_are_the_format_unless_the_loss_is_scaled() -> None:
    run = gradient(gradient(autocast("a", "b"), "a", zeros=1.0, coarse=0.0), "b", zeros=1.0, coarse=0.0)
    assert len(findings(CHECK, run)) == 2
    run.fact("pattern", id=1, pattern="dfbus")
    assert not findings(CHECK, run)


def test_with_a_scaler_in_use_the_fix_is_another_format() -> None:
    run = gradient(autocast("fc"), "fc", zeros=0.5, coarse=0.9).fact("pattern", id=1, pattern="dfbus")
    (found,) = findings(CHECK, run)
    assert "bfloat16" in found.fix


def test_a_training_that_went_well_all_the_same_is_left_alone() -> None:
    run = gradient(autocast("fc"), "fc", zeros=0.9, coarse=1.0)
    assert findings(CHECK, run.signal("loss", [1.0] * 20))
    learned = gradient(autocast("fc"), "fc", zeros=0.9, coarse=1.0).signal("loss", [1.0] * 10 + [0.1] * 10)
    assert not findings(CHECK, learned)


def stored(update_zeros: float, gradient_zeros: float, dtype: str = "bfloat16") -> FakeRun:
    """A model whose weights themselves are of 16 bits."""
    run = FakeRun().model(("fc", "Linear"))
    for row in run.facts[0].data["parameters"]:
        row["dtype"] = dtype
    run.signal("gradient.zeros", [gradient_zeros] * 5, weight("fc"))
    return run.signal("update.zeros", [update_zeros] * 5, weight("fc"))


def test_updates_that_are_rounded_away_are_found() -> None:
    (found,) = findings(CHECK, stored(0.81, 0.0))
    assert "an update below 1/256 of a weight is rounded away" in found.message
    assert "torch.autocast" in found.fix


def test_weights_without_a_gradient_have_no_update_to_lose() -> None:
    assert not findings(CHECK, stored(0.81, 0.31))
    assert not findings(CHECK, stored(0.79, 0.0))
    assert not findings(CHECK, stored(1.0, 0.0, dtype="float32"))


def test_values_that_are_not_numbers_give_no_verdict() -> None:
    assert not findings(CHECK, gradient(autocast("fc"), "fc", zeros=math.nan, coarse=math.nan))


def test_updates_that_get_through_and_do_their_work_are_left_alone() -> None:
    assert findings(CHECK, stored(0.9, 0.0).signal("loss", [1.0] * 10 + [0.91] * 10))
    assert not findings(CHECK, stored(0.9, 0.0).signal("loss", [1.0] * 10 + [0.89] * 10))
