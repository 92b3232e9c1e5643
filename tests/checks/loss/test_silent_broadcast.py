from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.loss.silent_broadcast import SilentBroadcast
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = SilentBroadcast()
Shape = tuple[int, ...]


def broadcast(prediction: Shape, target: Shape | None, result: Shape, kind: str = "mse_loss") -> FakeRun:
    return FakeRun().fact(
        "broadcast",
        2,
        kind=kind,
        file="train.py",
        line=29,
        prediction_shape=list(prediction),
        target_shape=None if target is None else list(target),
        result_shape=list(result),
    )


def test_a_column_against_a_row_is_an_error_at_the_loss_call() -> None:
    (found,) = findings(CHECK, broadcast((32, 1), (32,), (32, 32)))
    assert (found.severity, found.step) == (Severity.ERROR, 2)
    assert found.site == Site(op="mse_loss", file="train.py", line=29, phase="train")
    assert "(32, 1) against a target of (32,) to (32, 32)" in found.message


@pytest.mark.parametrize(
    ("prediction", "target", "result", "fix"),
    [
        ((32, 1), (32,), (32, 32), "prediction.squeeze(1)"),
        ((32,), (32, 1), (32, 32), "target.squeeze(1)"),
        ((8, 3, 1), (8, 3), (8, 8, 3), "target = target.view_as(prediction)"),
    ],
)
def test_the_fix_fits_the_shapes(prediction: Shape, target: Shape, result: Shape, fix: str) -> None:
    (found,) = findings(CHECK, broadcast(prediction, target, result))
    assert found.fix.startswith(fix)


def test_a_target_stretched_to_the_prediction_is_meant() -> None:
    assert not findings(CHECK, broadcast((32, 10), (10,), (32, 10)))
    assert not findings(CHECK, broadcast((32, 10), (32, 1), (32, 10)))


def test_a_batch_of_one_compares_nothing_with_another() -> None:
    assert not findings(CHECK, broadcast((1, 1), (1,), (1, 1)))


def test_pairwise_differences_written_out_are_meant() -> None:
    assert not findings(CHECK, broadcast((32, 1), (1, 32), (32, 32), kind="sub"))
    assert not findings(CHECK, broadcast((32, 1), (20,), (32, 20), kind="sub"))
    assert findings(CHECK, broadcast((32, 1), (32,), (32, 32), kind="sub"))


def test_an_unknown_target_is_judged_by_the_square_it_made() -> None:
    assert findings(CHECK, broadcast((32, 1), None, (32, 32), kind="sub"))
    assert not findings(CHECK, broadcast((32, 1), None, (32, 20), kind="sub"))


def test_the_same_call_is_reported_once() -> None:
    run = broadcast((32, 1), (32,), (32, 32))
    run.facts += broadcast((7, 1), (7,), (7, 7)).facts
    assert len(findings(CHECK, run)) == 1


def test_a_run_with_a_loss_and_no_broadcast_is_fine() -> None:
    assert not findings(CHECK, FakeRun().signal("loss", [1.0]))
