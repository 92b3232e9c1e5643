from __future__ import annotations

import json
import math
import threading
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from store_runs import LOSS, new_run, only_series, open_writer, record_losses

from clew.records.site import Site
from clew.store.read.run_data import Event, Fact, RunData
from clew.store.read.run_reader import open_run
from clew.store.read.segment_tail import segment_files
from clew.store.write.frames import encode_json


def test_what_was_written_is_read_back_exactly(tmp_path):
    run = new_run(tmp_path)
    writer = open_writer(run)
    layers = [writer.site(Site(module=f"layers.{i}", param="weight")) for i in range(3)]
    stats = writer.table(["weight.mean", "weight.std"], layers, "f4")
    histogram = writer.table(["weight.log2hist.00"], layers, "u1")
    loss = writer.table(["loss"], [writer.site(LOSS)])
    for step in range(100):
        writer.row(loss, step, [1 / (step + 1)])
        if step % 10 == 0:
            writer.row(stats, step, np.arange(6, dtype="f4") + step)
            writer.row(histogram, step, [step, 255, 300])
    writer.fact("loader", 3, {"batch_size": 32})
    writer.event("mode", 5, {"training": True})
    writer.close("finished", 0)

    data = open_run(run).data
    site, steps, values = only_series(data, "loss")
    assert site == LOSS
    assert steps.tolist() == list(range(100))
    assert values.tolist() == [1 / (step + 1) for step in range(100)]
    found = {site.module: values.tolist() for site, _, values in data.series("weight.std")}
    assert found == {f"layers.{i}": [2.0 * i + 1 + step for step in range(0, 100, 10)] for i in range(3)}
    hist = {site.module: values.tolist() for site, _, values in data.series("weight.log2hist.00")}
    assert hist["layers.0"] == list(range(0, 100, 10))
    assert hist["layers.2"] == [255.0] * 10
    assert data.facts == [Fact("loader", 3, {"batch_size": 32})]
    assert [(e.kind, e.step, e.data) for e in data.events] == [("mode", 5, {"training": True})]
    assert data.last_step == 99
    assert data.end is not None
    assert (data.end["state"], data.end["exit_code"]) == ("finished", 0)


@pytest.mark.parametrize("interval", [0.001, 60.0])
def test_rows_that_come_one_by_one_and_as_a_matrix_stay_in_their_order(tmp_path, interval):
    run = new_run(tmp_path)
    writer = open_writer(run, flush_interval=interval)
    table = writer.table(["loss", "accuracy"], [writer.site(LOSS)])
    writer.row(table, 0, (0.0, 0.5))
    writer.rows(table, np.array([1, 2]), np.array([[1.0, 0.5], [2.0, 0.5]]))
    writer.row(table, 2, (2.5, 0.5))  # a second one of the same step comes after the first
    writer.row(table, 3, (3.0, 0.5))
    writer.rows(table, np.array([4, 5, 6]), np.array([[4, 0], [5, 0], [6, 1]], "f4"))
    writer.close("finished", 0)
    data = open_run(run).data
    _, steps, losses = only_series(data, "loss")
    assert steps.tolist() == [0, 1, 2, 2, 3, 4, 5, 6]
    assert losses.tolist() == [0, 1, 2, 2.5, 3, 4, 5, 6]
    assert only_series(data, "accuracy")[2].tolist() == [0.5] * 5 + [0, 0, 1]
    assert data.end is not None
    assert (data.end["step"], data.end["loss"]) == (6, 6.0)


def test_a_row_that_does_not_fit_takes_no_matrix_of_its_table_along(tmp_path):
    run, told = new_run(tmp_path), []
    writer = open_writer(run, told, flush_interval=60.0)
    table = writer.table(["loss"], [writer.site(LOSS)])
    writer.rows(table, np.arange(3), np.array([[0.0], [1.0], [2.0]]))
    writer.row(table, 3, ("three",))
    writer.rows(table, np.array([4]), np.array([[4.0]]))
    writer.close("finished", 0)
    assert only_series(open_run(run).data, "loss")[1].tolist() == [0, 1, 2, 4]
    assert len(told) == 1
    assert "a row could not be written" in told[0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 5e-324, -0.0, 1.7976931348623157e308])
def test_odd_floats_survive_in_rows(tmp_path, value):
    run = new_run(tmp_path)
    record_losses(run, [value])
    read = only_series(open_run(run).data, "loss")[2]
    assert read.tobytes() == np.array([value]).tobytes()


def test_a_live_view_sees_the_same_as_a_reader(tmp_path):
    run = new_run(tmp_path)
    live = RunData()
    writer = open_writer(run, tap=live.feed)
    table = writer.table(["loss", "lr"], [writer.site(LOSS), writer.site(Site())])
    for step in range(500):
        writer.row(table, step, [step, math.nan, 2 * step, 0.1])
        writer.fact("pattern", step, {"id": step})
    writer.close("failed", 1)

    read = open_run(run).data
    assert live.facts == read.facts
    assert live.end == read.end
    assert live.sites == read.sites
    assert live.signal_names() == read.signal_names() == ["loss", "lr"]
    for name in ("loss", "lr"):
        for mine, theirs in zip(live.series(name), read.series(name), strict=True):
            assert mine[0] == theirs[0]
            np.testing.assert_array_equal(mine[1], theirs[1])
            np.testing.assert_array_equal(mine[2], theirs[2])


def test_sites_and_tables_are_interned(tmp_path):
    writer = open_writer(new_run(tmp_path))
    assert writer.site(Site(module="a")) == writer.site(Site(module="a")) != writer.site(Site(module="b"))
    one = writer.table(["x"], [0])
    assert one == writer.table(("x",), (0,)) != writer.table(["x"], [0], "f4")
    writer.close("finished")


def test_interning_from_many_threads_gives_each_site_one_number(tmp_path):
    run = new_run(tmp_path)
    writer = open_writer(run)
    numbers: list[list[int]] = []

    def intern() -> None:
        numbers.append([writer.site(Site(module=str(i))) for i in range(200)])

    threads = [threading.Thread(target=intern) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close("finished")
    assert len({tuple(found) for found in numbers}) == 1
    assert {i: site.module for i, site in open_run(run).data.sites.items()} == {
        number: str(i) for i, number in enumerate(numbers[0])
    }


def test_segments_roll_and_each_can_be_read_on_its_own(tmp_path):
    run = new_run(tmp_path)
    writer = open_writer(run, segment_bytes=2000)
    table = writer.table(["loss"], [writer.site(LOSS)])
    for step in range(400):
        writer.row(table, step, [step])
        if step % 20 == 19:
            assert writer.flush()
    writer.close("finished")
    segments = segment_files(run / "rank00000")
    assert len(segments) > 2
    steps = only_series(open_run(run).data, "loss")[1]
    assert steps.tolist() == list(range(400))

    segments[0].write_bytes(b"")
    rest = only_series(open_run(run).data, "loss")[1]
    assert rest.tolist() == list(range(400 - len(rest), 400))


def test_the_same_series_in_two_tables_is_one_series(tmp_path):
    run = new_run(tmp_path)
    writer = open_writer(run)
    site, other = writer.site(LOSS), writer.site(Site(module="other"))
    alone, both = writer.table(["loss"], [site]), writer.table(["loss"], [other, site])
    writer.row(alone, 0, [10.0])
    writer.row(both, 1, [-1.0, 11.0])
    writer.row(alone, 2, [12.0])
    writer.close("finished")
    found = {
        site: (steps.tolist(), values.tolist()) for site, steps, values in open_run(run).data.series("loss")
    }
    assert found[LOSS] == ([0, 1, 2], [10.0, 11.0, 12.0])


def test_several_rows_of_one_step_keep_their_order(tmp_path):
    run = new_run(tmp_path)
    writer = open_writer(run)
    table = writer.table(["loss"], [writer.site(LOSS)])
    for value in (3.0, 1.0, 2.0):
        writer.row(table, 0, [value])
    writer.close("finished")
    assert only_series(open_run(run).data, "loss")[2].tolist() == [3.0, 1.0, 2.0]


class Colour(str, Enum):
    RED = "red"


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError


def test_facts_of_any_content_are_strict_json():
    cycle: dict[str, object] = {}
    cycle["self"] = cycle
    record = {
        "t": "fact",
        "nan": math.nan,
        "inf": [-math.inf],
        "path": Path("a/b"),
        "set": {2, 1},
        "numpy": [np.float32(0.5), np.int64(3), np.bool_(True), np.arange(2), np.float64("nan")],
        "enum": Colour.RED,
        "huge": 10**5000,
        "object": Unprintable(),
        "surrogate": "\udc80",
        1: "key",
        "cycle": cycle,
    }
    read = json.loads(encode_json(record)[1:], parse_constant=pytest.fail)
    assert read["nan"] == "nan"
    assert read["inf"] == ["-inf"]
    assert read["path"] == "a/b"
    assert read["set"] == [1, 2]
    assert read["numpy"] == [0.5, 3, True, [0, 1], "nan"]
    assert read["enum"] == "red"
    assert int(read["huge"], 16) == 10**5000
    assert read["object"] == "<Unprintable>"
    assert read["surrogate"] == "\udc80"
    assert read["1"] == "key"


def test_a_record_of_a_newer_clew_is_skipped(tmp_path):
    data = RunData()
    data.feed(encode_json({"t": "hologram", "id": 1}))
    data.feed(b"Znew kind of payload")
    data.feed(encode_json({"t": "event", "kind": "mode", "step": 1, "wall": 2.0, "data": {}}))
    assert data.events == [Event("mode", 1, 2.0, {})]
    assert data.damaged == 0
