"""The register of facts: what collectors write is in it, and reading never raises."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clew
from clew.labs.experiments.experiment_list import EXPERIMENTS
from clew.records.codec import UNWRITTEN, key_of
from clew.records.facts.experiment_facts import PREFIX, ExperimentFact
from clew.records.facts.fact import TypedFact
from clew.records.facts.model_facts import GraphFact, ModelFact, NormRow
from clew.records.facts.nan_facts import NonFiniteFact
from clew.records.facts.step_facts import LoaderFact, OptimizerFact
from clew.records.register_page import FACTS, find_fact

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


def test_no_collector_writes_a_kind_that_the_register_does_not_list():
    """A kind is named by its class, not by a string that nothing checks."""
    calls = [
        node
        for tree in writers()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fact"
    ]
    literal = [ast.unparse(call) for call in calls if call.args and isinstance(call.args[0], ast.Constant)]
    assert literal == []


def test_every_experiment_has_its_kind_of_fact_and_the_reverse():
    kinds = {kind for kind in FACTS if kind.startswith(PREFIX)} - {ExperimentFact.fact_kind}
    assert kinds == {f"{PREFIX}{experiment.name}" for experiment in EXPERIMENTS}
    assert find_fact(f"{PREFIX}of-a-newer-version") is ExperimentFact
    assert find_fact("of-a-newer-version") is None


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


@pytest.mark.parametrize("kind", KINDS)
def test_a_fact_without_content_is_read_and_written(kind: str):
    fact = FACTS[kind].read({}, 3)
    again = FACTS[kind].read(json.loads(json.dumps(fact.to_json())), 3)
    assert type(again) is type(fact)
    assert again.to_json() == fact.to_json()  # a NaN equals itself only as JSON


def test_what_is_written_is_read_back():
    model = ModelFact.read(
        {
            "root": "net",
            "class": "Net",
            "modules": [{"path": "fc", "class": "Linear", "line": 3}],
            "parameters": [{"name": "fc.weight", "module": "fc", "param": "weight", "shape": [4, 2]}],
        }
    )
    assert (model.kind, model.layers[0].kind, model.dims) == ("Net", "Linear", {("fc", "weight"): 2})
    assert ModelFact.read(model.to_json()) == model
    assert model.to_json()["modules"][0]["class"] == "Linear"
    graph = GraphFact(root="net", norms=(NormRow("bn", "BatchNorm1d", True, 1),))
    assert graph.to_json()["norms"] == [["bn", "BatchNorm1d", True, 1]]
    assert GraphFact.read(graph.to_json(), 7) == GraphFact(root="net", norms=graph.norms, step=7)


def test_what_does_not_fit_keeps_its_default_and_the_rest_is_read():
    damaged = {
        "index": "first",
        "class": 7,
        "file": "a.py",
        "line": True,
        "groups": [{"lr": "x"}, 3],
        "new": 1,
    }
    fact = OptimizerFact.read(damaged)
    assert (fact.index, fact.kind, fact.file, fact.line) == (None, "optimizer", "a.py", None)
    assert [group.lr for group in fact.groups] == [0.0]
    assert LoaderFact.read({"shuffle": None, "num_workers": 2}).workers == 2
    assert NonFiniteFact.read({"where": "elsewhere"}).where == "gradient"


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(data=st.data())
def test_reading_never_raises(kind: str, data: st.DataObject):
    fact = FACTS[kind]
    keys = [key_of(f) for f in fields(fact)] + ["name", "kind", "split", "parts"]
    damaged = data.draw(st.dictionaries(st.sampled_from(keys), junk, max_size=4))
    assert isinstance(fact.read(damaged, 1), TypedFact)
