from __future__ import annotations

import json
import math
import os
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from store_runs import (
    LOSS,
    append_payloads,
    block,
    declarations,
    new_run,
    open_writer,
    record_losses,
    write_segment,
)

from clew.records.version import FORMAT_VERSION
from clew.store.read import run_folders, run_info
from clew.store.read.run_errors import CannotCreate, NotARun, RunBusy
from clew.store.read.run_folders import create_run, default_root, find_run, list_runs, remove_run
from clew.store.read.run_reader import open_run
from clew.store.write.frames import encode_json

NOBODY = encode_json({"t": "begin", "pid": 2**22 + 1, "machine": "elsewhere"})


def test_a_run_json_says_who_what_and_when(tmp_path):
    run = create_run(tmp_path, {"script": "my train!.py", "hparams": {"lr": math.nan}, "cwd": Path("x")})
    meta = open_run_meta(run)
    assert meta["format_version"] == FORMAT_VERSION
    assert meta["id"] == run.name
    assert meta["pid"] == os.getpid()
    assert meta["hparams"] == {"lr": "nan"}
    assert meta["cwd"] == "x"
    assert "-my-train-" in run.name


def open_run_meta(run: Path) -> dict[str, object]:
    return json.loads((run / "run.json").read_text())


def test_runs_started_together_get_folders_of_their_own(tmp_path):
    made: list[Path] = []
    threads = [threading.Thread(target=lambda: made.append(new_run(tmp_path))) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 30


def test_a_taken_name_is_not_used_again(tmp_path, monkeypatch):
    numbers = iter([b"\xaa\xaa", b"\xaa\xaa", b"\xbb\xbb"])
    monkeypatch.setattr(run_folders.os, "urandom", lambda n: next(numbers))
    monkeypatch.setattr(run_folders.time, "strftime", lambda text: "20261115-215301")
    assert new_run(tmp_path).name == "20261115-215301-train-aaaa"
    assert new_run(tmp_path).name == "20261115-215301-train-bbbb"


def test_ranks_of_one_job_share_a_folder_and_rank_0_describes_it(tmp_path):
    second = create_run(tmp_path, {"script": "b.py"}, run_id="job.1", rank=1)
    assert not (second / "run.json").exists()
    first = create_run(tmp_path, {"script": "a.py"}, run_id="job.1", rank=0)
    assert first == second
    assert open_run_meta(first)["script"] == "a.py"


@pytest.mark.parametrize("name", ["../up", "", "a/b", ".hidden", "a b", "x" * 200])
def test_an_unsafe_run_id_is_refused(tmp_path, name):
    with pytest.raises(CannotCreate):
        create_run(tmp_path, {}, run_id=name)
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_no_run_can_be_made_gets_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotCreate, match="--dir"):
        new_run(tmp_path / "file" / "runs")


def test_runs_stay_out_of_the_users_git_status(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    new_run(tmp_path / ".clew" / "runs")
    status = subprocess.run(
        ["git", "status", "--short"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert status.stdout == ""


def test_outside_a_repository_no_gitignore_is_written(tmp_path):
    new_run(tmp_path / ".clew" / "runs")
    assert [path.name for path in (tmp_path / ".clew").iterdir()] == ["runs"]


def test_the_default_root_follows_the_environment(monkeypatch):
    monkeypatch.delenv("CLEW_DIR", raising=False)
    assert default_root() == Path(".clew/runs")
    monkeypatch.setenv("CLEW_DIR", "/somewhere")
    assert default_root() == Path("/somewhere")


def dated_run(root: Path, name: str, started: float) -> Path:
    run = create_run(root, {"script": f"{name}.py"}, run_id=name)
    (run / "run.json").write_text(json.dumps({**open_run_meta(run), "started": started}))
    return run


def test_runs_are_listed_newest_first_with_what_became_of_them(tmp_path):
    for name, started, end in (("b", 100.0, "finished"), ("a", 200.0, "failed"), ("c", 150.0, None)):
        run = dated_run(tmp_path, name, started)
        record_losses(run, [3.0, 2.0, 1.5], end=end)
    listed = list_runs(tmp_path)
    assert [(info.id, info.state) for info in listed] == [
        ("a", "failed"),
        ("c", "running"),
        ("b", "finished"),
    ]
    assert {(info.steps, info.last_loss) for info in listed} == {(3, 1.5)}
    assert [info.script for info in listed] == ["a.py", "c.py", "b.py"]
    assert all(info.duration and info.duration > 0 for info in listed)
    assert all(info.damage == () for info in listed)


def test_junk_among_the_runs_is_tolerated(tmp_path):
    good = dated_run(tmp_path, "good", 5.0)
    record_losses(good, [1.0])
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    hostile = ["", "[]", "{", "null", '{"format_version": "new"}', '{"a":' * 5000, '{"x": 1e999}']
    for i, text in enumerate(hostile):
        (tmp_path / f"junk{i}").mkdir()
        (tmp_path / f"junk{i}" / "run.json").write_text(text)
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary" / "run.json").write_bytes(b"\xff\xfe\x00")
    odd = {"format_version": 1, "started": 1e999, "pid": "x", "machine": [], "script": {"a": 1}}
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "run.json").write_text(json.dumps(odd))
    broken = dated_run(tmp_path, "broken", 1.0)
    (broken / "run.json").write_text("{")
    write_segment(broken, [NOBODY, *declarations()])
    assert [info.id for info in list_runs(tmp_path)] == ["good", "odd", "broken"]
    assert find_run(tmp_path) == good
    assert list_runs(tmp_path / "nowhere") == []


@pytest.mark.parametrize("end", [True, False])
def test_a_large_log_is_listed_without_reading_it_all(tmp_path, monkeypatch, end):
    monkeypatch.setattr(run_info, "SMALL", 1000)
    monkeypatch.setattr(run_info, "_read_whole", pytest.fail)
    run = new_run(tmp_path)
    steps = np.arange(500)
    rows = [block(steps + i, steps[:, None] * 1.0) for i in range(0, 3000, 500)]
    mark = encode_json({"t": "mark", "step": 1999, "loss": 0.75, "wall": 1.0})
    segment = write_segment(run, [NOBODY, *declarations(), *rows[:4], mark, *rows[4:]])
    if end:
        last = {"t": "end", "state": "finished", "exit_code": 0, "step": 2999, "loss": 0.5, "wall": 1e9}
        append_payloads(segment, [encode_json(last)])
    else:
        with open(segment, "ab") as file:
            file.write(b"\x40\x00\x00\x00half a frame")
    os.utime(segment, (1, 1))
    (info,) = list_runs(tmp_path)
    assert info.steps == 3000
    assert (info.state, info.last_loss) == (("finished", 0.5) if end else ("killed", 0.75))


def test_bytes_that_only_look_like_a_mark_are_not_believed(tmp_path, monkeypatch):
    monkeypatch.setattr(run_info, "SMALL", 10)
    run = new_run(tmp_path)
    mark = encode_json({"t": "mark", "step": 41, "loss": 0.5, "wall": 1.0})
    fake = encode_json({"t": "fact", "kind": "x", "step": 0, "data": {}}) + b'J{"t":"mark","step":999}'
    segment = write_segment(run, [NOBODY, *declarations(), mark, fake])
    os.utime(segment, (1, 1))
    assert list_runs(tmp_path)[0].steps == 42


def test_the_writer_leaves_marks_that_the_list_finds(tmp_path, monkeypatch):
    monkeypatch.setattr("clew.store.write.payloads.MARK_EVERY", 0.0)
    monkeypatch.setattr(run_info, "SMALL", 10)
    run = new_run(tmp_path)
    writer = open_writer(run)
    table = writer.table(["loss"], [writer.site(LOSS)])
    for step in range(5):
        writer.row(table, step, [step / 2])
        assert writer.flush()
    (info,) = list_runs(tmp_path)
    assert (info.state, info.steps, info.last_loss) == ("running", 5, 2.0)
    writer.close("finished")


def test_a_run_is_found_by_id_by_unique_beginning_and_by_path(tmp_path, monkeypatch):
    one, two = dated_run(tmp_path, "alpha-one", 2.0), dated_run(tmp_path, "alpha-two", 1.0)
    dated_run(tmp_path, "alpha", 0.5)
    assert find_run(tmp_path) == one
    assert find_run(tmp_path, "alpha") == tmp_path / "alpha"
    assert find_run(tmp_path, "alpha-t") == two
    assert find_run(Path("elsewhere"), str(two)) == two
    assert find_run(Path("elsewhere"), str(two / "run.json")) == two
    monkeypatch.chdir(tmp_path)
    assert find_run(Path("elsewhere"), "alpha-one").resolve() == one.resolve()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("alpha-", "2 runs begin with"),
        ("beta", "no run 'beta'"),
        ("", "no run ''"),
        (".", "not a run folder"),
    ],
)
def test_a_run_that_is_not_found_gets_one_clear_line(tmp_path, text, says):
    dated_run(tmp_path, "alpha-one", 2.0)
    dated_run(tmp_path, "alpha-two", 1.0)
    with pytest.raises(NotARun, match=says) as caught:
        find_run(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_without_any_run_the_line_says_how_to_make_one(tmp_path):
    with pytest.raises(NotARun, match="clew run"):
        find_run(tmp_path)


def test_only_a_run_that_is_over_is_removed(tmp_path):
    run = new_run(tmp_path)
    writer = open_writer(run)
    writer.event("mode", 0, {})
    assert writer.flush()
    with pytest.raises(RunBusy, match="--force"):
        remove_run(run)
    assert open_run(run).state == "running"
    writer.close("finished")
    remove_run(run)
    assert not run.exists()


def test_a_running_run_is_removed_if_forced(tmp_path):
    run = new_run(tmp_path)
    remove_run(run, force=True)
    assert not run.exists()


def test_what_is_not_a_run_is_never_removed(tmp_path):
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "run.json").write_text('{"mine": true}')
    real = new_run(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(real)
    for path in (folder, link, tmp_path, tmp_path / "nowhere"):
        with pytest.raises(NotARun):
            remove_run(path, force=True)
    assert (folder / "run.json").exists()
    assert (real / "run.json").exists()
