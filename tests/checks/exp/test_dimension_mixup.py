from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.dimension_mixup import DimensionMixup
from clew.records.finding import Severity

PLACE = {"module": "lstm", "op": "lstm", "root": "model", "file": "net.py", "line": 5}


def made(**data: object) -> FakeRun:
    return FakeRun().experiment("dimension-mixup", samples=8, tried=5, place=PLACE, **data)


@pytest.mark.parametrize(("effect", "count"), [(0.0011, 1), (0.001, 0)])
def test_samples_that_are_read_as_time_steps_change_the_output(effect: float, count: int) -> None:
    found = findings(DimensionMixup(), made(time_first="LSTM", effect=effect))
    assert len(found) == count
    for one in found:
        assert one.severity is Severity.ERROR
        assert one.fix == "nn.LSTM(…, batch_first=True)"
        assert one.evidence[0].text == (
            "with all samples but one replaced, its output changes 0.0011 times as much as when the sample "
            "itself is replaced"
        )


@pytest.mark.parametrize(("effect", "count"), [(0.0011, 1), (0.001, 0)])
def test_the_position_in_the_batch_must_not_matter(effect: float, count: int) -> None:
    found = findings(DimensionMixup(), made(position=True, effect=effect))
    assert len(found) == count
    assert all("a relative difference of 0.0011" in f.evidence[0].text for f in found)


def test_an_output_that_does_not_follow_the_batch_size_is_an_error() -> None:
    (found,) = findings(DimensionMixup(), made(stuck={"model": "model", "shape": [8, 4]}))
    assert found.message == "the output does not follow the batch size: 8 rows for 8 samples, and also for 5"


@pytest.mark.parametrize(
    ("equal", "severity", "says"),
    [
        (True, Severity.WARNING, "only with 8 samples, a number that is also the size of another dimension"),
        (False, Severity.ADVICE, "the step works only with 8 samples"),
    ],
)
def test_code_for_one_batch_size_is_a_warning_if_two_sizes_are_equal(
    equal: bool, severity: Severity, says: str
) -> None:
    failed = {"message": "shape mismatch", "code": "x.view(8, -1)"}
    (found,) = findings(DimensionMixup(), made(failed=failed, equal=equal))
    assert found.severity is severity
    assert found.message.endswith(says)
    assert [e.text for e in found.evidence] == ["with 5 samples: shape mismatch", "in: x.view(8, -1)"]


def test_a_model_that_tells_its_dimensions_apart_passes() -> None:
    assert not findings(DimensionMixup(), made(effect=0.5))
