from __future__ import annotations

from data_runs import LOOP, fed, loader
from fake_run import FakeRun, findings

from clew.checks.data.pretrained_preprocessing_mismatch import PretrainedPreprocessingMismatch
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = PretrainedPreprocessingMismatch()
NORM = Site("bn1", phase="train", root="model")


def run(shift: float, scale: float) -> FakeRun:
    made = fed(loader(FakeRun().model(("conv1", "Conv2d"), ("bn1", "BatchNorm2d"))))
    made.signal("pretrained.shift", [shift, 0.0, 0.0], NORM)
    return made.signal("pretrained.scale", [scale, 1.0, 1.0], NORM)


def test_inputs_wider_than_the_loaded_statistics_are_a_warning() -> None:
    (found,) = findings(CHECK, run(0.5, 3.0))
    assert (found.severity, found.site.file, found.site.line) == (Severity.WARNING, *LOOP)
    assert "at bn1 they are 3 times wider" in found.message
    assert not findings(CHECK, run(0.5, 2.99))


def test_inputs_narrower_than_the_loaded_statistics_are_a_warning() -> None:
    (found,) = findings(CHECK, run(0.5, 0.25))
    assert "4 times narrower" in found.message
    assert not findings(CHECK, run(0.5, 0.34))


def test_inputs_far_from_the_loaded_means_are_a_warning() -> None:
    assert findings(CHECK, run(3.0, 1.0))
    assert not findings(CHECK, run(2.99, 1.0))
