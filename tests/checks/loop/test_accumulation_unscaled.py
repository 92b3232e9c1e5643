from __future__ import annotations

from fake_run import LOSS, STEP, FakeRun, findings

from clew.checks.loop.accumulation_unscaled import AccumulationUnscaled
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = AccumulationUnscaled()


def accumulating(
    k: int = 4, steps: int = 5, op: str = "NllLossBackward0", kind: str = "SGD", pattern: str = "(dfb)+sz"
) -> FakeRun:
    run = FakeRun().signal("loss", [1.0] * (k * steps), LOSS, [n // k for n in range(k * steps)])
    run.signal("events.pattern", [0.0] * steps).fact("pattern", id=0, pattern=pattern)
    run.fact("backward", op=op, file=LOSS.file, line=LOSS.line).fact("loss", reduction="mean")
    return run.fact("optimizer", **{"class": kind})


def test_four_undivided_backwards_per_step_of_sgd_are_a_warning_with_both_readings() -> None:
    (found,) = findings(CHECK, accumulating())
    assert (found.severity, found.site) == (Severity.WARNING, LOSS)
    assert "effective learning rate is 4 times" in found.message
    assert "unless the learning rate was chosen for the sum" in found.message


def test_four_steps_are_too_few_and_one_backward_per_step_is_no_accumulation() -> None:
    assert not findings(CHECK, accumulating(steps=4))
    assert not findings(CHECK, accumulating(k=1))


def test_a_division_or_an_unknown_last_operation_is_silent() -> None:
    for op in ("DivBackward0", "MulBackward0", "AddBackward0", "SumBackward0"):
        assert not findings(CHECK, accumulating(op=op)), op


def test_a_sum_reduction_and_a_closure_are_silent() -> None:
    assert not findings(CHECK, accumulating().fact("loss", reduction="sum"))
    assert not findings(CHECK, accumulating().fact("optimizer", closure=True))


def test_adam_or_batches_of_no_loader_make_it_advice() -> None:
    for run in (accumulating(kind="AdamW"), accumulating(pattern="(fb)+s")):
        (found,) = findings(CHECK, run)
        assert found.severity is Severity.ADVICE


def test_clipping_every_step_takes_the_scale_away() -> None:
    clip = Site(op="clip")
    run = accumulating().signal("clip.norm", [3.0] * 5, clip).signal("clip.limit", [1.0] * 5, clip)
    (found,) = findings(CHECK, run)
    assert found.severity is Severity.ADVICE


def test_backwards_that_are_thrown_away_do_not_add_up() -> None:
    assert not findings(CHECK, accumulating().signal("grad.lost", [0, 3, 3, 3, 3], STEP))
