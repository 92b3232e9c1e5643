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


def read_again(fields: list[str], arrays: list[str]) -> FakeRun:
    """The experiment: what has changed after samples were read several times."""
    return FakeRun().experiment(
        "dataset-mutates", dataset="Images", samples=8, reads=3, fields=fields, arrays=arrays,
        means=[1.0, 0.5, 0.25], deviations=[2.0, 1.0, 0.5], line=["train.py", 12],
    )  # fmt: skip


def test_samples_that_change_when_they_are_read_are_certain() -> None:
    (found,) = findings(CHECK, read_again(["0"], ["images"]))
    assert (found.severity, found.confidence) == (Severity.ERROR, "certain")
    assert found.message.endswith("standard deviation of the samples 2, then 1, then 0.5")
    assert not findings(CHECK, read_again([], ["images"])), "a cache"
    assert not findings(CHECK, read_again(["0"], [])), "a random transform"
