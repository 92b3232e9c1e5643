from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.input_ignored import InputIgnored
from clew.checks.runner import ask
from clew.records.finding import Severity


def made(others: float = 1.0, spread: float = 0.0, **more: object) -> FakeRun:
    """A training that ends at a loss of 1, and at `others` with other samples' inputs."""
    last = {
        "real": [1.0, 1.0 + spread],
        "others": [others, others + spread],
        "noise": [others, others + spread],
    }
    training = {"optimizer": "Adam", "steps": 40, "first": [1.0], "last": last, **more}
    return FakeRun().experiment("input-ignored", line=["train.py", 30], tries=[training])


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        ({"alike": True}, "the model gets the same input for every sample"),
        ({"given": 1e-6}, "the model's output does not depend on its input"),
        ({"data": 1e-6}, "the output stays the same for any input"),
    ],
)
def test_an_output_that_never_changes_is_certain(seen: dict[str, object], says: str) -> None:
    (found,) = findings(InputIgnored(), made(**seen))
    assert (found.severity, found.confidence, found.message) == (Severity.ERROR, "certain", says)


def test_an_input_that_hardly_changes_the_output_is_a_warning() -> None:
    (found,) = findings(InputIgnored(), made(given=0.01))
    assert found.severity is Severity.WARNING
    assert found.message == (
        "the model hardly uses its input: other inputs change the output by 1.0%, and the loss is as low "
        "with other samples' inputs as with the right ones"
    )
    assert found.evidence[-1].text == (
        "Adam, 40 steps: loss 1; 1 with the inputs of other samples, 1 with random inputs"
    )


def test_an_input_that_changes_the_output_but_not_the_loss_is_not_judged() -> None:
    found, reason = ask(InputIgnored(), made(given=0.011).view())
    assert not found
    assert reason == "in 40 steps nothing was learned from the inputs: see cannot-overfit-batch"


@pytest.mark.parametrize(
    ("others", "spread", "count"),
    [(1.019, 0.0, 1), (1.021, 0.0, 0), (1.14, 0.1, 1), (1.16, 0.1, 0)],
)
def test_right_inputs_that_lower_the_loss_clearly_are_used(others: float, spread: float, count: int) -> None:
    assert len(findings(InputIgnored(), made(others, spread, given=0.001))) == count
