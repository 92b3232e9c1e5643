from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.gradient_mismatch import GradientMismatch
from clew.checks.runner import ask

WRONG = {"verdict": "wrong", "autograd": 1.0, "finite": 2.0}
PARAMETER = {"root": "model", "module": "fc", "param": "weight", **WRONG}
FUNCTION = {"name": "Round", "place": {"file": "net.py", "line": 4}, **WRONG}


@pytest.mark.parametrize(("error", "count"), [(0.0011, 1), (0.001, 0)])
def test_a_parameter_whose_gradient_is_off_is_an_error(error: float, count: int) -> None:
    run = FakeRun().model(("fc", "Linear"))
    found = findings(
        GradientMismatch(), run.experiment("gradient-mismatch", wrong=[{**PARAMETER, "error": error}])
    )
    assert [f.message for f in found] == [
        "backward() does not give the gradient of the loss for fc.weight"
    ] * count


@pytest.mark.parametrize(("error", "count"), [(0.0011, 1), (0.001, 0)])
def test_a_function_with_a_wrong_backward_is_an_error_that_names_it(error: float, count: int) -> None:
    run = FakeRun().experiment("gradient-mismatch", functions=[{**FUNCTION, "error": error}])
    found = findings(GradientMismatch(), run)
    assert len(found) == count
    for one in found:
        assert one.message.startswith("the backward of Round is wrong")
        assert one.evidence[0].text == (
            "in a random direction, backward() gives a slope of 1, finite differences 2."
        )


def test_step_sizes_that_disagree_prove_nothing() -> None:
    run = FakeRun().experiment("gradient-mismatch", wrong=[{**PARAMETER, "error": 0.5, "verdict": "unsure"}])
    assert ask(GradientMismatch(), run.view()) == ([], None)


def test_a_function_that_is_meant_to_differ_is_not_judged_and_says_why() -> None:
    meant = {**FUNCTION, "error": 0.5, "meant": "straight-through"}
    run = FakeRun().experiment("gradient-mismatch", functions=[meant], wrong=[{**PARAMETER, "error": 0.5}])
    assert ask(GradientMismatch(), run.view()) == ([], "Round has a custom gradient: straight-through")


def test_a_step_that_stops_gradients_itself_is_not_judged_and_says_where() -> None:
    stops = [{"what": "detach()", "file": "net.py", "line": 8}]
    run = FakeRun().experiment("gradient-mismatch", wrong=[{**PARAMETER, "error": 0.5}], stops=stops)
    assert ask(GradientMismatch(), run.view()) == ([], "the step stops gradients itself: detach() (line 8)")
