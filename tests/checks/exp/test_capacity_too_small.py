from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.capacity_too_small import CapacityTooSmall
from clew.records.finding import Severity


def made(left: float, wider: float, accuracy: float | None = None, falling: float = 0.1) -> FakeRun:
    return FakeRun().experiment(
        "capacity-too-small",
        samples=32,
        line=["train.py", 30],
        narrow={"end": 1.1, "remaining": left, "accuracy": accuracy, "falling": falling},
        wide={"end": 0.2, "remaining": wider},
        factor=4,
        width=1,
    )


def test_a_network_that_levels_off_where_a_wider_copy_learns_is_a_warning() -> None:
    (found,) = findings(CapacityTooSmall(), made(0.51, 0.2))
    assert found.severity is Severity.WARNING
    assert found.message == (
        "the network is too narrow to learn 32 samples: its loss levels off at 1.1, but with layers 4 times "
        "as wide at 0.2"
    )
    assert found.fix == "widen the hidden layers; the narrowest has 1 unit"
    assert found.evidence[-1].text == "it ends 51% short of the lowest possible loss, the wider copy 20%"


@pytest.mark.parametrize(
    ("left", "wider", "accuracy", "falling"),
    [
        (0.5, 0.1, None, 0.1),  # wide enough
        (0.6, 0.24, None, 0.1),  # the wider copy is hardly better
        (0.6, 0.1, 0.81, 0.1),  # it is right all the same
        (0.6, 0.1, None, 0.15),  # its loss still falls
    ],
)
def test_everything_else_has_other_reasons(
    left: float, wider: float, accuracy: float | None, falling: float
) -> None:
    assert not findings(CapacityTooSmall(), made(left, wider, accuracy, falling))


def test_without_a_wider_copy_there_is_nothing_to_compare_with() -> None:
    run = FakeRun().experiment("capacity-too-small", narrow={"end": 0.1, "remaining": 0.9, "falling": 0.0})
    assert not findings(CapacityTooSmall(), run)
