"""The registers of facts and of events: what collectors write is in them, and they list nothing else."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

import clew
from clew.labs.experiments.experiment_list import EXPERIMENTS
from clew.records.codec import UNWRITTEN, key_of
from clew.records.facts.experiment_facts import PREFIX, ExperimentFact
from clew.records.register_page import EVENTS, FACTS, find_fact

PACKAGE = Path(clew.__file__).parent
READERS = ("records", "checks", "render", "store", "web")
KINDS = sorted(FACTS)


def writers() -> list[ast.Module]:
    """The files that record something, and the records that turn measurements into facts."""
    paths = [p for p in PACKAGE.rglob("*.py") if p.relative_to(PACKAGE).parts[0] not in READERS]
    paths.append(PACKAGE / "records" / "facts" / "loader_facts.py")
    return [ast.parse(path.read_text(encoding="utf-8")) for path in paths]


def test_every_kind_of_fact_is_written_by_a_collector():
    used = {node.id for tree in writers() for node in ast.walk(tree) if isinstance(node, ast.Name)}
    silent = {kind.__name__ for kind in FACTS.values() if not issubclass(kind, ExperimentFact)} - used
    assert sorted(silent) == []


def test_every_kind_of_event_is_written():
    used = {node.id for tree in writers() for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert {kind.__name__ for kind in EVENTS.values()} <= used


def test_no_collector_writes_a_kind_that_the_register_does_not_list():
    """A kind is named by its class, not by a string that nothing checks."""
    calls = [
        node
        for tree in writers()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("fact", "event")
    ]
    literal = [ast.unparse(call) for call in calls if call.args and isinstance(call.args[0], ast.Constant)]
    assert literal == []


def test_no_file_reads_facts_or_events_by_the_text_of_their_kind():
    """They are found and read by their class."""
    compared = [
        (path.name, ast.unparse(node))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare) and ast.unparse(node.left) in ("f.kind", "fact.kind", "event.kind")
    ]
    assert [(name, text) for name, text in compared if "'" in text] == []


def test_every_experiment_has_its_kind_of_fact_and_the_reverse():
    kinds = {kind for kind in FACTS if kind.startswith(PREFIX)} - {ExperimentFact.fact_kind}
    assert kinds == {f"{PREFIX}{experiment.name}" for experiment in EXPERIMENTS}
    assert find_fact(f"{PREFIX}of-a-newer-version") is ExperimentFact
    assert find_fact("of-a-newer-version") is None


@pytest.mark.parametrize("kind", sorted(EVENTS))
def test_every_field_of_an_event_is_documented(kind: str):
    names = {key_of(f) for f in fields(EVENTS[kind]) if not f.metadata.get(UNWRITTEN)}
    assert names <= set(re.findall(r"\w+", EVENTS[kind].__doc__ or ""))


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_documented(kind: str):
    fact = FACTS[kind]
    own = [f for f in fields(fact) if not f.metadata.get(UNWRITTEN)]
    names = {key_of(f) for f in own} - {"content", *(key_of(f) for f in fields(ExperimentFact))}
    if kind == "traced":
        names = set()  # "fields as `culprit`"
    text = set(re.findall(r"\w+", fact.__doc__ or ""))
    spelled = {name for name in names if name not in text}
    assert {name for name in spelled if not name.startswith("target_")} == set()
