"""Runs with unexpected content: every request is still answered, and nothing is invented."""

from __future__ import annotations

import json

import numpy as np
import pytest
from web_runs import Client, begin, make_run, writer_of

from clew.records.site import Site
from clew.store.read.run_folders import create_run

VIEWS = ("", "/signals", "/layers", "/histograms", "/graph", "/profile", "/data", "/notes")
KINDS = [
    "model",
    "parameters",
    "optimizer",
    "loader",
    "fed",
    "labels",
    "config",
    "versions",
    "git",
    "precision",
    "custom_check",
    "ignore",
    "incident",
    "idle",
    "repro",
    "culprit",
]
FIELDS = [
    "root",
    "class",
    "file",
    "line",
    "modules",
    "parameters",
    "items",
    "index",
    "groups",
    "loader",
    "phase",
    "batch_size",
    "length",
    "values",
    "source",
    "torch",
    "commit",
    "counts",
    "kind",
    "check",
    "findings",
]
LISTS = ([], [3], [[1]], [{}], [{"path": 3, "dtype": [], "numel": "x"}])
JUNK = (None, True, 3, -1, 1e308, "text", "", {}, {"a": {"b": []}}, *LISTS)


@pytest.mark.parametrize("value", JUNK, ids=lambda value: json.dumps(value)[:20])
def test_facts_of_any_shape_are_survived(tmp_path, value):
    run = create_run(tmp_path, {"script": value, "name": value, "command": value, "versions": value})
    writer = writer_of(run)
    every, _, _ = begin(writer)
    for kind in KINDS:
        writer.fact(kind, 0, dict.fromkeys(FIELDS, value))
    writer.event("exception", 0, {"message": value})
    table = writer.table(["activation.std", "gradient.norm"], [writer.site(Site(module="fc", root="net"))])
    for step in range(30):
        writer.row(every, step, [1.0])
        writer.row(table, step, [1.0, 2.0])
    writer.close("finished")
    other = make_run(tmp_path, steps=20)
    with Client(tmp_path) as api:
        for view in VIEWS:
            answer = api.get(f"/api/v1/runs/{run.name}{view}")
            assert answer.status_code == 200, (view, answer.text)
        assert api.get(f"/api/v1/compare?runs={run.name},{other.name}").status_code == 200
        rows = {row["id"]: row for row in api.get("/api/v1/runs").json()["runs"]}
        assert rows[run.name]["steps"] == 30


def test_run_json_of_any_shape_is_survived(tmp_path):
    run = make_run(tmp_path, steps=20)
    for value in JUNK:
        meta = dict.fromkeys(
            ("name", "script", "command", "versions", "world_size", "started", "hostname", "user"), value
        )
        (run / "run.json").write_text(json.dumps({"format_version": 1, **meta}))
        with Client(tmp_path) as api:
            (row,) = api.get("/api/v1/runs").json()["runs"]
            assert row["state"] == "finished"
            assert api.get(f"/api/v1/runs/{run.name}").status_code == 200


def test_moments_of_a_long_uneven_clock_are_found_exactly(tmp_path):
    rng = np.random.default_rng(0)
    clock = np.cumsum(rng.exponential(1.0, 30_000) * (1 + 50 * (rng.random(30_000) < 0.001)))
    run = create_run(tmp_path, {"script": "train.py"})
    writer = writer_of(run)
    table = writer.table(["wall", "loss"], [writer.site(Site(op="step"))])
    for step, now in enumerate(clock):
        writer.row(table, step, [now, float(step)])
    writer.close("finished")
    with Client(tmp_path) as api:
        base = f"/api/v1/runs/{run.name}"
        found = api.get(f"{base}/signals?search=loss").json()["signals"]
        for _ in range(12):
            lo, hi = np.sort(rng.uniform(-10, clock[-1] + 10, 2))
            query = f"keys={found[0]['key']}&x=wall&from={lo}&to={hi}&points=20000"
            (loss,) = api.get(f"{base}/series?{query}").json()["series"]
            wanted = np.flatnonzero((clock >= lo) & (clock <= hi))
            assert loss["total"] == len(wanted)
            if len(wanted):
                assert loss["steps"][0] == wanted[0]
                assert abs(loss["x"][0] - clock[wanted[0]]) <= 1e-5 * clock[-1]


def test_values_at_the_ends_of_what_floats_can_hold_are_told(tmp_path):
    values = [1.7976931348623157e308, -1.7976931348623157e308, 5e-324, 0.0, -0.0, float("inf"), float("-inf")]
    run = create_run(tmp_path, {"script": "train.py"})
    writer = writer_of(run)
    table = writer.table(["loss"], [writer.site(Site(op="backward", phase="train"))])
    for step, value in enumerate(values * 40):
        writer.row(table, step, [value])
    writer.close("finished")
    with Client(tmp_path) as api:
        base = f"/api/v1/runs/{run.name}"
        key = api.get(f"{base}/signals").json()["signals"][0]["key"]
        (exact,) = api.get(f"{base}/series?keys={key}").json()["series"]
        assert exact["mean"][0] == pytest.approx(1.7976931e308, rel=1e-6)
        assert exact["marks"][:2] == [[5, "inf"], [6, "-inf"]]
        (coarse,) = api.get(f"{base}/series?keys={key}&points=3").json()["series"]
        assert sum(coarse["bad"]) == 80
        assert max(coarse["max"]) == pytest.approx(1.7976931e308, rel=1e-6)
