"""The graph through the API: recorded, not asked for, or not to be had."""

from __future__ import annotations

import json

from web_runs import Client, writer_of

from clew.store.read.run_folders import create_run

MODULES = [{"path": "fc", "class": "Linear", "file": "net.py", "line": 3}]
PARAMETERS = [{"name": "fc.weight", "module": "fc", "param": "weight", "numel": 6, "requires_grad": True}]


def answer(folder, *facts):
    run = create_run(folder, {"script": "train.py"})
    writer = writer_of(run)
    writer.fact("model", 0, {"root": "net", "class": "Net", "modules": MODULES, "parameters": PARAMETERS})
    for data in facts:
        writer.fact("graph_recorded", 0, data)
    writer.close("finished", 0)
    return run


def asked(folder, run):
    with Client(folder) as api:
        return api.get(f"/api/v1/runs/{run.name}/graph").json()


def test_without_a_graph_there_are_the_modules_and_how_to_get_one(tmp_path):
    found = asked(tmp_path, answer(tmp_path))
    assert found["models"][0]["modules"][0] == {
        **MODULES[0], "order": 0, "parameters": 6, "trainable": 6,
    }  # fmt: skip
    assert found["graphs"] == []
    assert "clew run --graph" in found["missing"]


def test_a_graph_that_could_not_be_had_says_why(tmp_path):
    reason = "running its forward again failed: RuntimeError: only once"
    run = answer(tmp_path, {"root": "net", "written": False, "reason": reason})
    assert asked(tmp_path, run)["missing"].endswith(reason)


def test_a_recorded_graph_comes_as_it_is(tmp_path):
    run = answer(tmp_path, {"root": "net", "written": True, "path": "traces/graph.json", "nodes": 0})
    graph = {"version": 1, "root": "net", "name": "Net", "nodes": [], "edges": []}
    (run / "traces").mkdir()
    (run / "traces" / "graph.json").write_text(json.dumps(graph))
    found = asked(tmp_path, run)
    assert found["graphs"] == [graph]
    assert found["missing"] is None


def test_each_graph_has_a_layout_unless_it_is_damaged(tmp_path):
    run = answer(tmp_path, {"root": "net", "written": True, "path": "traces/graph.json", "nodes": 1})
    (run / "traces").mkdir()
    node = {"id": 0, "parent": None, "kind": "op", "label": "add", "type": "", "path": "", "outputs": []}
    for name, parent in (("graph.json", None), ("graph-2.json", 0)):
        graph = {
            "version": 1,
            "root": name,
            "name": "Net",
            "nodes": [{**node, "parent": parent}],
            "edges": [],
        }
        (run / "traces" / name).write_text(json.dumps(graph))
    found = asked(tmp_path, run)
    roots = [graph["root"] for graph in found["graphs"]]
    layouts = dict(zip(roots, found["layouts"], strict=True))
    assert layouts["graph-2.json"] is None  # inside itself
    assert layouts["graph.json"]["levels"][""]["nodes"] == [0]
