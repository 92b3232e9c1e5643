from __future__ import annotations

from data_runs import EVAL_INPUT, INPUT, loader
from fake_run import FakeRun, findings

from clew.checks.data.train_val_preprocessing_mismatch import TrainValPreprocessingMismatch
from clew.records.finding import Severity

CHECK = TrainValPreprocessingMismatch()


def run(
    mean: float = 0.0, std: float = 1.0, train: list[tuple[float, float]] | None = None, samples: int = 5
) -> FakeRun:
    made = loader(FakeRun().model(("0", "Linear")), index=1, line=40)
    made.fact("fed", phase="eval", source=0, root="model", loader=1, names=["val_loader"])
    pairs = train or [(0.0, 1.0)] * samples
    made.signal("input.mean", [m for m, _ in pairs], INPUT).signal("input.std", [s for _, s in pairs], INPUT)
    return made.signal("eval_input.mean", [mean], EVAL_INPUT).signal("eval_input.std", [std], EVAL_INPUT)


def test_another_scale_in_evaluation_is_a_warning_at_its_loop() -> None:
    (found,) = findings(CHECK, run(std=2.21))
    assert (found.severity, found.site.line) == (Severity.WARNING, 40)
    assert not findings(CHECK, run(std=2.19))
    assert findings(CHECK, run(std=0.45))
    assert not findings(CHECK, run(std=0.46))


def test_another_level_in_evaluation_is_a_warning() -> None:
    assert findings(CHECK, run(mean=3.01))
    assert not findings(CHECK, run(mean=2.99))


def test_batches_that_differ_much_among_themselves_need_a_larger_difference() -> None:
    uneven = [(0.0, s) for s in (0.3, 1.0, 3.0, 0.5, 2.0)]
    assert not findings(CHECK, run(std=5.0, train=uneven))
    wandering = [(m, 1.0) for m in (-2.0, 2.0, -1.0, 1.0, 0.0)]
    assert not findings(CHECK, run(mean=4.0, train=wandering))


def test_an_evaluation_on_nothing_but_zeros_is_another_scale() -> None:
    assert findings(CHECK, run(std=0.0))


def test_four_batches_give_no_verdict() -> None:
    short = run(std=100.0, samples=4)
    assert not findings(CHECK, short)
    assert CHECK.unjudged(short.view()) == "needs 5 sampled batches, has 4"
