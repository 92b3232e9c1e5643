from __future__ import annotations

from data_runs import LOSS_CALL, fed, loader
from fake_run import NOWHERE, FakeRun, findings

from clew.checks.data.constant_target import ConstantTarget
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = ConstantTarget()
NAN = float("nan")


def run(
    low: float = 3,
    high: float = 3,
    given: float = 1.0,
    calls: float = 1.0,
    samples: int = 10,
    length: int = 320,
    site: Site = LOSS_CALL,
) -> FakeRun:
    made = fed(loader(FakeRun(), length=length))
    for name, value in {"min": low, "max": high, "given": given, "calls": calls}.items():
        made.signal(f"target.{name}", [value] * samples, site)
    return made.signal("batch.size", [32.0] * samples, NOWHERE)


def test_one_value_for_every_sample_is_an_error_at_the_loss() -> None:
    (found,) = findings(CHECK, run())
    assert (found.severity, found.site, found.step) == (Severity.ERROR, LOSS_CALL, 0)
    assert found.message.startswith("every target of cross_entropy is 3:")
    assert not findings(CHECK, run(high=3.001))


def test_sorted_data_that_has_not_been_read_to_its_end_is_not_judged() -> None:
    assert findings(CHECK, run(length=320))
    assert not findings(CHECK, run(length=321))


def test_targets_that_the_program_makes_itself_are_left_alone() -> None:
    assert not findings(CHECK, run(given=0.0))
    assert not findings(CHECK, run(low=0, high=0, given=NAN))
    assert not findings(CHECK, run(given=NAN, calls=2.0))
    assert findings(CHECK, run(given=NAN))


def test_one_of_several_losses_may_have_a_constant_target() -> None:
    both = run().signal(
        "target.given", [1.0] * 10, Site(op="mse_loss", file="train.py", line=31, phase="train")
    )
    assert not findings(CHECK, both)


def test_nine_batches_give_no_verdict() -> None:
    short = run(samples=9, length=100)
    assert not findings(CHECK, short)
    assert CHECK.unjudged(short.view()) == "needs 10 sampled batches, has 9"
