from __future__ import annotations

import math

from fake_run import FakeRun, findings

from clew.checks.act.dead_units import DeadUnits
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = DeadUnits()
RELU = Site(module="act", op="relu", phase="train", root="model")


def layer(*fractions: float, site: Site = RELU) -> FakeRun:
    return FakeRun().signal("activation.dead_fraction", fractions, site)


def test_more_than_half_of_the_units_silent_is_found() -> None:
    (found,) = findings(CHECK, layer(*[0.51] * 20))
    assert (found.severity, found.site) == (Severity.WARNING, RELU)
    assert "51% of the units" in found.message


def test_half_of_the_units_silent_is_not_found() -> None:
    assert not findings(CHECK, layer(*[0.5] * 20))


def test_one_sample_too_few_gives_no_verdict() -> None:
    run = layer(*[0.9] * 19)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 20 sampled steps, has 19"


def test_nine_tenths_of_the_window_must_be_bad() -> None:
    assert findings(CHECK, layer(*[0.1] * 2, *[0.9] * 18))
    assert not findings(CHECK, layer(*[0.1] * 3, *[0.9] * 17))


def test_the_step_is_when_it_began() -> None:
    (found,) = findings(CHECK, layer(*[0.1] * 30, *[0.9] * 30))
    assert found.step == 30


def test_layers_without_units_that_die_are_no_layers_to_judge() -> None:
    run = layer(*[math.nan] * 30)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) is None


def test_the_worst_layer_leads_and_the_first_of_equals() -> None:
    run = FakeRun().model(("a", "ReLU"), ("b", "ReLU"), ("c", "ReLU"))
    for path, share in (("c", 1.0), ("b", 1.0), ("a", 0.6)):
        run.signal("activation.dead_fraction", [share] * 20, Site(path, "relu", root="model"))
    assert [f.site.module for f in findings(CHECK, run)] == ["b", "c", "a"]


def test_a_batch_too_small_to_tell_is_not_judged() -> None:
    run = layer(*[0.9] * 20).signal("batch.size", [7.0] * 20)
    assert not findings(CHECK, run)
    assert "fewer than 8 samples" in (CHECK.unjudged(run.view()) or "")
    assert findings(CHECK, layer(*[0.9] * 20).signal("batch.size", [8.0] * 20))
    assert findings(CHECK, layer(*[0.9] * 20).signal("batch.size", [0.0] * 20)), "0 means unknown"
