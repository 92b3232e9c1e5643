from __future__ import annotations

from data_runs import INPUT, LOOP, ROOT, fed, loader
from fake_run import NOWHERE, FakeRun, findings

from clew.checks.data.repeated_batch import RepeatedBatch
from clew.records.finding import Severity

CHECK = RepeatedBatch()


def run(hashes: list[float], pattern: str = "dzfbs", **of_loader: int) -> FakeRun:
    made = fed(loader(FakeRun().model(("0", "Linear")), **of_loader)).signal("batch.hash", hashes, ROOT)
    made.signal("sample.seen", [0.0] + [1.0] * (len(hashes) - 1), INPUT)
    return made.fact("pattern", id=0, pattern=pattern).signal("events.pattern", [0.0] * len(hashes), NOWHERE)


def test_the_same_batch_asked_for_in_every_step_is_a_warning() -> None:
    (found,) = findings(CHECK, run([7.0] * 10))
    assert (found.severity, found.site.file, found.site.line) == (Severity.WARNING, *LOOP)
    assert "although the loader has 640 samples" in found.message


def test_one_other_batch_is_enough_for_health() -> None:
    assert not findings(CHECK, run([7.0] * 9 + [8.0]))
    assert not findings(CHECK, run([8.0] + [7.0] * 10))


def test_a_batch_fetched_once_and_memorised_is_advice() -> None:
    (found,) = findings(CHECK, run([7.0] * 10, pattern="zfbs"))
    assert found.severity == Severity.ADVICE


def test_data_that_is_one_batch_is_left_alone() -> None:
    assert not findings(CHECK, run([7.0] * 10, length=32))


def test_nine_batches_give_no_verdict() -> None:
    short = run([7.0] * 9)
    assert not findings(CHECK, short)
    assert CHECK.unjudged(short.view()) == "needs 10 sampled batches, has 9"


def sliced(rows: float, batch: float = 32) -> FakeRun:
    made = fed(FakeRun().model(("0", "Linear")), None).signal("batch.hash", [7.0] * 10, ROOT)
    made.signal("sample.sliced", [0.0] + [rows] * 9, INPUT)
    made.signal("sample.seen", [0.0] + [1.0] * 9, INPUT)
    return made.signal("sample.count", [batch] * 10, INPUT)


def test_the_same_slice_of_a_larger_tensor_is_a_warning_where_it_goes_in() -> None:
    (found,) = findings(CHECK, sliced(128))
    assert found.message == "every step trains on the same 32 of 128 rows"
    assert (found.site.file, found.site.line) == ("train.py", 28)
    assert not findings(CHECK, sliced(127))
    assert not findings(CHECK, sliced(0))


def test_a_first_argument_that_stays_the_same_is_not_the_whole_batch() -> None:
    made = run([7.0] * 10)
    made._columns["sample.seen"] = {INPUT: ([0, 1, 2], [0.0, 1.0, 0.5])}
    assert not findings(CHECK, made)
