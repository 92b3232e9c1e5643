"""The answers of the API, asked in this process, on runs that the real writer wrote."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from clew_command import why_json
from web_runs import HOSTILE, LAYERS, Client, begin, make_run, writer_of

from clew.records import signals
from clew.records.facts.run_facts import CustomSignalFact
from clew.records.site import Site
from clew.store.index.index_cache import cache_root
from clew.store.read.run_folders import create_run, rank_folder
from clew.web.endpoints import ENDPOINTS, Parameter
from clew.web.runs.judge_process import PATIENCE


def get(api, path: str, **query: object):
    answer = api.get(f"/api/v1/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def judged(api, run: str):
    """The detail of a run once its verdict is there."""
    until = time.monotonic() + PATIENCE  # the process that judges has the lowest priority
    while time.monotonic() < until:
        detail = get(api, f"runs/{run}")
        if detail["verdict_state"] != "pending":
            return detail
        time.sleep(0.1)
    raise AssertionError("never judged")


def key_of(api, run: str, signal: str) -> str:
    found = get(api, f"runs/{run}/signals", search=signal)["signals"]
    return next(entry["key"] for entry in found if entry["signal"] == signal)


def requests_of(run: str, other: str, key: str, site: str) -> dict[str, str]:
    """One or more real requests for every documented path."""
    base = f"/api/v1/runs/{run}"
    return {
        "/api/v1/runs": "/runs",
        base: "/runs/{id}",
        f"{base}/signals?limit=500": "/runs/{id}/signals",
        f"{base}/series?keys={key},nonsense": "/runs/{id}/series",
        f"{base}/series?keys={key}&points=7&x=wall&from=3&to=80": "/runs/{id}/series",
        f"{base}/series?keys={key}&x=epoch": "/runs/{id}/series",
        f"{base}/layers": "/runs/{id}/layers",
        f"{base}/layers?stat=gradient.headroom&columns=5": "/runs/{id}/layers",
        f"{base}/layers?stat=activation.std": "/runs/{id}/layers",
        f"{base}/histograms": "/runs/{id}/histograms",
        f"{base}/histograms?site={site}&stat=gradient": "/runs/{id}/histograms",
        f"{base}/histograms?site=nonsense": "/runs/{id}/histograms",
        f"{base}/graph": "/runs/{id}/graph",
        f"{base}/profile": "/runs/{id}/profile",
        f"{base}/data": "/runs/{id}/data",
        f"{base}/notes": "/runs/{id}/notes",
        f"/api/v1/compare?runs={run},{other}": "/compare",
    }


def test_every_answer_is_as_the_openapi_document_says(api, recorded):
    _, first, second = recorded
    document = get(api, "openapi.json")
    judged(api, second)
    site = get(api, f"runs/{second}/histograms")["sites"][0]["site"]
    asked = requests_of(second, first, key_of(api, second, "loss"), site)
    for address, path in asked.items():
        answer = api.get(address)
        assert answer.status_code == 200, address
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(answer.json(), {**schema, "components": document["components"]})
    streams = {"/events", "/runs/{id}/events", "/openapi.json"}
    assert set(asked.values()) | streams == set(document["paths"]), "a documented path is not asked for here"


def test_an_error_is_as_the_openapi_document_says(api):
    document = get(api, "openapi.json")
    answer = api.get("/api/v1/runs/nonsense")
    assert answer.status_code == 404
    schema = {"$ref": "#/components/schemas/Error", "components": document["components"]}
    jsonschema.validate(answer.json(), schema)


def test_the_document_names_exactly_the_routes_there_are(api):
    served = {
        (route.path.removeprefix("/api/v1"), method.lower())
        for mount in api.app.inner.routes
        if getattr(mount, "path", "") == "/api/v1"
        for route in mount.routes
        for method in route.methods - {"HEAD"}
    }
    documented = {
        (path, method) for path, ways in get(api, "openapi.json")["paths"].items() for method in ways
    }
    assert documented == served


def test_every_path_of_the_api_has_a_chapter_in_the_docs(api):
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    for path in get(api, "openapi.json")["paths"]:
        assert path.lstrip("/") in text, path


def test_the_verdict_is_exactly_that_of_clew_why(api, recorded):
    root, first, _ = recorded
    detail = judged(api, first)
    assert detail["verdict"] == why_json(root, first)
    assert detail["verdict"]["findings"][0]["check"] == "missing-zero-grad"
    row = get(api, "runs")["runs"][-1]
    assert (row["worst"], row["root_cause"]["check"]) == ("error", "missing-zero-grad")
    assert row["metrics"]["accuracy"] == pytest.approx(0.95)


def test_evidence_links_to_series_that_can_be_asked_for(api, recorded):
    _, first, _ = recorded
    detail = judged(api, first)
    keys = [link["key"] for link in detail["links"][0]["evidence"] if link["key"]]
    assert keys
    for part in get(api, f"runs/{first}/series", keys=",".join(keys))["series"]:
        assert part["total"] > 0


def test_rows_are_newest_first_with_flat_hyperparameters(api, recorded):
    _, first, second = recorded
    judged(api, first)
    judged(api, second)
    rows = get(api, "runs")["runs"]
    assert [row["id"] for row in rows] == [second, first]
    assert rows[0]["hparams"] == {"lr": 0.01, "model.depth": 3, "loader.batch_size": 8}
    assert rows[0]["state"] == "finished"


def test_a_series_that_fits_is_exact_and_says_what_is_not_finite(api, recorded):
    _, _, second = recorded
    (loss,) = get(api, f"runs/{second}/series", keys=key_of(api, second, "loss"))["series"]
    assert loss["exact"]
    assert loss["total"] == len(loss["mean"]) == 200
    assert loss["marks"] == [[50, "nan"]]
    assert loss["mean"][50] is None
    assert loss["bad"][50] == 1
    assert "min" not in loss


@pytest.mark.parametrize("points", [1, 3, 10, 64])
def test_a_spike_and_a_nan_are_seen_at_every_zoom(api, recorded, points):
    _, _, second = recorded
    key = key_of(api, second, "loss")
    (loss,) = get(api, f"runs/{second}/series", keys=key, points=points)["series"]
    assert not loss["exact"]
    assert len(loss["steps"]) <= points
    assert max(loss["max"]) == 500.0
    assert sum(loss["bad"]) == 1
    assert sum(loss["count"]) == 200


def test_a_range_holds_both_its_ends(api, recorded):
    _, first, _ = recorded
    key = key_of(api, first, "loss")
    (loss,) = get(api, f"runs/{first}/series", keys=key, **{"from": 20, "to": 29})["series"]
    assert loss["steps"] == list(range(20, 30))


def test_the_wall_clock_axis_places_steps_and_understands_its_own_range(api, recorded):
    _, first, _ = recorded
    key = key_of(api, first, "loss")
    asked = {"keys": key, "x": "wall", "from": 10.0, "to": 20.25}
    (loss,) = get(api, f"runs/{first}/series", **asked)["series"]
    assert loss["steps"] == list(range(20, 41))
    np.testing.assert_allclose(loss["x"], 0.5 * np.array(loss["steps"]))


def test_the_epoch_axis_comes_from_the_loader(api, recorded):
    _, first, _ = recorded
    assert get(api, f"runs/{first}")["axes"]["epoch"] == {
        "first": 0.0,
        "last": 19.9,
        "steps": 10.0,
        "source": "the loader at train.py:5",
    }
    (loss,) = get(
        api, f"runs/{first}/series", keys=key_of(api, first, "loss"), x="epoch", **{"from": 2, "to": 3}
    )["series"]
    assert loss["steps"] == list(range(20, 31))
    assert loss["x"][0] == 2.0


def test_unit_title_and_chart_of_a_series_are_those_of_the_register(api, recorded):
    _, first, _ = recorded
    rows = {s["signal"]: s for s in get(api, f"runs/{first}/signals", limit=5000)["signals"]}
    assert (rows["step.time"]["unit"], rows["step.time"]["group"]) == ("s", "time")
    assert (rows["loss"]["chart"]["title"], rows["loss"]["chart"]["line"]) == ("Loss", "training")
    assert rows["step.time"]["chart"]["title"] == signals.STEP_CHART.title
    assert rows["metric.accuracy"]["chart"]["title"] == "accuracy"
    assert rows["gradient.norm"]["title"] == signals.GRADIENT.norm.title
    assert rows["gradient.norm"]["glance"]
    assert rows["gradient.max"]["chart"] is None
    assert not rows["gradient.max"]["glance"]


def test_a_signal_of_a_newer_version_opens_and_is_drawn(own):
    root, api = own
    run = create_run(root, {"script": "train.py"})
    writer = writer_of(run)
    table = writer.table(["optimizer.curvature", "activation.rank"], [writer.site(Site(module="fc1"))])
    for step in range(3):
        writer.row(table, step, [step + 0.5, 2.0])
    writer.close("finished", 0)
    rows = {s["signal"]: s for s in get(api, f"runs/{run.name}/signals")["signals"]}
    unknown = rows["optimizer.curvature"]
    assert (unknown["group"], unknown["title"]) == ("optimizer", "optimizer.curvature")
    assert (unknown["unit"], unknown["chart"]) == ("", None)
    assert rows["activation.rank"]["group"] == "activation"
    [series] = get(api, f"runs/{run.name}/series", keys=unknown["key"])["series"]
    assert series["mean"] == [0.5, 1.5, 2.5]


def test_a_users_own_signal_has_the_unit_and_the_meaning_that_it_was_registered_with(own):
    root, api = own
    run = create_run(root, {"script": "train.py"})
    writer = writer_of(run)
    CustomSignalFact("cache.misses", "share", "share of `lookups` that miss").write(writer, 0)
    CustomSignalFact("loss", "B", "not the user's to say").write(writer, 0)
    table = writer.table(["cache.misses", "cache.size", "loss"], [writer.site(Site())])
    for step in range(3):
        writer.row(table, step, [0.5, 2.0, 1.0])
    writer.close("finished", 0)
    rows = {s["signal"]: s for s in get(api, f"runs/{run.name}/signals")["signals"]}
    misses = rows["cache.misses"]
    assert (misses["unit"], misses["about"]) == ("share", "share of lookups that miss")
    assert (rows["cache.size"]["unit"], rows["cache.size"]["about"]) == ("", "")
    assert (rows["loss"]["unit"], rows["loss"]["about"]) == (
        signals.LOSS.unit,
        signals.LOSS.meaning.replace("`", ""),
    )
    [series] = get(api, f"runs/{run.name}/series", keys=misses["key"])["series"]
    assert series["unit"] == "share"


def test_signals_come_in_reading_order_and_are_found_by_words(api, recorded):
    _, first, _ = recorded
    everything = get(api, f"runs/{first}/signals", limit=5000)
    assert [s["signal"] for s in everything["signals"][:2]] == ["loss", "metric.accuracy"]
    assert everything["total"] == len(everything["signals"]) == sum(g["count"] for g in everything["groups"])
    assert not any("log2hist" in s["signal"] for s in everything["signals"])
    found = get(api, f"runs/{first}/signals", search="FC1 norm")["signals"]
    assert [s["label"] for s in found] == ["gradient.norm  encoder.fc1.weight"]
    page = get(api, f"runs/{first}/signals", offset=1, limit=1)
    assert page["total"] == everything["total"]
    assert page["signals"] == everything["signals"][1:2]
    only = get(api, f"runs/{first}/signals", group="gradient")
    assert {s["group"] for s in only["signals"]} == {"gradient"}


def test_keys_are_the_same_in_another_server(api, recorded, own):
    root, first, _ = recorded
    folder, other = own
    shutil.copytree(root / first, folder / first)
    assert key_of(other, first, "loss") == key_of(api, first, "loss")


def test_a_series_without_any_number_is_not_listed(own):
    root, api = own
    run = create_run(root, {"script": "train.py"})
    writer = writer_of(run)
    begin(writer)
    table = writer.table(["activation.saturated", "activation.std"], [writer.site(Site(module="fc1"))])
    writer.row(table, 0, [float("nan"), 1.0])
    writer.close("finished")
    listed = get(api, f"runs/{run.name}/signals")["signals"]
    assert [s["signal"] for s in listed] == ["activation.std"]


def test_layers_stand_in_forward_order(api, recorded):
    _, first, _ = recorded
    answer = get(api, f"runs/{first}/layers", stat="gradient.norm")
    assert [layer["module"] for layer in answer["layers"]] == list(LAYERS)
    assert answer["columns"] == list(range(0, 200, 10))
    assert answer["exact"]
    assert answer["mean"] == [[1.0] * 20, [0.1] * 20, [0.01] * 20]
    assert {"gradient.norm", "gradient.headroom"} <= {s["stat"] for s in answer["stats"]}


def test_a_coarser_map_covers_the_same_points(api, recorded):
    _, first, _ = recorded
    answer = get(api, f"runs/{first}/layers", stat="gradient.norm", columns=4)
    assert answer["columns"] == [0, 50, 100, 150]
    assert not answer["exact"]
    assert answer["min"] == answer["max"] == answer["mean"] == [[1.0] * 4, [0.1] * 4, [0.01] * 4]


def test_headroom_is_counted_in_bits_below_the_largest_number(api, recorded):
    _, first, _ = recorded
    answer = get(api, f"runs/{first}/layers", stat="gradient.headroom")
    assert answer["unit"] == "bits"
    assert answer["mean"][0][0] == pytest.approx(129, abs=0.1)  # 2 ** 128 over 2 ** -1


def test_histograms_are_shares_of_powers_of_two(api, recorded):
    _, first, _ = recorded
    (listed,) = get(api, f"runs/{first}/histograms")["sites"]
    answer = get(api, f"runs/{first}/histograms", site=listed["site"], stat="gradient", columns=5)
    assert len(answer["edges"]) == 31
    assert (answer["edges"][0], answer["edges"][-1]) == (-23, 7)
    shares = np.array(answer["counts"])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-3)
    np.testing.assert_allclose(shares[:, 10:12], [[128 / 255, 127 / 255]] * len(shares), atol=1e-3)


def test_compare_puts_runs_side_by_side(api, recorded):
    _, first, second = recorded
    judged(api, first)
    judged(api, second)
    answer = get(api, "compare", runs=f"{first},{second}")
    assert [row["id"] for row in answer["runs"]] == [first, second]
    assert answer["config"][0] == {"name": "lr", "values": [0.1, 0.01], "same": False}
    accuracy = next(m for m in answer["metrics"] if m["name"] == "accuracy")
    assert [v["last"] for v in accuracy["values"]] == pytest.approx([0.95, 0.95])
    assert accuracy["spread"]["std"] == 0
    loss = next(m for m in answer["metrics"] if m["name"] == "loss")
    assert loss["values"][1]["max"] == 500.0
    assert loss["values"][0]["tail"] == 20
    assert loss["values"][0]["mean_tail"] == pytest.approx(np.mean(2.0 - np.arange(180, 200) / 200))
    zero = next(f for f in answer["findings"] if f["check"] == "missing-zero-grad")
    assert [cell["severity"] for cell in zero["runs"]] == ["error", "error"]
    shared = next(s for s in answer["signals"] if s["signal"] == "loss")
    assert shared["keys"] == [key_of(api, first, "loss"), key_of(api, second, "loss")]


def test_a_growing_run_is_followed(own):
    root, api = own
    run = create_run(root, {"script": "train.py"})
    writer = writer_of(run)
    every, _, _ = begin(writer)
    writer.row(every, 0, [1.0])
    assert writer.flush()
    key = key_of(api, run.name, "loss")
    before = get(api, "runs")["runs"][0]
    assert (before["state"], before["steps"]) == ("running", 1)
    for step in range(1, 500):
        writer.row(every, step, [1.0 / step])
    assert writer.flush()
    time.sleep(0.4)  # a burst of requests looks at the log once
    (loss,) = get(api, f"runs/{run.name}/series", keys=key)["series"]
    assert loss["total"] == 500
    after = get(api, "runs")["runs"][0]
    assert after["steps"] == 500
    assert after["version"] > before["version"]
    writer.close("finished")
    assert get(api, "runs")["runs"][0]["state"] == "finished"


def test_several_ranks_are_told_apart(own):
    root, api = own
    run = create_run(root, {"script": "train.py", "world_size": 2}, run_id="ranks")
    for rank in (0, 1):
        writer = writer_of(run, rank)
        every, _, _ = begin(writer)
        writer.row(every, 0, [float(rank)])
        writer.close("finished")
    detail = get(api, "runs/ranks")
    assert detail["ranks"] == [0, 1]
    assert detail["run"]["ranks"] == 2
    found = get(api, "runs/ranks/signals", search="loss")["signals"]
    assert [s["label"] for s in found] == ["loss [rank 0]", "loss [rank 1]"]
    parts = get(api, "runs/ranks/series", keys=",".join(s["key"] for s in found))["series"]
    assert [part["mean"] for part in parts] == [[0.0], [1.0]]


def broken_runs(root) -> dict[str, str]:
    """Folders that are wrong in different ways, and the state that each should be shown in."""
    good = make_run(root, steps=20)
    cut = root / "cut"
    shutil.copytree(good, cut)
    segment = rank_folder(cut, 0) / "events-000001.seg"
    segment.write_bytes(segment.read_bytes()[:-50])
    flipped = root / "flipped"
    shutil.copytree(good, flipped)
    data = bytearray((rank_folder(flipped, 0) / "events-000001.seg").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (rank_folder(flipped, 0) / "events-000001.seg").write_bytes(data)
    torn = root / "torn"
    torn.mkdir()
    (torn / "run.json").write_text('{"format_ver')
    newer = root / "newer"
    newer.mkdir()
    (newer / "run.json").write_text(json.dumps({"format_version": 99}))
    empty = root / "empty"
    empty.mkdir()
    (empty / "run.json").write_text(json.dumps({"format_version": 1}))
    # This process has written the one that is cut short, and lives: it may still go on.
    states = {"cut": "running", "flipped": "finished", "torn": "unreadable", "newer": "unreadable"}
    return {good.name: "finished", "empty": "empty", **states}


def test_a_broken_run_is_a_row_that_says_so_and_breaks_nothing_else(own):
    root, api = own
    wanted = broken_runs(root)
    rows = {row["id"]: row for row in get(api, "runs")["runs"]}
    assert {name: row["state"] for name, row in rows.items()} == wanted
    assert "newer Clew" in rows["newer"]["error"]
    assert "run.json" in rows["torn"]["error"]
    for name in ("torn", "newer"):
        answer = api.get(f"/api/v1/runs/{name}")
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "unreadable"
    for name in ("cut", "flipped", "empty"):
        detail = judged(api, name)
        assert detail["run"]["id"] == name
        for view in ("signals", "layers", "histograms", "graph", "profile", "data", "notes"):
            get(api, f"runs/{name}/{view}")
    assert judged(api, "empty")["verdict_state"] == "none"
    assert "checksum" in judged(api, "flipped")["damage"][0]


def test_a_deleted_run_is_gone_and_the_others_stay(own):
    root, api = own
    kept, deleted = make_run(root, steps=20), make_run(root, steps=20)
    key = key_of(api, deleted.name, "loss")
    shutil.rmtree(deleted)
    for view in ("", "/signals", f"/series?keys={key}", "/layers", "/notes"):
        answer = api.get(f"/api/v1/runs/{deleted.name}{view}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (410, "gone")
    assert [row["id"] for row in get(api, "runs")["runs"]] == [kept.name]
    assert get(api, f"runs/{kept.name}")["run"]["id"] == kept.name


def test_a_folder_that_is_not_there_has_no_runs(tmp_path):
    with Client(tmp_path / "nowhere") as api:
        assert get(api, "runs")["runs"] == []


def test_files_beside_the_log_are_served_as_they_are(own):
    root, api = own
    run = make_run(root, steps=20)
    for folder in ("traces", "data"):
        (run / folder).mkdir()
    profile = {"version": 1, "modules": [{"module": "fc1", "forward": 0.25, "backward": 0.5}], "odd": [1]}
    (run / "traces" / "profile.json").write_text(json.dumps(profile))
    (run / "traces" / "graph-net.json").write_text(json.dumps({"version": 1, "root": "net", "nodes": []}))
    (run / "data" / "samples.json").write_text('{"version": 1, "samples": [{"loss": NaN}]}')
    (run / "data" / "broken.json").write_text("{")
    assert get(api, f"runs/{run.name}/profile")["profile"] == profile
    graph = get(api, f"runs/{run.name}/graph")
    assert graph["graphs"] == [{"version": 1, "root": "net", "nodes": []}]
    assert graph["time"] == {"fc1": 0.75}
    assert graph["missing"] is None
    data = get(api, f"runs/{run.name}/data")
    assert data["files"] == [{"name": "samples", "content": {"version": 1, "samples": [{"loss": None}]}}]
    assert data["loaders"][0]["batch_size"] == 8


def test_what_was_not_recorded_says_how_to_get_it(api, recorded):
    _, first, _ = recorded
    assert "clew run --graph" in get(api, f"runs/{first}/graph")["missing"]
    assert get(api, f"runs/{first}/profile")["missing"]
    assert get(api, f"runs/{first}/data")["missing"]


def test_notes_are_kept_in_the_run_folder(own):
    root, api = own
    run = make_run(root, steps=20)
    assert get(api, f"runs/{run.name}/notes") == {"markdown": "", "modified": None}
    words = f"# tried\n{HOSTILE} ünïcode"
    answer = api.put(f"/api/v1/runs/{run.name}/notes", json={"markdown": words})
    assert answer.status_code == 200
    assert answer.json()["markdown"] == words
    assert (run / "notes.md").read_text(encoding="utf-8") == words
    assert get(api, f"runs/{run.name}")["has"]["notes"]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"markdown": 3}', "application/json", 400),
        (b"[1]", "application/json", 400),
        (b"{", "application/json", 400),
        (b'{"markdown": "x"}', "text/plain", 400),
        (b'{"markdown": "' + b"x" * 1_100_000 + b'"}', "application/json", 413),
        (b"x" * 3_000_000, "application/json", 413),
    ],
)
def test_notes_that_make_no_sense_are_refused(own, body, kind, status):
    root, api = own
    run = make_run(root, steps=20)
    answer = api.put(f"/api/v1/runs/{run.name}/notes", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status
    assert not (run / "notes.md").exists()


@pytest.mark.parametrize(
    ("endpoint", "parameter"),
    [(e, p) for e in ENDPOINTS for p in e.parameters if p.kind == "integer"],
    ids=lambda one: one.name if isinstance(one, Parameter) else one.path,
)
def test_an_integer_is_accepted_within_its_limits_only(api, recorded, endpoint, parameter):
    path = endpoint.path.format(id=recorded[1])
    known = {"keys": "abc"} if path.endswith("/series") else {}
    for value, status in (
        (parameter.least - 1, 400),
        (parameter.least, 200),
        (parameter.most, 200),
        (parameter.most + 1, 400),
    ):
        answer = api.get(f"/api/v1{path}", params={**known, parameter.name: value})
        assert answer.status_code == status, value


@pytest.mark.parametrize(
    "query",
    ["series", "series?keys=a&points=0", "series?keys=a&points=x", "series?keys=a&from=nan",
     "series?keys=a&x=moon", "layers?columns=-1", "signals?limit=0", "signals?rank=-1",
     "series?keys=" + ",".join("abc" * 60)],
)  # fmt: skip
def test_a_question_that_makes_no_sense_gets_one_clear_line(api, recorded, query):
    answer = api.get(f"/api/v1/runs/{recorded[1]}/{query}")
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "bad-request"
    assert "\n" not in answer.json()["error"]["message"]


def test_no_answer_holds_bare_nan_or_infinity(api, recorded):
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} in JSON")

    _, _, second = recorded
    for view in ("", "/layers", "/series?keys=" + key_of(api, second, "loss"), "/data", "/graph"):
        json.loads(api.get(f"/api/v1/runs/{second}{view}").text, parse_constant=refuse)


def test_while_another_viewer_fills_the_index_one_is_told_to_ask_again(own):
    root, api = own
    run = make_run(root, steps=20)
    key = key_of(api, run.name, "loss")
    (file,) = (cache_root() / "index").glob("*.sqlite")
    with api.answers.library.open(run.name) as opened, closing(sqlite3.connect(file)) as other:
        opened.index._db.execute("PRAGMA busy_timeout=50")
        other.execute("BEGIN EXCLUSIVE")
        answer = api.get(f"/api/v1/runs/{run.name}/series?keys={key}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "busy")
    assert get(api, f"runs/{run.name}/series", keys=key)["series"][0]["total"] == 20
