from __future__ import annotations

from fake_run import STEP, FakeRun, findings, parameter

from clew.checks.opt.missing_zero_grad import MissingZeroGrad
from clew.records.finding import Severity
from clew.records.site import Site


def stale(*values: float) -> FakeRun:
    return FakeRun().signal("grad.stale", values, STEP)


def test_three_stale_steps_after_the_first_are_an_error_at_the_step_call() -> None:
    (found,) = findings(MissingZeroGrad(), stale(0, 1, 1, 1))
    assert (found.severity, found.step, found.site) == (Severity.ERROR, 1, STEP)
    assert "3 of the 3 sampled steps" in found.message
    assert found.fix.startswith("optimizer.zero_grad()")


def test_two_stale_steps_give_no_verdict() -> None:
    run = stale(0, 1, 1)
    assert not findings(MissingZeroGrad(), run)
    assert MissingZeroGrad().unjudged(run.view()) == "needs 4 optimizer steps, has 3"


def test_nine_tenths_of_the_steps_must_be_stale() -> None:
    assert findings(MissingZeroGrad(), stale(0, *[1] * 9, 0))
    assert not findings(MissingZeroGrad(), stale(0, *[1] * 9, 0, 0))


def test_zeroing_every_few_steps_is_a_choice() -> None:
    assert not findings(MissingZeroGrad(), stale(*[0, 1, 1, 1] * 10))


def test_every_optimizer_is_judged_by_itself() -> None:
    other = Site(op="step", file="train.py", line=40)
    run = stale(*[0] * 10).signal("grad.stale", [0, 1, 1, 1, 1], other)
    assert [f.site for f in findings(MissingZeroGrad(), run)] == [other]


def test_the_growth_of_the_gradient_is_shown() -> None:
    run = stale(0, 1, 1, 1).signal("grad.norm", [1.0, 2.0, 3.0, 4.0], STEP)
    (found,) = findings(MissingZeroGrad(), run)
    assert found.evidence[1].text == "gradient norm from 1 to 4"


def with_zeroing(patterns: list[float], run: FakeRun) -> FakeRun:
    run.fact("pattern", id=0, pattern="dfbs").fact("pattern", id=1, pattern="zdfbs")
    return run.signal("events.pattern", patterns)


def test_zeroing_once_per_epoch_is_reported_as_such() -> None:
    run = with_zeroing([1.0, *[0.0] * 19] * 3, stale(0, *[1] * 59))
    (found,) = findings(MissingZeroGrad(), run)
    assert "gradients are cleared only every 20 steps" in found.message
    assert "inside the loop over the batches" in found.fix


def test_the_optimizer_whose_gradients_stay_is_named_where_another_one_is_zeroed() -> None:
    other = Site(op="step", file="train.py", line=40)
    run = with_zeroing([1.0] * 60, stale(0, *[1] * 59)).signal("lr", [0.1] * 60, STEP)
    run.signal("lr", [0.1] * 55, other, range(5, 60)).signal("grad.stale", [0.0] * 55, other, range(5, 60))
    run.fact("optimizer", 0, index=0, line=18, **{"class": "Adam"})
    run.fact("optimizer", 5, index=1, line=17, **{"class": "Adam"})
    run.parameters(parameter("net", optimizer=0), root="critic")
    run.parameters(parameter("net", optimizer=1), root="generator")
    (found,) = findings(MissingZeroGrad(), run)
    assert "never on the optimizer of critic" in found.message
    assert found.fix.startswith("call zero_grad() on the Adam created on line 18, which steps here")
