from __future__ import annotations

import math

import numpy as np
from fake_run import FakeRun, weight

from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records.events import ExceptionEvent, InterruptEvent
from clew.records.site import Site


def series(*values: float) -> Series:
    return Series("loss", Site(), np.arange(len(values)), np.array(values, dtype=float))


def test_a_series_is_cut_by_count_and_by_step() -> None:
    s = series(0, 1, 2, 3, 4)
    assert list(s.first(2).values) == [0, 1]
    assert list(s.last(2).values) == [3, 4]
    assert list(s.since(3).values) == [3, 4]
    assert list(s.before(2).values) == [0, 1]
    assert len(s.first(9)) == len(s.last(9)) == 5
    assert len(s.last(0)) == len(s.first(-1)) == 0


def test_statistics_are_of_the_finite_values_and_shares_of_all() -> None:
    s = series(1, math.nan, 3, math.inf, 5)
    assert (s.median, s.min, s.max) == (3, 1, 5)
    assert (s.share_above(2), s.share_below(2)) == (0.6, 0.2)
    assert s.first_nonfinite() == 1
    assert math.isnan(series(math.nan).median)
    assert series().share_above(0) == 0.0


def test_onset_is_where_the_bad_stretch_up_to_the_end_began() -> None:
    s = series(1, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
    assert s.onset(s.values == 1) == 4, "one good value in a long bad stretch does not end it"
    assert s.onset(s.values == 1, sustained=0.99) == 7
    assert s.onset(s.values == 2) is None


def test_evidence_is_thin_and_keeps_both_extremes() -> None:
    values = np.sin(np.arange(5000.0))
    values[1234], values[4321], values[7] = 99, -99, math.nan
    evidence = series(*values).evidence("loss")
    assert len(evidence.values) <= 60
    assert {99.0, -99.0} <= set(evidence.values)
    assert (evidence.steps[0], evidence.steps[-1]) == (0, 4999)
    assert list(evidence.steps) == sorted(evidence.steps)


def test_one_model_needs_no_prefix() -> None:
    view = FakeRun().model(("fc", "Linear"), kind="Mlp").view()
    assert view.name(weight("fc")) == "fc.weight"
    assert view.module_name(Site(module="", root="model")) == "Mlp"
    assert view.module_name(Site(file="a.py", line=1)) is None


def test_two_models_are_told_apart_by_their_roots() -> None:
    view = FakeRun().model(("fc", "Linear"), root="gen").model(("fc", "Linear"), root="disc").view()
    assert view.locate(Site(module="fc", root="gen")).module == "gen.fc"
    assert view.module_name(Site(module="", root="disc")) == "disc"


def test_a_loss_module_is_no_second_model() -> None:
    run = FakeRun().model(("fc", "Linear")).model(root="criterion", kind="CrossEntropyLoss")
    assert run.view().module_name(Site(module="fc", root="model")) == "fc"


def test_a_site_keeps_its_own_line_and_else_gets_that_of_its_layer() -> None:
    view = FakeRun().model(("fc", "Linear")).view()
    assert view.locate(Site(module="fc")) == Site(module="fc", file="net.py", line=10)
    own = Site(module="fc", file="a.py", line=3)
    assert view.locate(own) == own
    assert view.locate(Site(module="", root="model")).line == 9


def test_a_layer_made_inside_a_library_is_located_by_what_holds_it() -> None:
    run = FakeRun().model(("encoder", "Encoder"), ("encoder.0.attn", "Attention"), ("encoder.0.fc", "Linear"))
    for module in run.facts[0].data["modules"][1:]:
        module.update(file=None, line=None)
    assert run.view().locate(Site(module="encoder.0.fc")).line == 10
    assert run.view().locate(Site(module="unknown")).line == 9


def test_functions_are_named_within_their_module_and_modules_by_themselves() -> None:
    view = FakeRun().model(("fc", "Linear"), ("act", "ReLU")).view()
    assert view.name(Site(module="fc", op="relu")) == "relu in fc"
    assert view.name(Site(module="act", op="relu")) == "act"


def test_needs_are_signals_facts_or_one_of_several() -> None:
    view = FakeRun().signal("loss", [1.0]).fact("mode").view()
    assert view.has("loss")
    assert view.has("fact:mode")
    assert view.has("grad.norm|loss")
    assert not view.has("fact:loss")
    assert not view.has("mode")


def test_a_growing_run_counts_its_steps_and_knows_whether_it_ended() -> None:
    run = FakeRun()
    assert (run.view().steps, run.view().finished) == (0, False)
    run.signal("loss", [1.0, 2.0]).end = {"state": "finished"}
    assert (run.view().steps, run.view().finished) == (2, True)


def test_events_and_phases_are_filtered() -> None:
    run = FakeRun().signal("loss", [1.0], Site(phase="train")).signal("loss", [2.0], Site(phase="eval"))
    assert [s.values[0] for _, s in run.view().series("loss", "eval")] == [2.0]
    run.events += FakeRun().fact("exception", 3).facts
    assert [e.step for e in RunView(run).events("exception")] == [3]
    assert RunView(run).happened(ExceptionEvent) == [ExceptionEvent(step=3)]
    assert RunView(run).happened(InterruptEvent) == []
