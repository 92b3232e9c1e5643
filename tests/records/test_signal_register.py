"""The register of signals: what collectors write is in it, and nothing else is."""

from __future__ import annotations

import ast
from itertools import takewhile
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


# Calls that take the name of a signal, or of one and its values.
TAKE_A_SIGNAL = {"series", "find", "only", "column", "Series", "has", "of_parameter", "wide", "known_as"}
REGISTER = ("records/signals.py", "records/signal_types.py")


def named_by_text(tree: ast.AST) -> set[str]:
    """Signals that code names by text instead of by the register's objects.

    A name with a dot means nothing but a signal. One without, such as `loss` or `lr`, is an everyday word too
    (a key of an optimizer's group, a label): it names a signal only as the argument of a call that takes one.
    """
    known = {*signals.SIGNALS, *(of.headroom_name for of in signals.MEASURED)}
    arguments = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called(node) in TAKE_A_SIGNAL
        for argument in (*node.args, *(keyword.value for keyword in node.keywords))
    }
    texts = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return {n.value for n in texts if n.value in known and ("." in n.value or id(n) in arguments)}


def called(call: ast.Call) -> str:
    """The name of the function that a call calls."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def test_no_file_names_a_signal_by_text():
    """A misspelt name would read nothing; a renamed signal would be forgotten."""
    files = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    found = {
        name: named_by_text(ast.parse(path.read_text(encoding="utf-8")))
        for name, path in files.items()
        if name not in REGISTER
    }
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_a_signal_named_by_text_is_found_and_an_everyday_word_is_not():
    assert named_by_text(ast.parse("group['lr'], series.evidence('loss')")) == set()
    assert named_by_text(ast.parse("data.series('loss')\nx = 'step.time'")) == {"loss", "step.time"}
    assert named_by_text(ast.parse("Series('gradient.headroom', site)")) == {"gradient.headroom"}


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
    before_layers = takewhile(lambda group: not group.layered, signals.GROUPS)
    assert charted - {group.name for group in before_layers} == set()


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


def test_no_two_layer_maps_have_the_same_position():
    maps = [entry.layer_map for entry in signals.SIGNALS.values()]
    maps += [entry.headroom_map for entry in signals.MEASURED]
    positions = [shown.position for shown in maps if shown is not None]
    assert sorted(positions) == list(range(1, len(positions) + 1))
