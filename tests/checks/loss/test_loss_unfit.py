from __future__ import annotations

from typing import Any

import pytest
from fake_run import FakeRun, findings
from loss_calls import call_site, loss_call, refused

from clew.checks.loss.loss_unfit import LossUnfit
from clew.records.finding import Severity

CHECK = LossUnfit()
LOGITS = "binary_cross_entropy_with_logits"


def regression(
    whole: float = 1.0, steps: int = 5, shape: tuple[int, ...] = (32, 1), **target: float
) -> FakeRun:
    """Targets as ten equally frequent classes have them, but for what `target` says."""
    run = loss_call("mse_loss", shape)
    for name, value in {"min": 0.0, "max": 9.0, "mean": 4.5, "std": 2.87, "whole": whole, **target}.items():
        run.signal(f"target.{name}", [value] * steps, call_site("mse_loss"))
    return run


def test_a_regression_loss_on_equally_frequent_whole_numbers_looks_like_classes() -> None:
    (found,) = findings(CHECK, regression())
    assert (found.severity, found.site) == (Severity.WARNING, call_site("mse_loss"))
    assert "nn.Linear(…, 10)" in found.fix


@pytest.mark.parametrize(
    "run",
    [
        regression(whole=0.99),
        regression(min=1.0),
        regression(max=1.0, mean=0.5, std=0.5),
        regression(max=100.0, mean=50.0, std=29.2),
        regression(mean=3.5),
        regression(std=2.2),
        regression(shape=(32, 64)),
        regression(steps=4),
    ],
    ids=["fractions", "ratings", "yes or no", "quantities", "counts", "sums", "pixels", "too few"],
)
def test_other_numbers_are_quantities(run: FakeRun) -> None:
    assert not findings(CHECK, run)


def test_four_batches_give_no_verdict() -> None:
    assert CHECK.unjudged(regression(steps=4).view()) == "needs 5 batches, has 4"


@pytest.mark.parametrize(("share", "found"), [(0.02, 1), (0.01, 0)])
def test_binary_losses_take_targets_between_zero_and_one(share: float, found: int) -> None:
    run = loss_call(LOGITS).signal("target.outside", [share] * 5, call_site(LOGITS))
    assert len(findings(CHECK, run)) == found


@pytest.mark.parametrize(("shape", "found"), [((32, 1), 1), ((32, 2), 0), ((1,), 0)])
def test_cross_entropy_needs_more_than_one_output(shape: tuple[int, ...], found: int) -> None:
    assert len(findings(CHECK, loss_call("cross_entropy", shape))) == found


def test_the_head_of_a_pretrained_model_is_advice() -> None:
    run = loss_call("cross_entropy", (32, 1000)).signal("target.max", [9.0] * 5, call_site("cross_entropy"))
    assert findings(CHECK, run)[0].severity is Severity.ADVICE


FIVE = {"input_shape": [8, 5], "target_dtype": "int64", "target_max": 5}
BOUNDS = "Target 5 is out of bounds."
SIZE = "Target size (torch.Size([8])) must be the same as input size"
FLAT = {"target_shape": [8], "target_dtype": "float32"}
RANGE = "all elements of target should be between 0 and 1"
NINE = {"target_min": 0, "target_max": 9.0, "target_dtype": "float32"}


@pytest.mark.parametrize(
    ("kind", "said", "data", "message", "fix"),
    [
        (
            "cross_entropy",
            BOUNDS,
            {**FIVE, "target_min": 0},
            "labels 0 to 5 for 5 outputs",
            "nn.Linear(…, 6)",
        ),
        ("cross_entropy", BOUNDS, {**FIVE, "target_min": 1}, "labels 1 to 5", "target - 1"),
        (
            "nll_loss",
            "expected scalar type Long",
            {"target_dtype": "float32"},
            "as integers",
            "target.long()",
        ),
        (LOGITS, "can't be cast to Long", {"target_dtype": "int64"}, "takes float targets", "target.float()"),
        (LOGITS, SIZE, {**FLAT, "input_shape": [8, 5]}, "yes-or-no question", "nn.CrossEntropyLoss()"),
        (LOGITS, SIZE, {**FLAT, "input_shape": [8, 1]}, "(8, 1) for targets of (8,)", "target.unsqueeze(1)"),
        ("binary_cross_entropy", RANGE, NINE, "got 0 to 9", "nn.CrossEntropyLoss()"),
    ],
)
def test_a_refused_call_is_explained(
    kind: str, said: str, data: dict[str, Any], message: str, fix: str
) -> None:
    (found,) = findings(CHECK, refused(kind, said, **data))
    assert (found.severity, found.step, found.site) == (Severity.ERROR, 7, call_site(kind))
    assert message in found.message
    assert fix in found.fix


def test_a_refusal_that_is_not_understood_is_left_to_torch() -> None:
    assert not findings(CHECK, refused("mse_loss", "something else"))
