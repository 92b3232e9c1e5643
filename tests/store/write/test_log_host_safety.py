from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from store_runs import LOSS, new_run, only_series, open_writer, record_losses

import clew
from clew.records.site import Site
from clew.store.read.run_data import RunData
from clew.store.read.run_folders import list_runs
from clew.store.read.run_reader import open_run
from clew.store.read.segment_tail import RankTail
from clew.store.write import log_writer, segment_file

SOURCE = str(Path(clew.__file__).parents[1])
SUPPORT = str(Path(__file__).parents[2] / "support")


def train(log: log_writer.LogWriter, steps: range) -> None:
    table = log.table(["loss"], [log.site(LOSS)])
    for step in steps:
        log.row(table, step, [step])


def run_child(code: str, *args: object) -> str:
    command = [sys.executable, "-W", "error", "-c", code, *map(str, args)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, SUPPORT])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def full_disk(room: int, fail: int = errno.ENOSPC):
    """An os.write with so many bytes of room, which writes what fits before it fails."""
    left = room
    real = os.write

    def write(fd: int, data: bytes) -> int:
        nonlocal left
        if left <= 0:
            raise OSError(fail, os.strerror(fail))
        written = real(fd, bytes(data)[:left])
        left -= written
        return written

    return write


@pytest.mark.parametrize("room", [0, 5, 600, 1000, 1777])
def test_a_full_disk_is_reported_once_and_leaves_only_whole_records(tmp_path, monkeypatch, room):
    run, failures, live = new_run(tmp_path), [], RunData()
    monkeypatch.setattr(segment_file.os, "write", full_disk(room))
    log = open_writer(run, failures, tap=live.feed)
    for start in range(0, 300, 10):
        train(log, range(start, start + 10))
        log.flush()
    assert not log.flush()
    log.close("finished", 0)
    monkeypatch.undo()

    (line,) = failures
    assert "No space left on device" in line
    assert str(run) in line
    assert only_series(live, "loss")[1].tolist() == list(range(300))
    assert live.end is not None
    data = RunData()
    tail = RankTail(run / "rank00000", data.feed)
    tail.refresh()
    assert tail.gaps(finished=True) == []
    assert all(steps.tolist() == list(range(len(steps))) for _, steps, _ in data.series("loss"))


def test_a_disk_that_has_room_again_gets_the_end_and_what_is_missing(tmp_path, monkeypatch):
    run, failures = new_run(tmp_path), []
    log = open_writer(run, failures)
    train(log, range(10))
    assert log.flush()
    with monkeypatch.context() as patch:
        patch.setattr(segment_file.os, "write", full_disk(20))
        train(log, range(10, 20))
        assert not log.flush()
    log.close("finished", 0)
    reader = open_run(run)
    assert reader.state == "finished"
    assert only_series(reader.data, "loss")[1].tolist() == list(range(10))
    assert "No space left" in reader.damage[0]
    assert "No space left" in list_runs(tmp_path)[0].damage[0]
    assert len(failures) == 1


def test_a_real_limit_on_file_size_is_survived(tmp_path):
    run = new_run(tmp_path)
    code = """
import resource, sys
from pathlib import Path
from store_runs import open_writer, LOSS
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
failures = []
log = open_writer(Path(sys.argv[1]), failures)
table = log.table(["loss"], [log.site(LOSS)])
for step in range(1000):
    log.row(table, step, [step])
    step % 10 or log.flush()
log.close("finished", 0)
print(failures)
"""
    assert "File too large" in run_child(code, run)
    steps = only_series(open_run(run).data, "loss")[1]
    assert 0 < len(steps) < 1000
    assert steps.tolist() == list(range(len(steps)))


def test_a_read_only_folder_is_reported_and_not_raised(tmp_path):
    run = new_run(tmp_path)
    code = """
import os, sys
from pathlib import Path
from store_runs import open_writer, LOSS
run = Path(sys.argv[1])
os.chmod(run, 0o555)
if os.geteuid() == 0:
    os.seteuid(65534)  # root may write anywhere
failures = []
log = open_writer(run, failures)
log.row(log.table(["loss"], [log.site(LOSS)]), 0, [1.0])
log.close("finished", 0)
print(failures)
"""
    out = run_child(code, run)
    assert "Permission denied" in out
    assert out.count("can't write") == 1


def test_a_file_in_place_of_the_run_folder_is_reported_and_not_raised(tmp_path):
    (tmp_path / "run").write_text("")
    failures: list[str] = []
    log = open_writer(tmp_path / "run", failures)
    train(log, range(10))
    assert not log.flush()
    log.close("finished")
    assert len(failures) == 1


def test_a_folder_deleted_under_the_writer_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(segment_file, "HEARTBEAT_EVERY", 0.0)
    run, failures = new_run(tmp_path), []
    log = open_writer(run, failures)
    train(log, range(10))
    assert log.flush()
    shutil.rmtree(run)
    train(log, range(10, 20))
    assert not log.flush()
    log.close("finished")
    assert len(failures) == 1
    assert "can't write the log" in failures[0]


def kill_thread(log: log_writer.LogWriter) -> None:
    thread = log._thread
    raised = ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
    )
    assert raised == 1
    thread.join(10)
    assert not thread.is_alive()


def test_a_killed_writer_thread_is_reported_and_replaced(tmp_path):
    run, failures = new_run(tmp_path), []
    log = open_writer(run, failures)
    train(log, range(10))
    assert log.flush()
    kill_thread(log)
    train(log, range(10, 20))
    log.close("finished", 0)
    assert [line for line in failures if "thread died" in line] == failures
    assert len(failures) == 1
    reader = open_run(run)
    assert reader.state == "finished"
    assert only_series(reader.data, "loss")[1].tolist() == list(range(20))


def test_a_thread_killed_in_the_middle_of_a_write_leaves_a_readable_log(tmp_path, monkeypatch):
    run, failures = new_run(tmp_path), []
    log = open_writer(run, failures)
    train(log, range(10))
    assert log.flush()

    def torn(fd: int, data: bytes) -> int:
        real(fd, bytes(data)[:9])
        raise SystemExit

    with monkeypatch.context() as patch:
        real = os.write
        patch.setattr(segment_file.os, "write", torn)
        train(log, range(10, 20))
        log._thread.join(10)
    train(log, range(20, 30))
    log.close("finished", 0)
    reader = open_run(run)
    assert reader.damage == []
    assert only_series(reader.data, "loss")[1].tolist() == [*range(10), *range(20, 30)]


def test_a_thread_that_keeps_dying_is_given_up_and_memory_stays_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(log_writer, "QUEUE_BYTES", 100_000)
    monkeypatch.setattr(log_writer, "WAKE_BYTES", 10_000)
    monkeypatch.setattr(log_writer.LogWriter, "_drain", lambda self: sys.exit())
    failures: list[str] = []
    log = open_writer(new_run(tmp_path), failures)
    train(log, range(20_000))
    assert len(log._queue) < 1000
    log._thread.join(30)
    log.close("finished")
    assert len(failures) == 2
    assert any("dropped" in line for line in failures)


def test_a_disk_that_hangs_drops_rows_and_does_not_block(tmp_path, monkeypatch):
    monkeypatch.setattr(log_writer, "QUEUE_BYTES", 100_000)
    monkeypatch.setattr(log_writer, "CLOSE_SECONDS", 0.05)
    run, failures, hang = new_run(tmp_path), [], threading.Event()
    real = os.write
    log = open_writer(run, failures)
    assert log.flush()

    def hanging(fd: int, data: bytes) -> int:
        hang.wait(30)
        return real(fd, data)

    with monkeypatch.context() as patch:
        patch.setattr(segment_file.os, "write", hanging)
        train(log, range(5000))
        assert not log.flush(timeout=0.05)
        assert len(log._queue) < 1000
        log.close("finished")
        assert {line.split("; ")[-1] for line in failures} == {
            "records are being dropped",
            "the last records may be lost",
        }
        hang.set()
        log._thread.join(10)
    steps = only_series(open_run(run).data, "loss")[1].tolist()
    assert steps == sorted(steps)
    assert 0 < len(steps) < 5000
    assert "records were dropped" in open_run(run).damage[0]


def test_a_failing_tap_and_a_failing_live_check_are_reported_and_switched_off(tmp_path):
    run, failures, calls = new_run(tmp_path), [], []

    def fail(*args: object) -> None:
        calls.append(args)
        raise RuntimeError("no")

    log = open_writer(run, failures, tap=fail, after_flush=fail)
    for start in range(0, 30, 10):
        train(log, range(start, start + 10))
        assert log.flush()
    assert log.flush()  # by now the call after the flush before it is over
    log.close("finished", 0)
    assert len(failures) == len(calls) == 2
    assert only_series(open_run(run).data, "loss")[1].tolist() == list(range(30))


def test_a_listener_that_fails_itself_is_survived(tmp_path):
    (tmp_path / "run").write_text("")

    def fail(line: str) -> None:
        raise RuntimeError(line)

    log = log_writer.LogWriter(tmp_path / "run" / "rank00000", on_failure=fail, flush_interval=0.01)
    train(log, range(10))
    log.close("finished")
    assert not log._thread.is_alive()


def test_a_row_that_does_not_fit_its_table_is_reported_and_costs_no_other(tmp_path):
    run, failures = new_run(tmp_path), []
    log = open_writer(run, failures, flush_interval=0.2)
    table = log.table(["loss"], [log.site(LOSS)])
    for step, values in enumerate(([1.0], [1.0, 2.0], ["x"], None, [5.0])):
        log.row(table, step, values)
    log.row(99, 0, [1.0])
    log.close("finished", 0)
    assert only_series(open_run(run).data, "loss")[1].tolist() == [0, 4]
    assert len(failures) == 2


def test_after_flush_is_called_once_the_records_are_in_the_file(tmp_path):
    run = new_run(tmp_path)
    seen: list[int] = []
    called = threading.Event()

    def look() -> None:
        seen.append(open_run(run).data.last_step)
        if seen[-1] == 9:
            called.set()

    log = open_writer(run, after_flush=look)
    train(log, range(10))
    assert called.wait(30)
    log.close("finished", 0)
    assert seen == sorted(seen)


def test_closing_twice_changes_nothing_and_later_rows_are_ignored(tmp_path):
    run = new_run(tmp_path)
    log = open_writer(run)
    train(log, range(3))
    log.close("failed", 1)
    log.close("finished", 0)
    train(log, range(3, 6))
    assert not log.flush()
    reader = open_run(run)
    assert reader.state == "failed"
    assert only_series(reader.data, "loss")[1].tolist() == [0, 1, 2]


def test_a_forked_child_never_writes_into_its_parents_log(tmp_path):
    run = new_run(tmp_path)
    code = """
import os, sys, warnings
from pathlib import Path
from store_runs import open_writer, LOSS
log = open_writer(Path(sys.argv[1]))
table = log.table(["loss"], [log.site(LOSS)])
log.row(table, 0, [0.0])
log.flush()
log.row(table, 1, [1.0])  # still queued when the child is made
warnings.simplefilter("ignore")  # newer Pythons warn of any fork with threads
child = os.fork()
if not child:
    log.row(table, 100, [1.0])
    flushed = log.flush()
    log.close("failed", 9)
    os._exit(7 if flushed else 0)
status = os.waitpid(child, 0)[1]
log.row(table, 2, [2.0])
log.close("finished", 0)
print(status)
"""
    assert run_child(code, run).strip() == "0"
    reader = open_run(run)
    assert reader.state == "finished"
    assert only_series(reader.data, "loss")[1].tolist() == [0, 1, 2]


def test_the_log_is_touched_while_nothing_happens(tmp_path, monkeypatch):
    monkeypatch.setattr(segment_file, "HEARTBEAT_EVERY", 0.0)
    run = new_run(tmp_path)
    log = open_writer(run)
    log.site(Site())
    assert log.flush()
    segment = run / "rank00000" / "events-000001.seg"
    os.utime(segment, (1, 1))
    assert log.flush()
    assert segment.stat().st_mtime > 1
    log.close("finished")


def test_writing_needs_neither_numpy_nor_sqlite_to_start(tmp_path):
    code = """
import sys
import clew.store.write.log_writer, clew.store.read.run_folders
print(sorted({"numpy", "sqlite3", "torch"} & set(sys.modules)))
"""
    assert run_child(code).strip() == "[]"


def test_the_last_loss_in_the_end_is_of_training(tmp_path):
    run = new_run(tmp_path)
    log = open_writer(run)
    both = [log.site(Site(phase="eval")), log.site(LOSS)]
    log.row(log.table(["lr", "loss"], both), 0, [0.1, 9.0, 0.1, 0.25])
    log.close("finished", 0)
    assert list_runs(tmp_path)[0].last_loss == 0.25
    record_losses(other := new_run(tmp_path), [float("nan")])
    assert next(info for info in list_runs(tmp_path) if info.path == other).last_loss is None


def test_a_thread_that_ends_as_soon_as_it_is_told_to_has_not_died(tmp_path, monkeypatch):
    run, failures = new_run(tmp_path), []
    log = open_writer(run, failures)
    train(log, range(3))
    wake, thread = log._wake.set, log._thread

    def ends_before_anyone_looks() -> None:
        wake()
        thread.join()

    monkeypatch.setattr(log._wake, "set", ends_before_anyone_looks)
    log.close("finished", 0)
    assert failures == []
    assert open_run(run).state == "finished"
