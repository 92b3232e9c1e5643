from __future__ import annotations

from data_runs import LOOP, fed, loader
from fake_run import FakeRun, findings

from clew.checks.data.dataset_mutates import DatasetMutates
from clew.records.finding import Severity

CHECK = DatasetMutates()


def run(mean_now: float, loader_index: int = 0) -> FakeRun:
    made = fed(loader(loader(FakeRun()), index=1, line=40))
    data = {"array": "images", "epoch": 1, "mean": 1.0, "std": 2.0, "std_now": 2.0}
    return made.fact("dataset_changed", 20, loader=loader_index, mean_now=mean_now, **data)


def test_stored_data_that_changed_within_an_epoch_is_an_error_at_the_loaders_loop() -> None:
    (found,) = findings(CHECK, run(0.9))
    assert (found.severity, found.step) == (Severity.ERROR, 20)
    assert (found.site.file, found.site.line) == LOOP
    assert "the data in Images.images is changed in place" in found.message


def test_a_change_of_a_hundredth_may_be_rounding() -> None:
    assert findings(CHECK, run(1.021))
    assert not findings(CHECK, run(1.019))


def test_a_dataset_that_is_not_trained_on_is_left_alone() -> None:
    assert not findings(CHECK, run(0.5, loader_index=1))
