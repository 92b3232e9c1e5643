"""Every mistake gets one clear line on stderr and exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clew_command import clew, record

from clew.cli.verbs import VERBS, interpret


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = interpret(arguments)
    told = capsys.readouterr()
    assert code == 2
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert told.err.startswith("clew: ")
    return told.err


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLEW_DIR", raising=False)
    (tmp_path / "train.py").write_text("")
    return tmp_path


def test_script_not_found_suggests_its_neighbour(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no such script: trian.py; did you mean train.py?" in refused(capsys, "run", "trian.py")
    assert refused(capsys, "run", "models/x.py") == "clew: no such script: models/x.py\n"


def test_a_folder_is_no_script(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "models").mkdir()
    assert "models is a folder without a __main__.py" in refused(capsys, "run", "models")
    (folder / "models" / "__main__.py").write_text("")
    assert not isinstance(interpret(["run", "models"]), int)


def test_module_not_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("raise AssertionError('imported too early')")
    (folder / "package" / "train.py").write_text("")
    assert "no module named nowhere_at_all" in refused(capsys, "run", "-m", "nowhere_at_all")
    assert "no module named package.trian" in refused(capsys, "run", "-m", "package.trian")
    assert "package is a package" in refused(capsys, "run", "-m", "package")
    assert "omit -m" in refused(capsys, "run", "-m", "train.py")
    for there in ("package.train", "train", "timeit", "torch.utils.collect_env"):
        assert not isinstance(interpret(["run", "-m", there]), int)


def test_a_package_that_finds_its_modules_itself_is_left_to_python(folder: Path) -> None:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("__path__.append('/elsewhere')")
    assert not isinstance(interpret(["run", "-m", "package.train"]), int)


def test_nothing_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert "clew run train.py" in refused(capsys, "run")


def test_option_of_the_script_before_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "run", "--lr", "0.1", "train.py")
    assert "no option --lr; options of the script go after it" in told


@pytest.mark.parametrize("budget", ["two", "0", "-1%", "200%", "nan", "%"])
def test_budget_that_is_no_share(budget: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not a share" in refused(capsys, "run", "--budget", budget, "train.py")


def test_unknown_verb_suggests(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'explain'?" in refused(capsys, "explian")
    assert "to run a script: clew run train.py" in refused(capsys, "train.py")
    assert f"the commands are: {', '.join(VERBS)}" in refused(capsys, "zzz")


def test_unknown_check_suggests(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean dead-units?" in refused(capsys, "explain", "dead-unit")
    assert "did you mean dead-units?" in refused(capsys, "run", "--ignore", "dead-unit", "train.py")
    assert "`clew explain` lists all checks" in refused(capsys, "why", "--ignore", "xyzzy")


def test_no_runs_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no runs in" in refused(capsys, "why")


def test_run_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    record(Path(".clew/runs"))
    assert "clew runs" in refused(capsys, "why", "20010101")


def test_folder_that_is_not_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "data").mkdir()
    assert "not a run folder" in refused(capsys, "why", "data")


def test_empty_run(capsys: pytest.CaptureFixture[str]) -> None:
    run = record(Path(".clew/runs"), steps=0, state=None)
    meta = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**meta, "pid": 2**22 + 1}))
    for segment in run.rglob("*.seg"):
        segment.unlink()
    assert "empty" in refused(capsys, "why")


def test_run_without_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    record(Path(".clew/runs"), steps=0)
    assert "no training step was recorded" in refused(capsys, "why")


def test_run_of_a_script_that_had_no_torch(capsys: pytest.CaptureFixture[str]) -> None:
    record(Path(".clew/runs"), steps=0, facts=[("idle", {"reason": "the script never imported torch"})])
    assert "the script never imported torch" in refused(capsys, "why")


def test_run_of_a_newer_clew(capsys: pytest.CaptureFixture[str]) -> None:
    run = record(Path(".clew/runs"))
    meta = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**meta, "format_version": 99}))
    assert "newer" in refused(capsys, "why")


def test_hostile_run_name_does_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b" not in refused(capsys, "why", "\x1b]0;owned\x07")


def test_removal_needs_to_be_told_what_and_to_be_sure(capsys: pytest.CaptureFixture[str]) -> None:
    record(Path(".clew/runs"))
    assert "no runs given" in refused(capsys, "runs", "rm")
    assert "not a duration" in refused(capsys, "runs", "rm", "--older-than", "soon")
    assert "--match digits" in refused(capsys, "runs", "digits")


def test_removal_without_a_terminal_needs_yes(folder: Path) -> None:
    run = record(Path(".clew/runs"))
    done = clew(folder, "runs", "rm", run.name)
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert run.exists()


def test_mistakes_are_reported_by_the_process_too(folder: Path) -> None:
    done = clew(folder, "run", "nowhere.py")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "clew: no such script: nowhere.py\n")
