from __future__ import annotations

from data_runs import LOSS_CALL, loader
from fake_run import FakeRun, findings

from clew.checks.data.label_map_mismatch import LabelMapMismatch
from clew.records.finding import Severity

CHECK = LabelMapMismatch()


def run(counts: list[list[int]], accuracy: float = 0.95) -> FakeRun:
    made = loader(FakeRun().model(("0", "Linear")), index=1, line=40)
    made.fact("fed", phase="eval", source=0, root="model", loader=1, names=[])
    made.signal("label.accuracy", [accuracy] * 5, LOSS_CALL)
    return made.fact("confusion", 30, root="model", source=0, counts=counts)


def test_classes_that_are_taken_for_each_other_are_an_error_at_the_evaluations_loop() -> None:
    (found,) = findings(CHECK, run([[0, 1, 18], [0, 0, 2], [1, 0, 18], [1, 1, 2]]))
    assert (found.severity, found.site.line, found.step) == (Severity.ERROR, 40, 30)
    assert "evaluation gets 10% right, training 95%" in found.message
    assert "class 0 is predicted as 1, 1 is predicted as 0" in [e.text for e in found.evidence]


def test_mistakes_without_a_pattern_are_honest() -> None:
    assert not findings(CHECK, run([[a, b, 5] for a in range(3) for b in range(3)]))


def test_a_good_evaluation_is_healthy() -> None:
    assert not findings(CHECK, run([[0, 0, 20], [1, 1, 20]]))


def test_a_model_that_has_not_learned_says_nothing_about_numbers() -> None:
    assert not findings(CHECK, run([[0, 1, 20], [1, 0, 20]], accuracy=0.69))


def test_thirty_nine_samples_are_too_few() -> None:
    assert findings(CHECK, run([[0, 1, 20], [1, 0, 20]]))
    assert not findings(CHECK, run([[0, 1, 20], [1, 0, 19]]))
