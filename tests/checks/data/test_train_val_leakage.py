from __future__ import annotations

from data_runs import EVAL, INPUT, fed, loader
from fake_run import FakeRun, findings

from clew.checks.data.train_val_leakage import TrainValLeakage
from clew.records.finding import Severity

CHECK = TrainValLeakage()


def run(
    seen: int,
    samples: int = 160,
    names: tuple[str, ...] = ("loader",),
    known: int = 640,
    distinct: float = 1.0,
) -> FakeRun:
    made = fed(loader(FakeRun().model(("0", "Linear"))))
    loader(made, index=1, line=40)
    made.fact("fed", phase="eval", source=0, root="model", loader=1, names=list(names))
    made.signal("sample.distinct", [distinct] * 3, INPUT)
    for name, value in {"source": 0, "samples": samples, "seen": seen, "known": known}.items():
        made.signal(f"eval.{name}", [float(value)], EVAL, [20])
    return made


def test_samples_known_from_training_are_a_warning_at_the_evaluations_loop() -> None:
    (found,) = findings(CHECK, run(8))
    assert (found.severity, found.site.line, found.step) == (Severity.WARNING, 40, 20)
    assert found.message.startswith("8 of 160 samples")
    assert not findings(CHECK, run(7))
    assert not findings(CHECK, run(8, samples=161))


def test_a_score_on_the_training_data_itself_is_no_leak() -> None:
    assert not findings(CHECK, run(160))
    assert not findings(CHECK, run(144))
    assert not findings(CHECK, run(80, names=("train_loader",)))


def test_validation_data_that_is_the_training_data_is_a_leak() -> None:
    (found,) = findings(CHECK, run(160, names=("loader", "val_loader")))
    assert "(val_loader) were used in training: it is the training data" in found.message


def test_what_was_not_looked_at_yet_counts_as_if_it_were_alike() -> None:
    assert not findings(CHECK, run(80, known=320))  # half of it was compared, and all of that is known
    assert findings(CHECK, run(40, known=320))


def test_data_in_which_samples_repeat_by_nature_is_not_judged() -> None:
    assert findings(CHECK, run(20, distinct=0.99))
    assert not findings(CHECK, run(20, distinct=0.98))
