from __future__ import annotations

import json
import os
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_runs import LOSS, block, declarations, new_run, only_series, open_writer, write_segment

from clew.store.read.run_data import RunData
from clew.store.read.run_errors import EmptyRun, NewerFormat, NotARun, RunError
from clew.store.read.run_folders import list_runs
from clew.store.read.run_metadata import RunMeta
from clew.store.read.run_reader import RunReader, open_run
from clew.store.write.frames import HEADER, MAGIC, encode_json, frame


def small_log() -> list[bytes]:
    steps = np.arange(5)
    fact = encode_json({"t": "fact", "kind": "loader", "step": 0, "data": {"batch_size": 3}})
    end = encode_json({"t": "end", "state": "finished", "exit_code": 0})
    rows = [block(steps + 5 * i, (steps + 5 * i)[:, None] * 0.1) for i in range(3)]
    begin = encode_json({"t": "begin", "pid": 2**22 + 1, "machine": "elsewhere"})
    return [begin, *declarations(), *rows, fact, end]


PAYLOADS = small_log()
BYTES = MAGIC + b"".join(map(frame, PAYLOADS))
BOUNDS = np.cumsum([len(MAGIC), *(HEADER.size + len(payload) for payload in PAYLOADS)])


def content(data: RunData) -> object:
    series = [(site, steps.tobytes(), values.tobytes()) for site, steps, values in data.series("loss")]
    return series, data.facts, data.events, data.end, data.last_step, data.damaged


def expected(frames: int) -> object:
    data = RunData()
    for payload in PAYLOADS[:frames]:
        data.feed(payload)
    return content(data)


def read_bytes(content: bytes, tmp: str) -> RunReader:
    run = Path(tmp, "run")
    (run / "rank00000").mkdir(parents=True, exist_ok=True)
    segment = run / "rank00000" / "events-000001.seg"
    segment.write_bytes(content)
    os.utime(segment, (1, 1))  # silent for long: nobody writes it any more
    return RunReader(run)


def without_meta(damage: list[str]) -> list[str]:
    return [line for line in damage if "run.json" not in line]


def test_a_log_cut_at_any_byte_is_read_up_to_there_and_says_so(tmp_path):
    for cut in range(len(BYTES)):
        reader = read_bytes(BYTES[:cut], str(tmp_path))
        whole = int(np.searchsorted(BOUNDS, cut, "right")) - 1
        assert content(reader.data) == expected(max(whole, 0))
        damage = without_meta(reader.damage)
        if cut in BOUNDS or cut == 0:
            assert damage == []
        else:
            start = int(BOUNDS[whole]) if whole >= 0 else 0
            (line,) = damage
            assert "cut short" in line
            assert f"from byte {start} " in line


@settings(deadline=None)
@given(st.integers(0, len(BYTES) - 1), st.integers(1, 255))
def test_a_flipped_byte_costs_nothing_before_it_and_is_reported(position, flip):
    damaged = bytearray(BYTES)
    damaged[position] ^= flip
    with tempfile.TemporaryDirectory() as tmp:
        reader = read_bytes(bytes(damaged), tmp)
    before = max(int(np.searchsorted(BOUNDS, position, "right")) - 1, 0)
    assert content(reader.data) == expected(before)
    (line,) = without_meta(reader.damage)
    start = int(BOUNDS[before]) if position >= len(MAGIC) else 0
    assert line.startswith("rank00000/events-000001.seg: ")
    assert f"{len(BYTES) - start} bytes from byte {start}" in line
    # The end record stands for itself: damage before it does not unmake the end.
    assert (reader.state == "finished") == (position < BOUNDS[-2])


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_garbage_at_the_end_is_reported_and_costs_nothing(garbage):
    with tempfile.TemporaryDirectory() as tmp:
        reader = read_bytes(BYTES + b"\x00" + garbage, tmp)
    assert content(reader.data) == expected(len(PAYLOADS))
    assert len(without_meta(reader.damage)) == 1


@pytest.mark.parametrize("zeros", [1, 8, 4096])
def test_a_file_that_ends_in_zeros_after_a_power_cut_is_damaged_there(tmp_path, zeros):
    reader = read_bytes(BYTES + bytes(zeros), str(tmp_path))
    assert content(reader.data) == expected(len(PAYLOADS))
    assert f"{zeros} bytes from byte {len(BYTES)}" in without_meta(reader.damage)[0]


def test_an_absurd_length_is_damage_and_not_a_wait_for_more(tmp_path):
    reader = read_bytes(BYTES + struct.pack("<II", 2**31, 0) + b"x" * 50, str(tmp_path))
    assert "impossible record length" in without_meta(reader.damage)[0]


def test_a_segment_after_a_damaged_one_is_still_read(tmp_path):
    run = new_run(tmp_path)
    first = write_segment(run, small_log()[:4])
    first.write_bytes(first.read_bytes()[:-3])
    write_segment(run, [*declarations(), block(np.array([50]), np.array([[0.5]]))], number=2)
    reader = open_run(run)
    assert only_series(reader.data, "loss")[1].tolist() == [50]
    assert "events-000001.seg" in reader.damage[0]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("f8"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
keys = ("id", "site", "dtype", "signals", "sites", "kind", "step", "wall", "data", "state")
kinds = st.sampled_from(["site", "table", "fact", "event", "end", "begin", "mark", "new"]) | json_values
records = st.builds(
    lambda kind, rest: {"t": kind, **rest}, kinds, st.dictionaries(st.sampled_from(keys), json_values)
)
hostile = (
    records.map(lambda record: b"J" + json.dumps(record).encode())
    | st.binary(max_size=40)
    | st.binary(max_size=40).map(lambda tail: b"B" + tail)
    | st.binary(max_size=40).map(lambda tail: b"J" + tail)
)


@settings(deadline=None)
@given(st.lists(hostile, max_size=8))
def test_hostile_payloads_never_raise_and_never_hide_good_ones(payloads):
    data = RunData()
    for payload in payloads:
        data.feed(payload)
    for name in data.signal_names():
        list(data.series(name))
    before = len(data.facts)
    data.feed(encode_json({"t": "fact", "kind": "loader", "step": 0, "data": {}}))
    assert len(data.facts) == before + 1
    assert data.damaged <= len(payloads)


@pytest.mark.parametrize(
    "payload",
    [
        b"J[]",
        b"J{}",
        b"J" + b"[" * 100_000,
        b'J{"t":"site","id":0,"site":{"module":["a"]}}',
        b'J{"t":"site","id":0,"site":{"line":"7"}}',
        b'J{"t":"fact","kind":"x","step":1e9,"data":{}}',
        b'J{"t":"table","id":0,"dtype":"f8","signals":["a"],"sites":[99]}',
        b'J{"t":"table","id":0,"dtype":"O","signals":["a"],"sites":[]}',
        b"B\x00\x00",
        b"B" + struct.pack("<II", 7, 1) + bytes(16),
    ],
)
def test_a_payload_that_makes_no_sense_is_counted(payload):
    data = RunData()
    data.feed(payload)
    assert data.damaged == 1


def test_a_table_too_wide_to_exist_does_not_take_the_memory():
    data = RunData()
    data.feed(encode_json({"t": "site", "id": 0, "site": {}}))
    wide = {"t": "table", "id": 0, "dtype": "f8", "signals": ["a"] * 20_000, "sites": [0] * 20_000}
    data.feed(encode_json(wide))
    assert data.damaged == 1
    assert data.signal_names() == []


def test_damage_that_passed_its_checksum_is_reported(tmp_path):
    run = new_run(tmp_path)
    write_segment(run, [*small_log(), b"Jnonsense"])
    assert "1 invalid records were skipped" in open_run(run).damage[0]


def test_a_corrupt_run_json_is_reported_and_the_log_still_read(tmp_path):
    run = new_run(tmp_path)
    write_segment(run, small_log())
    (run / "run.json").write_text('{"format_version": 1,')
    reader = open_run(run)
    assert reader.meta == RunMeta()
    assert "run.json" in reader.damage[0]
    assert content(reader.data) == expected(len(PAYLOADS))


def test_a_pipe_in_place_of_a_segment_does_not_block(tmp_path):
    run = new_run(tmp_path)
    (run / "rank00000").mkdir()
    os.mkfifo(run / "rank00000" / "events-000001.seg")
    assert "not a file" in RunReader(run).damage[0] + list_runs(tmp_path)[0].damage[0]


@pytest.mark.parametrize(("name", "wanted"), [("nowhere", "no such"), (".", "not a run folder")])
def test_what_is_not_a_run_gets_one_clear_line(tmp_path, name, wanted):
    with pytest.raises(NotARun, match=wanted) as caught:
        open_run(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_newer_format_says_to_upgrade(tmp_path):
    run = new_run(tmp_path)
    meta = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**meta, "format_version": 99}))
    write_segment(run, small_log()[:-1])
    with pytest.raises(NewerFormat, match="pip install -U"):
        open_run(run)
    assert "newer" in list_runs(tmp_path)[0].damage[0]


def test_a_run_in_which_nothing_was_recorded_is_empty(tmp_path):
    run = new_run(tmp_path)
    meta = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**meta, "pid": 2**22 + 1}))
    assert RunReader(run).state == "empty"
    with pytest.raises(EmptyRun):
        open_run(run)
    assert issubclass(EmptyRun, RunError)


def test_a_recycled_pid_is_not_taken_for_the_run(tmp_path):
    run = new_run(tmp_path)
    writer = open_writer(run)
    writer.row(writer.table(["loss"], [writer.site(LOSS)]), 0, [1.0])
    assert writer.flush()
    assert RunReader(run).state == "running"
    segment = run / "rank00000" / "events-000001.seg"
    start = json.loads((run / "run.json").read_text())["process_start"]
    log = segment.read_bytes().split(b"J{")
    writer.close("finished")
    forged = [b"J{" + part[: part.rindex(b"}") + 1] for part in log[1:]]
    forged[0] = forged[0].replace(f'"process_start":{start}'.encode(), b'"process_start":1')
    write_segment(run, [*forged[:3], *small_log()[3:4]])
    assert RunReader(run).state == "killed"


@pytest.mark.parametrize(("age", "state"), [(5, "running"), (3600, "killed")])
def test_on_another_host_the_heartbeat_decides(tmp_path, age, state):
    run = new_run(tmp_path)
    segment = write_segment(run, small_log()[:-1])
    now = segment.stat().st_mtime
    os.utime(segment, (now - age, now - age))
    assert open_run(run).state == state
