"""The register of signals: what collectors write is in it, and nothing else is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from program_process import clew_run, run_warm

import clew
from clew.measure.stats import STAT_NAMES
from clew.records import signals
from clew.records.register_page import filled, find_fact
from clew.records.signal_types import STATISTICS, Signal, TensorSignals
from clew.store.read.run_folders import find_run
from clew.store.read.run_reader import open_run

PACKAGE = Path(clew.__file__).parent
READERS = ("records", "checks", "render", "store", "web")


def entries() -> dict[str, Signal | TensorSignals]:
    return {
        name: value for name, value in vars(signals).items() if isinstance(value, (Signal, TensorSignals))
    }


def names_used(path: Path) -> set[str]:
    """The constants of the register that a file mentions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "signals"
    }


def test_every_signal_of_the_register_is_written_by_a_collector():
    writers = [p for p in PACKAGE.rglob("*.py") if p.relative_to(PACKAGE).parts[0] not in READERS]
    written = set().union(*(names_used(path) for path in writers))
    assert sorted(entries().keys() - written) == []


def test_the_statistics_are_those_of_the_kernel_in_its_order():
    assert tuple(statistic.name for statistic in STATISTICS) == STAT_NAMES


def test_no_two_signals_have_one_name():
    names = [s.name for e in signals.REGISTER for s in (e.signals if isinstance(e, TensorSignals) else (e,))]
    assert sorted(names) == sorted([*signals.SIGNALS, *(family.name for family in signals.FAMILIES)])


@pytest.mark.parametrize("program", ["every_seam", "masked_transformer", "gan", "validation", "two_losses"])
def test_every_signal_and_fact_that_a_program_records_is_in_the_register(program: str, tmp_path: Path):
    ended = run_warm([*clew_run(tmp_path, "--quiet"), f"{program}.py"])
    assert ended.code == 0, ended.err
    data = open_run(find_run(tmp_path)).data
    recorded = set(data.signal_names())
    assert {"loss", "grad.norm", "wall"} <= recorded
    assert sorted(name for name in recorded if signals.find(name) is None) == []
    assert {"model", "optimizer", "loss", "parameters", "pattern"} <= {fact.kind for fact in data.facts}
    for fact in data.facts:
        kind = find_fact(fact.kind)
        assert kind is not None, fact.kind
        assert kind.read(fact.data).to_json() == fact.data, fact.kind


def test_a_charted_signal_is_on_the_page_however_many_layers_a_model_has():
    """The page asks for the first signals only; groups that GROUPS does not list come after all layers."""
    charted = {s.group.name for s in (*signals.SIGNALS.values(), *signals.FAMILIES) if s.chart is not None}
    assert charted - {group.name for group in signals.GROUPS} == set()


def test_members_of_a_family_are_known_by_its_name():
    metric = signals.find("metric.val/accuracy")
    assert metric is not None
    assert (metric.title, metric.group.name, metric.unit) == ("val/accuracy", "metric", "")
    assert signals.known_as("metric.zeros").unit == "", "the user's own: nobody has said"
    rate = signals.find("lr.3")
    assert rate is not None
    assert rate.group is signals.LR.group
    assert signals.find("metric") is None


def test_bins_of_histograms_are_known_where_they_are_recorded():
    assert signals.known_as("gradient.log2hist.07").unit == "share"
    assert signals.find("weight.histogram.lo") is not None
    assert signals.find("update.histogram.lo") is None, "no signed histogram of the change is taken"


def test_of_a_signal_of_a_newer_version_only_the_name_is_known():
    assert signals.find("optimizer.curvature") is None
    unknown = signals.known_as("optimizer.curvature")
    assert (unknown.title, unknown.group.name, unknown.unit) == ("optimizer.curvature", "optimizer", "")
    assert signals.known_as("activation.rank").group is signals.ACTIVATIONS


def test_tables_are_put_between_their_marks_and_nothing_else_changes():
    page = "a\n<!-- x: made -->\nold\n<!-- end of x -->\nb\n"
    assert filled(page, {"x": "new\n"}) == "a\n<!-- x: made -->\nnew\n<!-- end of x -->\nb\n"
    with pytest.raises(ValueError, match="no place for the table of y"):
        filled(page, {"y": "new\n"})
