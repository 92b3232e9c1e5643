from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from clew_command import FAULTY, HEALTHY, SOURCE, clew

SLOW = FAULTY.replace("range(60)", "range(100_000)").replace(
    "    optimizer.step()", "    optimizer.step()\n    __import__('time').sleep(0.01)"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "faulty.py").write_text(FAULTY)
    (tmp_path / "healthy.py").write_text(HEALTHY)
    (tmp_path / "empty.py").write_text("")
    return tmp_path


def runs_in(folder: Path) -> list[Path]:
    return sorted((folder / ".clew" / "runs").glob("*"))


def test_faulty_script_gets_its_diagnosis_on_stderr_and_its_own_output_on_stdout(folder: Path) -> None:
    done = clew(folder, "run", "faulty.py")
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert done.stderr.startswith("clew 0.1.0 · recording to .clew/runs/")
    assert "✗ missing-zero-grad" in done.stderr
    assert "faulty.py:12  optimizer.step()" in done.stderr


def test_healthy_script_gets_a_header_and_a_clean_bill_of_health(folder: Path) -> None:
    done = clew(folder, "run", "healthy.py")
    header, bill = done.stderr.splitlines()[:2]
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert header.startswith("clew 0.1.0 · recording to ")
    assert bill.startswith("✓ clew: no problems found (")
    assert "60 steps of healthy.py" in bill


def test_options_after_the_script_are_the_scripts(folder: Path) -> None:
    (folder / "args.py").write_text("import sys; print(sys.argv)")
    done = clew(folder, "run", "--quiet", "args.py", "--quiet", "--json", "--", "-m", "--help")
    assert done.stdout == "['args.py', '--quiet', '--json', '--', '-m', '--help']\n"
    assert done.stderr == ""


def test_module_is_run_with_dash_m(folder: Path) -> None:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").touch()
    (folder / "package" / "train.py").write_text("import sys; print(__spec__.name, sys.argv[1:])")
    done = clew(folder, "run", "--quiet", "-m", "package.train", "--lr", "1")
    assert done.stdout == "package.train ['--lr', '1']\n"


def test_verdict_is_written_as_json(folder: Path) -> None:
    done = clew(folder, "run", "--quiet", "--json", "out/verdict.json", "faulty.py")
    verdict = json.loads((folder / "out" / "verdict.json").read_text())
    assert done.stderr == ""
    assert verdict["findings"][0]["check"] == "missing-zero-grad"
    assert verdict["run"]["steps"] == 60
    assert set(verdict) == {"run", "findings", "not_judged", "ruled_out", "ignored"}


def test_recorded_verdict_is_the_same_as_the_one_at_the_end(folder: Path) -> None:
    clew(folder, "run", "--quiet", "--json", "verdict.json", "faulty.py")
    again = json.loads(clew(folder, "why", "--json").stdout)
    assert again["findings"] == json.loads((folder / "verdict.json").read_text())["findings"]


@pytest.mark.parametrize(
    ("level", "script", "code"),
    [("error", "faulty.py", 3), ("warning", "faulty.py", 3), ("error", "healthy.py", 0)],
)
def test_fail_on_has_its_own_exit_code(level: str, script: str, code: int, folder: Path) -> None:
    assert clew(folder, "run", "--quiet", "--fail-on", level, script).returncode == code


def test_exit_code_of_a_failing_script_is_its_own_even_with_findings(folder: Path) -> None:
    (folder / "faulty.py").write_text(FAULTY + "raise SystemExit(5)\n")
    assert clew(folder, "run", "--quiet", "--fail-on", "error", "faulty.py").returncode == 5


def test_ignored_check_is_left_out_of_the_verdict_and_of_the_next_one(folder: Path) -> None:
    done = clew(folder, "run", "--ignore", "missing-zero-grad", "--fail-on", "error", "faulty.py")
    assert done.returncode == 0
    assert "✗ missing-zero-grad" not in done.stderr
    assert "missing-zero-grad" not in clew(folder, "why", "--json").stdout


def test_stop_on_ends_the_run_at_the_finding(folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    done = clew(folder, "run", "--stop-on", "error", "slow.py")
    assert done.returncode != 0
    assert "trained" not in done.stdout
    assert "missing-zero-grad" in done.stderr


SHORT = FAULTY.replace("range(60)", "range(300)")


def test_stop_on_ends_a_run_of_less_than_a_second_within_its_first_steps(folder: Path) -> None:
    (folder / "short.py").write_text(SHORT)
    done = clew(folder, "run", "--stop-on", "error", "short.py")
    assert done.returncode == 3
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("clew: stopped at step ")]
    assert int(line.split()[4].rstrip(":")) < 40
    assert "trained" not in done.stdout


def test_stop_on_says_nothing_where_nothing_is_to_be_printed(folder: Path) -> None:
    (folder / "short.py").write_text(SHORT)
    done = clew(folder, "run", "--quiet", "--stop-on", "error", "short.py")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
    done = clew(folder, "run", "--quiet", "--steps", "5", "short.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_healthy_run_is_not_stopped(folder: Path) -> None:
    (folder / "healthy.py").write_text(HEALTHY.replace("range(60)", "range(300)"))
    done = clew(folder, "run", "--stop-on", "error", "healthy.py")
    assert (done.returncode, done.stdout) == (0, "trained\n")


def test_errors_show_while_the_script_still_runs(folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    with subprocess.Popen(
        [sys.executable, "-m", "clew", "run", "slow.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "utf-8"},
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as running:
        assert running.stderr is not None
        shown = next((line for line in running.stderr if "missing-zero-grad" in line), "")
        still_running = running.poll() is None
        running.kill()
    assert shown.startswith("clew: ✗ missing-zero-grad: ")
    assert still_running


def test_switched_off_leaves_no_trace(folder: Path) -> None:
    done = clew(folder, "run", "faulty.py", environment={"CLEW": "off"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "trained\n", "")
    assert not (folder / ".clew").exists()


def test_uncaught_exception_gives_pythons_traceback_then_the_verdict(folder: Path) -> None:
    (folder / "faulty.py").write_text(FAULTY + "def fail():\n    raise ValueError('x')\nfail()\n")
    plain = subprocess.run(
        [sys.executable, "faulty.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    done = clew(folder, "run", "faulty.py")
    assert done.returncode == plain.returncode == 1
    assert plain.stderr in done.stderr
    assert done.stderr.index("ValueError: x") < done.stderr.index("✗ missing-zero-grad  error")


def test_interrupt_ends_the_process_by_the_signal(folder: Path) -> None:
    (folder / "faulty.py").write_text(FAULTY + "import os, signal; os.kill(os.getpid(), signal.SIGINT)\n")
    # A shell that starts the tests in the background lets them ignore the signal, and all they start.
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        done = clew(folder, "run", "faulty.py")
    finally:
        signal.signal(signal.SIGINT, previous)
    assert done.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in done.stderr
    assert "✗ missing-zero-grad" in done.stderr
    assert "failed" in clew(folder, "runs").stdout


def test_standard_input_reaches_the_script(folder: Path) -> None:
    (folder / "reads.py").write_text("print(input()[::-1])")
    assert clew(folder, "run", "--quiet", "reads.py", stdin="abc\n").stdout == "cba\n"


def test_forked_child_leaves_the_run_to_its_parent(folder: Path) -> None:
    script = HEALTHY + "import os\nif os.fork() == 0:\n    print('child')\nelse:\n    os.wait()\n"
    (folder / "forks.py").write_text(script.replace('print("trained")', 'print("trained", flush=True)'))
    done = clew(folder, "run", "forks.py")
    assert done.stdout == "trained\nchild\n"
    assert done.stderr.count("no problems found") == 1
    assert len(runs_in(folder)) == 1


def test_script_that_changes_folder_leaves_its_run_where_it_began(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "moves.py").write_text("import os; os.chdir('elsewhere')\n" + HEALTHY)
    clew(folder, "run", "--quiet", "--json", "verdict.json", "moves.py")
    assert len(runs_in(folder)) == 1
    assert (folder / "verdict.json").exists()
    assert not list((folder / "elsewhere").iterdir())


def test_folder_and_name_of_the_run_can_be_chosen(folder: Path) -> None:
    clew(folder, "run", "--quiet", "--dir", "records", "--name", "try-7", "healthy.py")
    assert [p.name.split("-", 2)[2][:5] for p in (folder / "records").glob("2*")] == ["try-7"]


def test_unwritable_folder_does_not_stop_the_script(folder: Path) -> None:
    (folder / "a_file").write_text("")
    done = clew(folder, "run", "--dir", "a_file/runs", "healthy.py")
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "clew: " in done.stderr
    assert "Traceback" not in done.stderr


def test_script_without_torch_says_that_there_is_nothing_to_judge(folder: Path) -> None:
    done = clew(folder, "run", "empty.py")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "clew: nothing to check: the script never imported torch"


def test_a_script_without_torch_waits_for_no_check_and_no_numpy(folder: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "clew", "run", "empty.py"]
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stderr
    lines = [line for line in told.splitlines() if line.startswith("import time")]
    imported = {line.rpartition("|")[2].strip() for line in lines}
    assert "clew.session.session" in imported
    assert not imported & {"numpy", "torch", "clew.checks.runner", "clew.checks.catalog"}


def test_torch_that_cannot_be_imported_is_the_scripts_error_and_named(folder: Path) -> None:
    (folder / "lacking.py").write_text("import sys\nsys.modules['torch'] = None\nimport torch\n")
    done = clew(folder, "run", "lacking.py")
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr
    assert "clew: nothing to check: " in done.stderr.splitlines()[-1]


def test_recording_that_cannot_start_lets_the_script_run(folder: Path) -> None:
    (folder / "sabotage").mkdir()
    (folder / "sabotage" / "sitecustomize.py").write_text(
        "import clew.session.session\ndef start_run(options):\n    raise RuntimeError('broken')\n"
        "clew.session.session.start_run = start_run\n"
    )
    (folder / "plain.py").write_text("print('ran')")
    done = clew(folder, "run", "plain.py", environment={"PYTHONPATH": f"{SOURCE}{os.pathsep}sabotage"})
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr == (
        "clew: recording could not start; the script runs without it (RuntimeError: broken)\n"
    )


def test_every_rank_records_and_only_the_first_speaks(folder: Path) -> None:
    (folder / "ranked.py").write_text(HEALTHY.replace('print("trained")', ""))
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "clew"]
    done = subprocess.run(
        [sys.executable, *command, "run", "ranked.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no problems found") == 1
    (run,) = runs_in(folder)
    assert sorted(p.name for p in run.glob("rank*")) == ["rank00000", "rank00001"]


def test_a_quick_look_ends_after_the_steps_asked_for(folder: Path) -> None:
    (folder / "long.py").write_text(HEALTHY.replace("range(60)", "range(100_000)"))
    done = clew(folder, "run", "--steps", "70", "--json", "verdict.json", "long.py")
    verdict = json.loads((folder / "verdict.json").read_text())
    assert (done.returncode, verdict["run"]["steps"], verdict["run"]["state"]) == (0, 70, "finished")
    assert "clew: stopped after 70 steps (--steps)" in done.stderr
    assert "Traceback" not in done.stderr


def test_checks_are_ignored_by_the_project_and_by_the_script(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.clew]\nignore = ["missing-zero-grad@faulty.py"]')
    done = clew(folder, "run", "faulty.py")
    assert "missing-zero-grad found, but ignored" in done.stderr
    (folder / "pyproject.toml").write_text("")
    (folder / "own.py").write_text("import clew\nclew.ignore('missing-zero-grad', why='known')\n" + FAULTY)
    assert "missing-zero-grad" not in clew(folder, "run", "own.py").stderr
    assert "missing-zero-grad" not in clew(folder, "why").stdout


def test_settings_that_can_not_be_used_are_reported_and_the_script_runs(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.clew]\nignore = "all"')
    done = clew(folder, "run", "healthy.py")
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "must be a list; these settings are ignored" in done.stderr


def test_thresholds_of_the_project_hold_now_and_for_a_later_reader(folder: Path) -> None:
    settings = folder / "pyproject.toml"
    settings.write_text("[tool.clew.thresholds.missing-zero-grad]\nleast = 100_000\nmost = 3")
    done = clew(folder, "run", "faulty.py")
    assert "missing-zero-grad  error" not in done.stderr
    said = "tool.clew.thresholds.missing-zero-grad: unknown threshold 'most'; available: least, "
    assert done.stderr.count(said) == 1
    settings.unlink()
    assert "missing-zero-grad  error" not in clew(folder, "why").stdout
    assert "missing-zero-grad  error" in clew(folder, "run", "faulty.py").stderr


def test_thresholds_are_for_checks_that_come_with_the_script_too(folder: Path) -> None:
    check = (
        "import clew, dataclasses\n"
        "from clew.checks.base import Check\n"
        "from clew.records.finding import Severity\n"
        "@clew.register\n"
        "@dataclasses.dataclass(frozen=True)\n"
        "class Slack(Check):\n"
        "    'Slack.'\n"
        "    id = 'OWN001'\n"
        "    name = 'slack'\n"
        "    needs = ('loss',)\n"
        "    most: int = 3\n"
        "    def diagnose(self, run):\n"
        "        yield self.finding(Severity.WARNING, message=f'at most {self.most}', fix='none')\n"
    )
    (folder / "own.py").write_text(check + HEALTHY)
    settings = "[tool.clew.thresholds]\nslack.most = 7\nslakc.most = 7\nslack.least = 1\n"
    (folder / "pyproject.toml").write_text(settings)
    done = clew(folder, "run", "own.py")
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "at most 7" in done.stderr
    assert done.stderr.count("slack: unknown threshold 'least'; available: most (ignored)") == 1
    assert done.stderr.count("no check named 'slakc'; did you mean slack? (ignored)") == 1
    assert "at most 7" in clew(folder, "why").stdout


def test_a_misspelt_name_to_ignore_is_reported(folder: Path) -> None:
    (folder / "own.py").write_text("import clew\nclew.ignore('dead-unit')\n" + HEALTHY)
    assert "clew: ignore: there is no check named 'dead-unit'; did you mean dead-units?" in (
        clew(folder, "run", "own.py").stderr
    )


def test_a_check_of_the_scripts_own_is_shown_now_and_by_a_later_reader(folder: Path) -> None:
    check = (
        "import clew\n"
        "@clew.register(name='never-happy', needs=['loss'])\n"
        "def never_happy(run):\n"
        "    yield 'it could be better', 'try harder'\n"
    )
    (folder / "own.py").write_text(check + HEALTHY)
    assert "never-happy" in clew(folder, "run", "own.py").stderr
    later = clew(folder, "why").stdout
    assert "never-happy" in later
    assert "try harder" in later
