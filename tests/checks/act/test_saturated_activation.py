from __future__ import annotations

from collections.abc import Sequence

from fake_run import LOSS, FakeRun, findings

from clew.checks.act.saturated_activation import SaturatedActivation
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = SaturatedActivation()
TANH = Site(module="a", op="tanh", phase="train", root="model")


def run(shares: Sequence[float], end: float = 1.0, site: Site = TANH) -> FakeRun:
    made = FakeRun().model(("a", "Linear"), ("b", "Linear"))
    row = {"op": "tanh", "modules": ["a"], "into": "b"}
    made.fact("structure", root="model", squashing=[row])
    made.signal("activation.saturated", shares, site)
    return made.signal("loss", [1.0] * 30 + [end] * 30, LOSS)


def test_a_layer_that_starts_saturated_is_found() -> None:
    (found,) = findings(CHECK, run([0.61] * 20))
    assert (found.severity, found.site) == (Severity.WARNING, TANH)
    assert "61% of the outputs" in found.message


def test_at_the_limit_nothing_is_found() -> None:
    assert not findings(CHECK, run([0.6] * 20))


def test_one_sample_too_few_gives_no_verdict() -> None:
    few = run([0.9] * 19)
    assert not findings(CHECK, few)
    assert CHECK.unjudged(few.view()) == "needs 20 sampled steps, has 19"


def test_where_training_goes_well_in_spite_of_it_it_is_advice() -> None:
    assert [f.severity for f in findings(CHECK, run([0.9] * 20, end=0.5))] == [Severity.WARNING]
    assert [f.severity for f in findings(CHECK, run([0.9] * 20, end=0.49))] == [Severity.ADVICE]


def test_saturation_that_comes_later_counts_only_where_the_loss_does_not_move() -> None:
    later = [0.1] * 20 + [0.9] * 20
    assert findings(CHECK, run(later, end=0.9))
    assert not findings(CHECK, run(later, end=0.89))


def test_a_gate_or_an_output_may_saturate() -> None:
    gate = Site(module="gate", op="tanh", phase="train", root="model")
    assert not findings(CHECK, run([0.99] * 20, site=gate))
