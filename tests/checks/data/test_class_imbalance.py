from __future__ import annotations

from typing import Any

from data_runs import LOSS_CALL, fed, labels, loader
from fake_run import FakeRun, findings

from clew.checks.data.class_imbalance import ClassImbalance
from clew.records.finding import Severity

CHECK = ClassImbalance()


def run(frequent: int, rare: int, right: int = 0, sampler: str = "RandomSampler", **loss: Any) -> FakeRun:
    made = fed(loader(FakeRun(), sampler=sampler)).signal("label.classes", [2.0] * 16, LOSS_CALL)
    made.fact("loss", kind="cross_entropy", file="train.py", line=29, **{"options": {}, **loss})
    return labels(made, [[0, frequent, frequent], [1, rare, right]])


def test_nine_in_ten_with_the_others_missed_is_a_warning_at_the_loss() -> None:
    (found,) = findings(CHECK, run(180, 20))
    assert (found.severity, found.site) == (Severity.WARNING, LOSS_CALL)
    assert found.message == "90.0% of the labels are class 0, and the model gets 0% of the others right"
    assert found.fix == "nn.CrossEntropyLoss(weight=torch.tensor([1, 9]))"
    assert not findings(CHECK, run(179, 21))


def test_rare_samples_that_are_found_all_the_same_make_it_advice() -> None:
    (found,) = findings(CHECK, run(190, 10, right=5))
    assert found.severity == Severity.ADVICE
    (found,) = findings(CHECK, run(190, 10, right=4))
    assert found.severity == Severity.WARNING


def test_only_the_later_part_of_the_run_tells_what_is_found() -> None:
    later = labels(run(190, 10, right=0), [[0, 380, 380], [1, 20, 10]], step=63)
    (found,) = findings(CHECK, later)
    assert "the model gets 100% of the others right" in found.message
    assert found.severity == Severity.ADVICE


def test_a_weighted_loss_or_sampler_is_left_alone() -> None:
    assert not findings(CHECK, run(190, 10, options={"weight": "given"}))
    assert not findings(CHECK, run(190, 10, options={"pos_weight": "given"}))
    assert not findings(CHECK, run(190, 10, reduction="none"))
    assert not findings(CHECK, run(190, 10, sampler="WeightedRandomSampler"))


def test_too_few_labels_give_no_verdict() -> None:
    short = run(189, 10)
    assert not findings(CHECK, short)
    assert CHECK.unjudged(short.view()) == "needs 200 labels, has 199"
