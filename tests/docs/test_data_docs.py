"""docs/data.md is run: its program, its command, its Python, and its table of checks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from clew.checks.catalog import CHECKS
from clew.checks.needs import fact_kinds

REPOSITORY = Path(__file__).parents[2]
FILE = REPOSITORY / "docs" / "data.md"
PAGE = FILE.read_text(encoding="utf-8")
PICTURE = r"(?m)^(?:  (?:both|samples))?[ .:=+*#%@-]*$\n?"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, flags=re.DOTALL)


def masked(text: str) -> str:
    """Without what differs between machines: numbers, pictures, bars, and so where lines are broken."""
    return re.sub(r"[█]*\d[\d.,e+-]*[█]*", "#", re.sub(r"\s+", "", re.sub(PICTURE, "", text)))


def test_the_shown_report_is_what_the_command_prints(tmp_path: Path) -> None:
    (tmp_path / "digits.py").write_text(blocks("python")[0])
    command, shown = blocks("text")[0].split("\n", 1)
    environment = {**os.environ, "COLUMNS": "80", "PYTHONUTF8": "1", "CLEW_DIR": str(tmp_path / "runs")}
    done = subprocess.run(
        [sys.executable, "-m", "clew", *command.removeprefix("$ clew ").split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    drawn = done.stderr[done.stderr.index("────") :].replace(f"{tmp_path}/", "")
    if os.environ.get("CLEW_UPDATE_GOLDENS") == "1":
        FILE.write_text(PAGE.replace(blocks("text")[0], f"{command}\n{drawn}"), encoding="utf-8")
        shown = drawn
    assert masked(shown).strip() == masked(drawn).strip()


def test_the_python_example_runs() -> None:
    setting = """
import clew, torch
from torch.utils.data import DataLoader, TensorDataset
x = torch.randn(96, 8)
loader, val_loader = (DataLoader(TensorDataset(part, part[:, 0] > 0), 16) for part in (x[:64], x[48:]))
given = clew.data
clew.data = lambda *loaders, **named: given(*loaders, measure=False, **named)
"""
    done = subprocess.run(
        [sys.executable, "-c", setting + blocks("python")[1]], capture_output=True, text=True, check=True
    )
    assert "train-val-leakage 16 samples of val are also in loader" in done.stdout


def test_every_check_of_the_survey_is_in_the_table_and_no_other() -> None:
    table = PAGE.split("| question | check |", 1)[1].split("\n\n", 1)[0]
    named = set(re.findall(r"\(checks/([a-z-]+)\.md\)", table))
    assert named == {c.name for c in CHECKS if "data.survey" in fact_kinds(c.needs)}


def test_every_named_option_exists() -> None:
    done = subprocess.run([sys.executable, "-m", "clew", "data", "--help"], capture_output=True, text=True)
    for option in set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", PAGE)) - {"--help"}:
        assert option in done.stdout, option


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", PAGE):
        assert (REPOSITORY / "docs" / target).exists(), target
