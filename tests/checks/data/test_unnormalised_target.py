from __future__ import annotations

from fake_run import LOSS, FakeRun, findings

from clew.checks.data.unnormalised_target import UnnormalisedTarget
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = UnnormalisedTarget()
CALL = Site(op="mse_loss", file="train.py", line=29, phase="train")


def run(
    mean: float, std: float, prediction: float = 0.5, loss: float = 1e9, samples: int = 3, site: Site = CALL
) -> FakeRun:
    made = FakeRun()
    for name, value in {"target.mean": mean, "target.std": std, "loss_input.mean": prediction}.items():
        made.signal(name, [value] * samples, site)
    return made.signal("loss_input.std", [0.0] * samples, site).signal("loss", [loss] * samples, LOSS)


def test_targets_far_larger_than_predictions_are_a_warning_at_the_loss() -> None:
    (found,) = findings(CHECK, run(30.0, 40.1))
    assert (found.severity, found.site) == (Severity.WARNING, CALL)
    assert found.fix.startswith("y = (y - 30) / 40.1")
    assert not findings(CHECK, run(30.0, 40.0))


def test_a_last_layer_of_the_right_scale_is_healthy() -> None:
    assert findings(CHECK, run(1000.0, 1.0, prediction=99.0))
    assert not findings(CHECK, run(1000.0, 1.0, prediction=101.0))


def test_a_model_that_got_there_is_only_advised() -> None:
    (found,) = findings(CHECK, run(100.0, 10.0, loss=19.0))
    assert found.severity == Severity.ADVICE
    (found,) = findings(CHECK, run(100.0, 10.0, loss=21.0))
    assert found.severity == Severity.WARNING


def test_class_indices_are_no_regression_targets() -> None:
    assert not findings(CHECK, run(500.0, 100.0, site=Site(op="cross_entropy", file="t.py", line=1)))


def test_two_batches_give_no_verdict() -> None:
    short = run(1e5, 1e5, samples=2)
    assert not findings(CHECK, short)
    assert CHECK.unjudged(short.view()) == "needs 3 sampled batches, has 2"
