from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.cannot_overfit_batch import CannotOverfitBatch
from clew.records.finding import Severity

ATTEMPT = {"how": "SGD at 0.1", "steps": 300, "end": 2.0, "floor": 0.0, "constant": 2.3}


def made(*attempts: dict[str, object], start: float | str = 2.5, spread: float = 0.0) -> FakeRun:
    return FakeRun().experiment(
        "cannot-overfit-batch",
        samples=8,
        start=start,
        spread=spread,
        line=["train.py", 30],
        attempts=[{**ATTEMPT, **attempt} for attempt in attempts],
    )


def test_a_network_that_gets_less_than_halfway_is_an_error_with_every_attempt() -> None:
    run = made(
        {"remaining": 0.9}, {"remaining": 0.51, "accuracy": 0.79, "how": "Adam", "calm": True, "end": 1.2}
    )
    (found,) = findings(CannotOverfitBatch(), run)
    assert found.severity is Severity.ERROR
    assert found.message == (
        "the network can't memorise 8 samples: the loss goes from 2.5 to 1.2 at best; 0 is possible, and "
        "a constant prediction gives 2.3"
    )
    assert [e.text for e in found.evidence] == [
        "SGD at 0.1, as it is: loss 2 after 300 steps",
        "Adam, without dropout, decay and noise: loss 1.2 after 300 steps, 79% right",
    ]


@pytest.mark.parametrize("learned", [{"remaining": 0.5}, {"remaining": 0.9, "accuracy": 0.8}])
def test_one_attempt_that_learns_is_enough(learned: dict[str, object]) -> None:
    assert not findings(CannotOverfitBatch(), made({"remaining": 1.0}, learned))


@pytest.mark.parametrize(
    ("end", "spread", "count"),
    [(2.38, 0.0, 1), (2.37, 0.0, 0), (2.2, 0.1, 1), (2.19, 0.1, 0)],
)
def test_a_loss_of_unknown_floor_must_only_fall_beyond_its_spread(
    end: float, spread: float, count: int
) -> None:
    run = made({"remaining": None, "floor": None, "constant": None, "end": end}, spread=spread)
    assert len(findings(CannotOverfitBatch(), run)) == count


def test_a_loss_that_was_never_finite_says_nothing() -> None:
    assert not findings(CannotOverfitBatch(), made({"remaining": 1.0}, start="nan"))
