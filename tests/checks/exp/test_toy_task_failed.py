from __future__ import annotations

import math

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.toy_task_failed import ToyTaskFailed
from clew.checks.runner import ask
from clew.records.codec import json_float
from clew.records.finding import Severity

RUNG = {"name": "constant", "words": "give the same answer", "steps": 100, "start": 2.3, "end": 2.2}


def made(*rungs: dict[str, object]) -> FakeRun:
    return FakeRun().experiment(
        "toy-task-failed", line=["train.py", 30], rungs=[{**RUNG, **rung} for rung in rungs]
    )


@pytest.mark.parametrize(
    ("name", "severity"),
    [("constant", Severity.ERROR), ("two samples", Severity.ERROR), ("one feature", Severity.WARNING)],
)
def test_the_first_task_that_is_not_learned_is_reported(name: str, severity: Severity) -> None:
    run = made({"taken": True, "end": 0.1}, {"name": name, "remaining": 0.81, "floor": 0.0, "accuracy": 0.5})
    (found,) = findings(ToyTaskFailed(), run)
    assert found.severity is severity
    assert found.message == (
        "the network can't learn to give the same answer: the loss goes from 2.3 to 2.2 at best; 0 is "
        "possible"
    )
    assert [e.text for e in found.evidence] == [
        "give the same answer: learned, loss 0.1 after 100 steps",
        "give the same answer: not learned, loss 2.2 after 100 steps, 50% right",
    ]


@pytest.mark.parametrize("rung", [{"remaining": 0.8}, {"remaining": 0.9, "accuracy": 0.76}])
def test_a_task_that_is_partly_learned_is_not_judged_and_says_so(rung: dict[str, object]) -> None:
    found, reason = ask(ToyTaskFailed(), made(rung).view())
    assert not found
    assert reason == "the network only partly learned to give the same answer"


def test_a_network_that_learns_all_tasks_passes() -> None:
    assert ask(ToyTaskFailed(), made({"taken": True}, {"taken": True}).view()) == ([], None)


@pytest.mark.parametrize(("start", "found"), [(2.3, 1), (-math.inf, 0), (math.nan, 0)])
def test_a_loss_without_a_value_is_no_failure_to_learn(start: float, found: int) -> None:
    rung = {"taken": False, "remaining": 1.0, "accuracy": json_float(math.nan)}
    run = made({**rung, "start": json_float(start), "end": json_float(start)})
    assert len(findings(ToyTaskFailed(), run)) == found
