"""Verbs that read: why, explain, runs."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from clew_command import SOURCE, clew, record

from clew.checks.catalog import CHECKS
from clew.cli.verbs import VERBS, interpret
from clew.render.verdict.check_text import CheckEntry, render_check
from clew.store.read.run_folders import list_runs

ROOT = Path(".clew/runs")
OF_RUNS = ("run", "check", "why", "replay", "data", "profile", "runs", "ui", "report", "demo")  # take --dir


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLEW_DIR", raising=False)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert interpret(arguments) == code
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def test_why_shows_the_newest_run(capsys: pytest.CaptureFixture[str]) -> None:
    record(ROOT, script="old.py", stale=False)
    record(ROOT, script="new.py")
    text = told(capsys, "why")
    assert "missing-zero-grad" in text
    assert "new.py" in text


def test_why_takes_an_id_its_beginning_and_a_path(capsys: pytest.CaptureFixture[str]) -> None:
    run = record(ROOT, script="first.py")
    record(ROOT, script="second.py", stale=False)
    for name in (run.name, run.name[:-2], str(run), str(run.absolute())):
        assert "first.py" in told(capsys, "why", name)


def test_why_in_json_has_the_stable_shape(capsys: pytest.CaptureFixture[str]) -> None:
    record(ROOT)
    verdict = json.loads(told(capsys, "why", "--json"))
    assert set(verdict) == {"run", "findings", "not_judged", "ruled_out", "ignored"}
    finding = verdict["findings"][0]
    assert set(finding) == {
        "check", "id", "severity", "confidence", "message", "site", "step", "evidence", "fix", "because",
        "exhibits", "proof",
    }  # fmt: skip
    assert set(finding["site"]) == {"module", "op", "file", "line", "phase"}
    assert finding["check"] == "missing-zero-grad"
    assert finding["site"]["line"] == 12
    assert {"check", "reason"} == set(verdict["not_judged"][0])
    assert verdict["run"]["state"] == "finished"


def test_why_with_all_gives_the_reasons_of_silence(capsys: pytest.CaptureFixture[str]) -> None:
    record(ROOT)
    assert "not recorded:" not in told(capsys, "why")
    assert "not recorded:" in told(capsys, "why", "--all")


@pytest.mark.parametrize(("stale", "code"), [(True, 3), (False, 0)])
def test_why_fails_on_what_it_is_told_to(stale: bool, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    record(ROOT, stale=stale)
    told(capsys, "why", "--fail-on", "warning", code=code)


def test_why_leaves_out_what_it_is_told_to(capsys: pytest.CaptureFixture[str]) -> None:
    record(ROOT)
    assert "missing-zero-grad" not in told(capsys, "why", "--ignore", "missing-zero-grad")


def test_why_leaves_out_what_the_run_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    record(ROOT, facts=[("ignore", {"check": name}) for name in ("missing-zero-grad", "of-the-future")])
    assert "missing-zero-grad" not in told(capsys, "why")


def test_why_says_what_was_found_and_ignored_at_a_place(capsys: pytest.CaptureFixture[str]) -> None:
    record(ROOT, facts=[("ignore", {"check": "missing-zero-grad", "where": "train.py:12", "why": "known"})])
    text = " ".join(told(capsys, "why").split())
    assert "missing-zero-grad found, but ignored: known" in text
    assert "no problems found" in text


def test_why_takes_a_place_to_ignore(capsys: pytest.CaptureFixture[str]) -> None:
    record(ROOT)
    assert "found, but ignored" in told(capsys, "why", "--ignore", "missing-zero-grad@train.py")
    assert "found, but ignored" not in told(capsys, "why", "--ignore", "missing-zero-grad@other.py")


def test_why_says_that_a_run_was_damaged(capsys: pytest.CaptureFixture[str]) -> None:
    run = record(ROOT)
    (segment,) = run.rglob("*.seg")
    data = bytearray(segment.read_bytes())
    data[-20] ^= 0xFF
    segment.write_bytes(data)
    assert "incomplete, could not be read" in told(capsys, "why")


def damage(run: Path, at: int, size: int = 8) -> None:
    (segment,) = run.rglob("*.seg")
    data = bytearray(segment.read_bytes())
    data[at : at + size] = b"\xff" * size
    segment.write_bytes(data)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99])
def test_runs_and_why_say_the_same_of_a_damaged_run(share: float, capsys: pytest.CaptureFixture[str]) -> None:
    run = record(ROOT)
    (segment,) = run.rglob("*.seg")
    damage(run, int(share * segment.stat().st_size))
    (listed,) = json.loads(told(capsys, "runs", "--json"))
    assert listed["damage"]
    if share < 0.9:  # its steps are in one record
        assert interpret(["why"]) == 2
        line = capsys.readouterr().err
        assert "no training step can be read" in line
        assert listed["damage"][0] in line
    else:
        judged = json.loads(told(capsys, "why", "--json"))["run"]
        assert (judged["state"], judged["damage"]) == (listed["state"], listed["damage"])
    assert (listed["state"] == "finished") == (share < 0.9)
    assert "can't be read" in " ".join(told(capsys, "runs").split())


def test_runs_says_that_a_run_is_of_a_newer_format(capsys: pytest.CaptureFixture[str]) -> None:
    run = record(ROOT)
    meta = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**meta, "format_version": 99}))
    (listed,) = json.loads(told(capsys, "runs", "--json"))
    assert (listed["state"], listed["steps"]) == ("unreadable", None)
    assert "newer Clew (format 99" in listed["damage"][0]
    assert "newer Clew (format 99" in " ".join(told(capsys, "runs").split())


def test_why_needs_no_torch(folder: Path) -> None:
    record(ROOT)
    done = clew(folder, "why", before=["-X", "importtime"])
    assert "missing-zero-grad" in done.stdout
    assert "torch" not in {line.split("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines()}


def test_explain_prints_every_section_of_a_check(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "explain", "dead-units")
    for heading in ("What it detects", "Why is this bad?", "How to fix", "Known problems"):
        assert f"\n{heading}\n" in text


def test_explain_takes_an_id_too(capsys: pytest.CaptureFixture[str]) -> None:
    by_name = told(capsys, "explain", "dead-units")
    identity = by_name.split()[1]
    assert told(capsys, "explain", identity) == by_name


def test_explain_lists_every_check_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, "explain").splitlines()
    assert [line.split()[0] for line in lines] == [check.name for check in CHECKS]
    assert max(map(len, lines)) <= 80


def test_explain_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    one = json.loads(told(capsys, "explain", "dead-units", "--json"))
    assert one["check"] == "dead-units"
    assert one["sections"]["How to fix"]
    assert [c["check"] for c in json.loads(told(capsys, "explain", "--json"))] == [c.name for c in CHECKS]


def test_explain_shows_thresholds_with_those_that_the_project_has_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = told(capsys, "explain", "dead-units")
    assert "dead_fraction = 0.5  share of a layer's units silent" in text
    assert "[tool.clew.thresholds]\n    dead-units.dead_fraction = 0.5\n" in text
    settings = "[tool.clew.thresholds.dead-units]\ndead_fraction = 0.7\n"
    Path("pyproject.toml").write_text(settings, encoding="utf-8")
    text = " ".join(told(capsys, "explain", "dead-units").split())
    assert "silent for the whole batch (set by this project; 0.5 by default)" in text
    rows = json.loads(told(capsys, "explain", "dead-units", "--json"))["thresholds"]
    assert [(row["value"], row["default"]) for row in rows] == [(0.7, 0.5), (20, 20), (0.9, 0.9), (8, 8)]
    page = io.StringIO()
    render_check(CheckEntry("without-any", "OWN", "", {"What it detects": "something"}), stream=page)
    assert "something" in page.getvalue()
    assert "Thresholds" not in page.getvalue()


def test_runs_are_listed_newest_first_with_their_state(capsys: pytest.CaptureFixture[str]) -> None:
    record(ROOT, script="a.py")
    record(ROOT, script="b.py", state="failed")
    header, newest, oldest = told(capsys, "runs").splitlines()
    assert header.split()[:2] == ["run", "state"]
    assert "failed" in newest
    assert "finished" in oldest
    assert "40" in oldest.split()


def test_runs_are_filtered(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        record(ROOT, script=f"gan{number}.py")
    record(ROOT, script="gpt.py", state="failed")

    def scripts(*arguments: str) -> list[str]:
        return [run["script"] for run in json.loads(told(capsys, "runs", "--json", *arguments))]

    assert scripts("--state", "failed") == ["gpt.py"]
    assert scripts("--match", "GAN", "--limit", "2") == ["gan2.py", "gan1.py"]
    assert scripts("--match", "nothing") == []
    assert told(capsys, "runs", "--match", "nothing").startswith("no matching runs in ")


def test_no_runs_is_said_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "runs") == "no runs in .clew/runs; record one with: clew run train.py\n"
    assert json.loads(told(capsys, "runs", "--json")) == []


def test_runs_are_removed_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = (record(ROOT, script=f"{name}.py") for name in "abc")
    assert told(capsys, "runs", "rm", "--yes", first.name, second.name) == "removed 2 runs\n"
    assert [run.path.name for run in list_runs(ROOT)] == [third.name]


def test_runs_are_removed_by_age(capsys: pytest.CaptureFixture[str]) -> None:
    old, new = record(ROOT), record(ROOT)
    meta = json.loads((old / "run.json").read_text())
    (old / "run.json").write_text(json.dumps({**meta, "started": meta["started"] - 8 * 86400}))
    removed = json.loads(told(capsys, "runs", "rm", "--older-than", "7d", "--yes", "--json"))
    assert removed == {"removed": [str(old)]}
    assert new.exists()


def test_running_run_is_removed_only_by_force(capsys: pytest.CaptureFixture[str]) -> None:
    run = record(ROOT, state=None)  # this very process is the one that writes it
    assert interpret(["runs", "rm", "--yes", run.name]) == 2
    assert "still running" in capsys.readouterr().err
    assert run.exists()
    told(capsys, "runs", "rm", "--yes", "--force", run.name)
    assert not run.exists()


def test_folder_of_runs_can_be_chosen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record(Path("records"), script="here.py")
    assert "here.py" in told(capsys, "why", "--dir", "records")
    assert "here" in told(capsys, "runs", "--dir", "records")
    monkeypatch.setenv("CLEW_DIR", "records")
    assert "here.py" in told(capsys, "why")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_its_name(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, verb, "--help")
    assert text.startswith(f"Usage: clew {verb}")
    assert "DIR" in text or verb not in OF_RUNS


def test_bare_command_shows_help_and_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert all(f"\n  {verb} " in told(capsys) for verb in VERBS)
    assert told(capsys, "--version") == "clew 0.1.0\n"


def test_reader_that_goes_away_is_no_error(folder: Path) -> None:
    for number in range(5):
        record(ROOT, script=f"s{number}.py")
    with subprocess.Popen(
        [sys.executable, "-m", "clew", "runs"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as reading:
        assert reading.stdout is not None
        assert reading.stderr is not None
        reading.stdout.close()
        assert reading.stderr.read() == ""
        assert reading.wait() == 1  # as click and rich end then
