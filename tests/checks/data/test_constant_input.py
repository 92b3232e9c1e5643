from __future__ import annotations

from data_runs import INPUT, LOOP, fed, loader
from fake_run import FakeRun, findings

from clew.checks.data.constant_input import ConstantInput
from clew.records.finding import Severity

CHECK = ConstantInput()


def run(
    *,
    low: float = -1,
    high: float = 1,
    constant: float = 0,
    distinct: float = 1,
    columns: float = 0,
    features: int = 64,
    spread: float = 1.5,
    batch: int = 32,
    samples: int = 5,
) -> FakeRun:
    made = fed(loader(FakeRun().model(("0", "Linear"))))
    values = {"count": batch, "distinct": distinct, "constant": constant, "features": features}
    for name, value in {**values, "constant_features": columns}.items():
        made.signal(f"sample.{name}", [value] * samples, INPUT)
    for name, value in {"min": low, "max": high, "feature_spread": spread}.items():
        made.signal(f"input.{name}", [value] * samples, INPUT)
    return made


def test_an_input_of_one_value_is_an_error_at_the_loaders_loop() -> None:
    (found,) = findings(CHECK, run(low=0, high=0, constant=1, distinct=1 / 32))
    assert (found.severity, found.site.file, found.site.line) == (Severity.ERROR, *LOOP)
    assert "every input of the model is 0" in found.message
    assert not findings(CHECK, run(low=0, high=0.001))


def test_copies_of_one_sample_are_an_error() -> None:
    (found,) = findings(CHECK, run(distinct=1 / 32))
    assert "the 32 samples of a batch are all the same" in found.message
    assert not findings(CHECK, run(distinct=2 / 32))
    assert not findings(CHECK, run(distinct=1 / 3, batch=3))


def test_half_of_the_samples_blank_is_a_warning() -> None:
    (found,) = findings(CHECK, run(constant=0.5))
    assert found.severity == Severity.WARNING
    assert not findings(CHECK, run(constant=0.49))
    assert not findings(CHECK, run(constant=0.5, features=7))


def test_most_columns_of_a_table_constant_is_a_warning() -> None:
    (found,) = findings(CHECK, run(columns=0.75, features=8))
    assert "75% of the 8 columns" in found.message
    assert not findings(CHECK, run(columns=0.74, features=8))


def test_columns_are_judged_only_with_many_samples_and_in_tables() -> None:
    assert not findings(CHECK, run(columns=0.9, features=9))
    assert not findings(CHECK, run(columns=0.9, features=8, spread=1.0))


def test_four_batches_give_no_verdict() -> None:
    short = run(low=0, high=0, distinct=1 / 32, samples=4)
    assert not findings(CHECK, short)
    assert CHECK.unjudged(short.view()) == "needs 5 sampled batches, has 4"


def test_a_constant_first_argument_beside_others_that_vary_is_healthy() -> None:
    assert not findings(CHECK, run(low=0, high=0, distinct=1.0))
