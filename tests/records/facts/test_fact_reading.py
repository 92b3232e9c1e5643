"""Facts are read as they were written, and reading never raises."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.records.codec import key_of
from clew.records.facts.fact import TypedFact
from clew.records.facts.model_facts import GraphFact, ModelFact, NormRow
from clew.records.facts.nan_facts import NonFiniteFact
from clew.records.facts.step_facts import LoaderFact, OptimizerFact
from clew.records.register_page import FACTS

KINDS = sorted(FACTS)


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
