from __future__ import annotations

import pytest
from fake_run import STEP, FakeRun, findings

from clew.checks.loop.clip_ineffective import ClipIneffective
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = ClipIneffective()
CLIP = Site(op="clip", file="train.py", line=33)


def clipping(pattern: str, norms: list[float], limit: float = 1.0, kind: str = "SGD") -> FakeRun:
    count = len(norms)
    run = FakeRun().signal("clip.norm", norms, CLIP).signal("clip.limit", [limit] * count, CLIP)
    run.signal("events.pattern", [0.0] * count).fact("pattern", id=0, pattern=pattern)
    return run.signal("grad.norm", [2.0] * count, STEP).fact("optimizer", **{"class": kind})


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("cdzfbs", "after the optimizer has used them"),
        ("hczfbs", "after the optimizer has used them"),
        ("dzfcbs", "before they exist"),
        ("dzfbcus", "still scaled"),
    ],
)
def test_a_clip_call_in_the_wrong_place_is_found_at_its_line(pattern: str, said: str) -> None:
    (found,) = findings(CHECK, clipping(pattern, [2.0] * 10))
    assert (found.severity, found.site) == (Severity.WARNING, CLIP)
    assert said in found.message


@pytest.mark.parametrize("pattern", ["dzfbcs", "dzfbucs", "(dfb)+csz", "(dfbc)+s", "zfbcszfbcs1"])
def test_usual_orders_are_silent(pattern: str) -> None:
    assert not findings(CHECK, clipping(pattern, [2.0] * 60))


@pytest.mark.parametrize("pattern", ["czfb", "cdfb", "cfb"])
def test_clipping_before_an_update_by_hand_is_silent(pattern: str) -> None:
    assert not findings(CHECK, clipping(pattern, [2.0] * 60))


def test_nine_clip_calls_are_too_few() -> None:
    run = clipping("cdzfbs", [2.0] * 9)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 10 clip calls, has 9"


def test_clipping_parameters_without_gradients_is_found() -> None:
    (found,) = findings(CHECK, clipping("dzfbcs", [0.0] * 10))
    assert "finds no gradients in 10 calls" in found.message


def test_a_hundred_times_the_limit_on_nearly_all_of_fifty_steps_is_too_low_a_limit() -> None:
    (found,) = findings(CHECK, clipping("dzfbcs", [101.0] * 45 + [99.0] * 5))
    assert found.severity is Severity.WARNING
    assert not findings(CHECK, clipping("dzfbcs", [101.0] * 44 + [99.0] * 6))
    assert not findings(CHECK, clipping("dzfbcs", [101.0] * 49))


def test_with_adam_a_low_limit_is_advice() -> None:
    (found,) = findings(CHECK, clipping("dzfbcs", [500.0] * 50, kind="AdamW"))
    assert found.severity is Severity.ADVICE


def test_a_program_that_does_not_clip_is_judged_and_silent() -> None:
    run = FakeRun().signal("events.pattern", [0.0] * 20).fact("pattern", id=0, pattern="dzfbs")
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) is None
