"""`clew profile` in a process: scripts of all lengths, their own profilers, failures, and what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from program_process import Ended, run_warm

from clew.checks.run_view import RunView
from clew.records.step_costs import PARTS, Profile
from clew.store.read.run_reader import open_run

SCRIPT = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, y = torch.randn(64, 16), torch.randint(0, 2, (64,))
{before}
for step in range({steps}):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    {each}
print(sum(p.double().sum().item() for p in model.parameters()), torch.rand(1).item())
{after}
"""


def script(folder: Path, steps: int = 40, before: str = "", each: str = "pass", after: str = "") -> Path:
    file = folder / "train.py"
    file.write_text(SCRIPT.format(steps=steps, before=before, each=each, after=after))
    return file


def profiled(folder: Path, file: Path, *options: str, **environment: str) -> tuple[Ended, Profile]:
    command = ["-m", "clew", "profile", "--dir", folder / "runs", "--windows", "2", "--steps-per-window", "3"]
    environment = {"CLEW_CACHE": str(folder / "cache"), **environment}
    ended = run_warm([*command, *options, file], **environment)
    return ended, Profile.from_json(json.loads((run_of(folder) / "traces" / "profile.json").read_text()))


def run_of(folder: Path) -> Path:
    return next((folder / "runs").iterdir())


def test_a_profile_is_measured_written_and_shown(tmp_path: Path) -> None:
    file = script(tmp_path)
    plain = run_warm([file])
    ended, profile = profiled(tmp_path, file)
    assert (ended.code, ended.out) == (plain.code, plain.out)
    assert {module.module for module in profile.modules} >= {"", "0", "1", "2"}
    assert [part.name for part in profile.parts] == list(PARTS)
    shares = sum(part.share for part in profile.parts) + profile.unattributed / profile.step_median
    assert shares == pytest.approx(1.0, abs=0.02)
    assert profile.roof is not None
    assert profile.flame is not None
    assert profile.samples_per_second
    assert profile.notes == ()
    assert "clew profile" in ended.err
    assert "Linear" in ended.err
    assert "USDT" not in ended.err


def test_the_log_has_a_profile_for_the_checks_without_trees(tmp_path: Path) -> None:
    _, profile = profiled(tmp_path, script(tmp_path), "--quiet")
    stored = RunView(open_run(run_of(tmp_path)).data).profile()
    assert stored is not None
    assert stored.modules == profile.modules
    assert stored.flame is None
    assert stored.timeline == ()
    assert len(stored.ops) <= 60


def test_what_is_written_is_small_and_has_torchs_own_trace(tmp_path: Path) -> None:
    _, profile = profiled(tmp_path, script(tmp_path), "--quiet")
    traces = run_of(tmp_path) / "traces"
    assert (traces / profile.files["chrome trace"]).is_file()
    assert sum(file.stat().st_size for file in traces.iterdir()) < 4 << 20


@pytest.mark.parametrize("steps", [3, 10])
def test_a_script_of_few_steps_is_profiled(tmp_path: Path, steps: int) -> None:
    ended, profile = profiled(tmp_path, script(tmp_path, steps=steps))
    assert ended.code == 0
    assert profile.detailed >= 1
    assert {module.module for module in profile.modules} >= {"0", "2"}


def test_a_script_of_one_step_says_why_there_is_no_detail(tmp_path: Path) -> None:
    ended, profile = profiled(tmp_path, script(tmp_path, steps=1))
    assert ended.code == 0
    assert profile.detailed == 0
    assert "too short to profile in detail" in " ".join(ended.err.split())


def test_a_profiler_of_the_scripts_own_gets_what_it_would_have_got(tmp_path: Path) -> None:
    before = "own = torch.profiler.profile(); own.start()"
    after = "own.stop(); print(sum(e.count for e in own.key_averages() if e.key == 'aten::addmm'))"
    file = script(tmp_path, before=before, after=after)
    ended, profile = profiled(tmp_path, file)
    assert ended.out.splitlines()[-1] == "80"
    assert profile.detailed == 0
    assert any("torch.profiler itself" in note for note in profile.notes)
    assert profile.parts


def test_a_profiler_that_starts_within_a_window_ends_it(tmp_path: Path) -> None:
    each = (
        "if step == 6:\n        own = torch.profiler.profile(); own.start()\n"
        "    if step == 9:\n        own.stop()\n"
        "        print(sum(e.count for e in own.key_averages() if e.key == 'aten::addmm'))"
    )
    ended, profile = profiled(tmp_path, script(tmp_path, each=each), "--no-python")
    assert ended.out.splitlines()[0] == "6"
    assert profile.detailed


def test_an_exception_in_a_window_ends_the_script_as_ever_and_leaves_a_profile(tmp_path: Path) -> None:
    each = "if step == 6:\n        raise ValueError('mine')"
    file = script(tmp_path, each=each)
    ended, profile = profiled(tmp_path, file)
    assert ended.code == run_warm([file]).code == 1
    assert "ValueError: mine" in ended.err
    assert profile.detailed


def test_a_failure_of_ours_is_an_incident_and_training_goes_on(tmp_path: Path) -> None:
    file = script(tmp_path)
    ended, profile = profiled(tmp_path, file, CLEW_FAULT_INJECTION="profile")
    assert ended.out == run_warm([file]).out
    assert "the profile probe failed" in ended.err
    assert profile.parts


def test_bad_options_are_refused_in_one_line(tmp_path: Path) -> None:
    for options, said in (
        (["--format", "pdf", "x.py"], "no such format: pdf"),
        (["--batch-sizes", "8,none", "x.py"], "not a list of batch sizes"),
        (["--compare", "a"], "--compare takes two runs"),
        ([], "no script given"),
        (["nosuch.py"], "no such script"),
    ):
        ended = run_warm(["-m", "clew", "profile", "--dir", tmp_path, *options])
        assert ended.code == 2
        assert said in ended.err
        assert len(ended.err.strip().splitlines()) == 1
