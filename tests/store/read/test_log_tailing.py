from __future__ import annotations

import threading

import numpy as np
from store_runs import (
    LOSS,
    append_payloads,
    block,
    declarations,
    new_run,
    only_series,
    open_writer,
    write_segment,
)

from clew.store.read.run_data import RunData
from clew.store.read.run_reader import RunReader, open_run
from clew.store.write.frames import encode_json


def test_a_reader_follows_a_growing_log_and_always_sees_a_prefix(tmp_path):
    run = new_run(tmp_path)
    writer = open_writer(run, flush_interval=0.001, segment_bytes=20_000)
    table = writer.table(["loss"], [writer.site(LOSS)])
    writer.row(table, 0, [0.0])
    assert writer.flush()
    reader = RunReader(run)
    assert reader.state == "running"

    def train() -> None:
        for step in range(1, 20_000):
            writer.row(table, step, [step])
        writer.close("finished", 0)

    thread = threading.Thread(target=train)
    thread.start()
    seen = []
    while reader.state == "running":
        reader.refresh()
        _, steps, values = only_series(reader.data, "loss")
        np.testing.assert_array_equal(steps, np.arange(len(steps)))
        np.testing.assert_array_equal(values, steps)
        seen.append(len(steps))
    thread.join()
    assert reader.state == "finished"
    assert seen == sorted(seen)
    assert seen[-1] == 20_000
    assert reader.damage == []


def test_a_refresh_reads_only_what_is_new(tmp_path, monkeypatch):
    run = new_run(tmp_path)
    steps = np.arange(10)
    segment = write_segment(run, [*declarations(), block(steps, steps[:, None] * 1.0)])
    reader = RunReader(run)
    fed: list[bytes] = []
    monkeypatch.setattr(RunData, "feed", lambda self, payload: fed.append(payload))
    reader = RunReader(run)
    before = len(fed)
    reader.refresh()
    assert len(fed) == before
    append_payloads(segment, [encode_json({"t": "fact", "kind": "x", "step": 0, "data": {}})])
    reader.refresh()
    assert len(fed) == before + 1


def test_a_frame_seen_half_written_is_read_when_it_is_whole(tmp_path):
    run = new_run(tmp_path)
    steps = np.arange(10)
    segment = write_segment(run, [*declarations(), block(steps, steps[:, None] * 1.0)])
    whole = segment.read_bytes()
    for cut in range(len(whole) - 1, len(whole) - 60, -7):
        segment.write_bytes(whole[:cut])
        reader = RunReader(run)
        assert reader.state == "running"
        assert reader.damage == []
        segment.write_bytes(whole)
        reader.refresh()
        assert only_series(reader.data, "loss")[1].tolist() == list(range(10))


def test_every_rank_is_read(tmp_path):
    run = new_run(tmp_path)
    for rank, state in ((0, "finished"), (1, "failed")):
        write_segment(run, [*declarations(), encode_json({"t": "end", "state": state})], rank=rank)
    reader = open_run(run)
    assert sorted(reader.ranks) == [0, 1]
    assert reader.data is reader.ranks[0]
    assert reader.state == "failed"


def test_a_restarted_job_goes_on_in_the_same_folder(tmp_path):
    run = new_run(tmp_path)
    first = open_writer(run)
    first.row(first.table(["loss"], [first.site(LOSS)]), 0, [1.0])
    first.close("failed", 1)
    second = open_writer(run)
    second.row(second.table(["lr", "loss"], [second.site(LOSS)]), 1, [0.1, 2.0])
    assert second.flush()
    reader = open_run(run)
    assert reader.state == "running"
    assert only_series(reader.data, "loss")[2].tolist() == [1.0, 2.0]
    second.close("finished", 0)
    reader.refresh()
    assert reader.state == "finished"
