"""Verdicts in a process of their own: kept, bounded in how often, and harmless when they fail."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from web_runs import begin, make_run, writer_of

from clew.store.index.index_cache import cache_root
from clew.store.read.run_folders import create_run
from clew.store.write import segment_file
from clew.web.runs import judge_process
from clew.web.runs.digest_cache import RunDigest, remove_unused
from clew.web.runs.judge_process import PATIENCE, Judges, Worker
from clew.web.runs.run_digest import digest
from clew.web.runs.run_library import Library


@pytest.fixture
def judges_of():
    """Judges over a folder; ended after the test."""
    made: list[Judges] = []

    def make(root) -> tuple[Library, Judges]:
        library = Library(root)
        made.append(Judges(library))
        return library, made[-1]

    yield make
    for each in made:
        each.close()


def settled(judges: Judges, library: Library, name: str) -> RunDigest:
    """The verdict on the log as it is now; the process that judges has the lowest priority, so be patient."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = judges.get(name, library.glance(name))
        if found.stamp == judge_process.judged_stamp(library.glance(name)):
            return found.digest
        time.sleep(0.05)
    raise AssertionError("never judged")


def test_a_verdict_is_kept_on_disk_and_not_computed_again(tmp_path, judges_of, monkeypatch):
    run = make_run(tmp_path)
    library, first = judges_of(tmp_path)
    data = settled(first, library, run.name)
    assert data.findings[0]["check"] == "missing-zero-grad"
    monkeypatch.setattr(Worker, "ask", lambda *_: pytest.fail("judged again"))
    library, second = judges_of(tmp_path)
    assert second.get(run.name, library.glance(run.name)).digest == data


def test_a_damaged_verdict_on_disk_is_computed_again(tmp_path, judges_of):
    run = make_run(tmp_path)
    library, first = judges_of(tmp_path)
    data = settled(first, library, run.name)
    (file,) = (cache_root() / "digest").iterdir()
    file.write_text(file.read_text()[:-20])
    library, second = judges_of(tmp_path)
    assert settled(second, library, run.name) == data


def test_a_growing_run_is_not_judged_again_before_its_time(tmp_path, judges_of, monkeypatch):
    now, asked = 1000.0, []

    def ask(worker: Worker, path: Path) -> RunDigest:
        asked.append(path.name)
        return digest(path)

    monkeypatch.setattr(Worker, "ask", ask)
    monkeypatch.setattr(judge_process, "time", SimpleNamespace(monotonic=lambda: now, time=time.time))
    monkeypatch.setattr(segment_file, "HEARTBEAT_EVERY", 1e9)  # the log changes when the test writes to it
    run = create_run(tmp_path, {"script": "train.py"})
    writer = writer_of(run)
    every, _, _ = begin(writer)
    writer.row(every, 0, [1.0])
    assert writer.flush()
    library, judges = judges_of(tmp_path)
    first = judges.wait(run.name, library.glance(run.name), PATIENCE)
    assert first.version == 1
    for step in range(1, 100):
        writer.row(every, step, [1.0])
    assert writer.flush()
    library.scan()
    now += judge_process.PAUSE / 2
    again = judges.get(run.name, library.glance(run.name))
    assert again.stamp != judge_process.judged_stamp(library.glance(run.name))
    assert not judges._queued
    assert again.digest.steps == 1
    assert len(asked) == 1
    now += judge_process.PAUSE
    assert settled(judges, library, run.name).steps == 100
    assert len(asked) == 2
    writer.abandon()


def test_a_judge_that_dies_is_one_bad_verdict(tmp_path, judges_of, monkeypatch):
    bad, good = make_run(tmp_path), make_run(tmp_path)
    library, judges = judges_of(tmp_path)
    usual = Worker._running

    def dying(worker: Worker):
        process = usual(worker)
        process.kill()
        return process

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "_running", dying)
        failed = judges.wait(bad.name, library.glance(bad.name), PATIENCE)
    assert failed.digest.state == "failed"
    assert "clew why" in failed.digest.error or "failed" in failed.digest.error
    assert settled(judges, library, good.name).state == "ready"


def test_a_run_that_is_deleted_while_it_waits_breaks_nothing(tmp_path, judges_of):
    library, judges = judges_of(tmp_path)
    run = make_run(tmp_path)
    glance = library.glance(run.name)
    import shutil

    shutil.rmtree(run)
    assert judges.wait(run.name, glance, PATIENCE).digest.state == "failed"


def test_verdicts_that_nobody_asks_for_are_removed(tmp_path):
    for name, age in (("old.json", 40), ("new.json", 1)):
        (tmp_path / name).write_text("{}")
        then = time.time() - age * 86400
        os.utime(tmp_path / name, (then, then))
    remove_unused(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["new.json"]


def test_the_process_ends_when_there_is_nothing_left_to_judge(tmp_path, judges_of, monkeypatch):
    monkeypatch.setattr(judge_process, "IDLE_SECONDS", 0.2)
    run = make_run(tmp_path)
    library, judges = judges_of(tmp_path)
    settled(judges, library, run.name)
    end = time.monotonic() + PATIENCE
    while judges._worker._process is not None:
        assert time.monotonic() < end
        time.sleep(0.05)
    second = make_run(tmp_path, lr=0.5)
    assert settled(judges, library, second.name).hparams["lr"] == 0.5


def test_the_run_that_somebody_looks_at_is_judged_next(tmp_path, judges_of, monkeypatch):
    runs = [make_run(tmp_path, steps=20) for _ in range(4)]
    library, judges = judges_of(tmp_path)
    asked: list[str] = []
    gate = threading.Event()

    def slowly(worker: Worker, path) -> RunDigest:
        gate.wait(60)
        asked.append(path.name)
        return RunDigest("none", steps=0)

    monkeypatch.setattr(Worker, "ask", slowly)
    for run in runs:
        judges.get(run.name, library.glance(run.name))
    looked_at = max(run.name for run in runs)
    judges.get(looked_at, library.glance(looked_at), urgent=True)
    gate.set()
    for run in runs:
        settled(judges, library, run.name)
    assert looked_at in asked[:2]  # one was at work already
    assert sorted(asked) == sorted(run.name for run in runs)
