from __future__ import annotations

import pytest
from fake_run import NOWHERE, Fact, FakeRun, findings

from clew.checks.mode.batch_size_unfit import BatchSizeUnfit
from clew.records.finding import Severity

CHECK = BatchSizeUnfit()


def normalised(*norms: list[object], steps: int = 10) -> FakeRun:
    run = FakeRun().model(("bn", "BatchNorm2d")).fact("graph", 3, root="model", norms=list(norms))
    return run.signal("batch.size", [1.0] * steps, NOWHERE)


def test_batch_normalisation_of_single_samples_is_a_warning_at_the_layer() -> None:
    (found,) = findings(CHECK, normalised(["bn", "BatchNorm2d", True, 1]))
    assert (found.severity, found.site.module) == (Severity.WARNING, "bn")


def test_two_samples_evaluation_mode_or_no_such_layer_are_silent() -> None:
    assert not findings(CHECK, normalised(["bn", "BatchNorm2d", True, 2]))
    assert not findings(CHECK, normalised(["bn", "BatchNorm2d", False, 1]))
    assert not findings(CHECK, normalised())


def test_nine_steps_are_no_verdict() -> None:
    run = normalised(["bn", "BatchNorm2d", True, 1], steps=9)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 10 steps, has 9"


def test_the_crash_of_a_last_batch_of_one_is_explained_at_the_users_line() -> None:
    run = FakeRun().fact("idle", reason="no step")
    message = "Expected more than 1 value per channel when training, got input size torch.Size([1, 8])"
    run.events.append(Fact("exception", 7, {"message": message, "user_file": "train.py", "user_line": 14}))
    (found,) = findings(CHECK, run)
    assert (found.severity, found.site.line) == (Severity.ERROR, 14)
    assert "drop_last=True" in found.fix


def noisy(batch: int, least: float, most: float) -> FakeRun:
    """The experiment: bounds of the gradient noise scale, at two points of a short training."""
    points = [{"step": step, "least": least, "most": most} for step in (0, 40)]
    return FakeRun().experiment("batch-size-unfit", batch=batch, compared=8, points=points)


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (noisy(8, 81.0, 200.0), "batches of 8 are nearly all noise"),
        (noisy(8, 80.0, 200.0), None),
        (noisy(1024, 1.0, 10.2), "batches of 1024 are larger than necessary"),
        (noisy(1024, 1.0, 10.3), None),
        (noisy(1023, 1.0, 5.0), None),  # hardly slower than a few samples
    ],
)
def test_a_batch_far_from_the_noise_scale_gets_advice(run: FakeRun, says: str | None) -> None:
    found = findings(CHECK, run)
    assert [f.severity for f in found] == [Severity.ADVICE] * (says is not None)
    assert all(says is not None and f.message.startswith(says) for f in found)
