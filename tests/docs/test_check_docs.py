"""docs/check.md is run: its program, its command, its table of questions, its Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clew.labs.experiments.experiment_list import EXPERIMENTS
from clew.render.verdict.preflight_results import ExperimentAnswer

REPOSITORY = Path(__file__).parents[2]
FILE = REPOSITORY / "docs" / "check.md"
PAGE = FILE.read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, flags=re.DOTALL)


def masked(text: str) -> str:
    """Without what differs between machines: numbers, the line that they draw, and where the run is kept.

    On a busy machine an experiment also says how many seconds it took, which may break its line elsewhere.
    """
    text = re.sub(r"(?m)^run .*\n?", "", text)
    text = re.sub(r"\s+\([\d.]+\s+(s|ms|min)\)", "", text)
    text = re.sub(r"([│┤]).*", r"\1~", text)
    return " ".join(re.sub(r"[ ]*\d[\d.,e+-]*", "#", text).split())


def test_the_shown_pre_flight_is_what_the_command_prints(tmp_path: Path) -> None:
    (tmp_path / "digits.py").write_text(blocks("python")[0])
    command, shown = blocks("text")[0].split("\n", 1)
    arguments = command.removeprefix("$ clew ").split()
    environment = {**os.environ, "COLUMNS": "80", "PYTHONUTF8": "1", "CLEW_DIR": str(tmp_path / "runs")}
    done = subprocess.run(
        [sys.executable, "-m", "clew", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 3, done.stderr
    if os.environ.get("CLEW_UPDATE_GOLDENS") == "1":
        drawn = done.stderr[done.stderr.index("────") :]
        shown = drawn.replace("       runs/", "       .clew/runs/")
        FILE.write_text(PAGE.replace(blocks("text")[0], f"{command}\n{shown}"), encoding="utf-8")
    assert masked(shown) in masked(done.stderr)


def test_every_experiment_has_its_line_and_no_other() -> None:
    table = PAGE.split("| experiment | what it does |", 1)[1].split("\n\n", 1)[0]
    named = re.findall(r"(?m)^\| \[?([a-z-]+)\]?[^|]*\|", table)
    assert sorted(name for name in named if name.strip("-")) == sorted(kind.name for kind in EXPERIMENTS)


def test_the_python_examples_run() -> None:
    setting = """
import clew, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
model, loss_fn = nn.Linear(4, 3), nn.CrossEntropyLoss()
x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), 16)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
given = clew.examine
clew.examine = lambda *arguments: given(*arguments, only=["batch-leak"])
"""
    done = subprocess.run(
        [sys.executable, "-c", setting + blocks("python")[1]], capture_output=True, text=True, check=True
    )
    assert "batch-leak" in done.stdout


def test_the_documented_keys_of_an_experiment_are_those_there_are() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| `preflight.experiments[]`"))
    named = set(re.findall(r"`(\w+)", row.split("|")[2])) - {"title", "x", "y", "x_label", "y_label", "log_x"}
    assert named == set(ExperimentAnswer("a", "b", "passed", 0.0).to_json())


@pytest.mark.parametrize("verb", sorted(set(re.findall(r"\$ clew (\w+)", PAGE))))
def test_every_named_command_exists(verb: str) -> None:
    done = subprocess.run([sys.executable, "-m", "clew", verb, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    for option in set(re.findall(rf"clew {verb}[^\n`]* (--[a-z-]+)", PAGE)):
        assert option in done.stdout or option == "--lr", option


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", PAGE):
        assert (REPOSITORY / "docs" / target).exists(), target


def test_a_pre_flight_is_written_as_a_page_too(tmp_path: Path) -> None:
    (tmp_path / "digits.py").write_text(blocks("python")[0])
    command = ["check", "--quiet", "--html", "out.html", "--only", "batch-leak", "digits.py"]
    environment = {**os.environ, "CLEW_DIR": str(tmp_path / "runs")}
    done = subprocess.run(
        [sys.executable, "-m", "clew", *command], cwd=tmp_path, env=environment, timeout=300
    )
    assert done.returncode == 3
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
