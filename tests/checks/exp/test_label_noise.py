from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.label_noise import LabelNoise
from clew.checks.runner import ask
from clew.records.finding import Severity


def made(wrong: int = 60, judged: int = 600, accuracy: float = 0.9, clear: float = 0.8) -> FakeRun:
    return FakeRun().experiment(
        "label-noise",
        samples=800,
        accuracy=accuracy,
        chance=0.1,
        judged=judged,
        wrong=wrong,
        clear=clear,
        suspects=[{"index": 7, "given": 1, "suggested": 2}],
        suspect_count=wrong,
        pairs=[[1, 2, 40]],
        line=["train.py", 12],
    )


def test_labels_that_confident_learners_contradict_are_a_warning_with_the_suspects() -> None:
    (found,) = findings(LabelNoise(), made())
    assert (found.severity, found.confidence) == (Severity.WARNING, "possible")
    assert found.message == (
        "about 10% of the labels look wrong: 60 of 800 samples look like a class other than their label"
    )
    assert [e.text for e in found.evidence] == [
        "of the 600 samples that the learners are most confident about, 60 have a different label",
        "40 labelled 1 look like 2",
        "suspects by index in the dataset: 7 (1 → 2)",
    ]


@pytest.mark.parametrize(
    ("wrong", "judged", "count"),
    [(30, 600, 1), (29, 600, 0), (5, 50, 0)],  # a twentieth, less, and a tenth of too few
)
def test_the_share_must_be_large_and_sure(wrong: int, judged: int, count: int) -> None:
    assert len(findings(LabelNoise(), made(wrong, judged))) == count


@pytest.mark.parametrize(("accuracy", "clear"), [(0.19, 0.8), (0.9, 0.64)])
def test_data_that_simple_learners_can_not_tell_apart_is_not_judged(accuracy: float, clear: float) -> None:
    found, reason = ask(LabelNoise(), made(accuracy=accuracy, clear=clear).view())
    assert not found
    assert reason == (
        f"a simple learner is right on {accuracy:.0%} of the samples and confident about {clear:.0%}: too "
        "little to tell wrong labels from hard samples"
    )
