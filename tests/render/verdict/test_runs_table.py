"""The table of runs, and the pages of checks."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_files import Paper, assert_golden

from clew.render.verdict.check_text import CheckEntry, TextPiece, pieces, render_check, render_checks
from clew.render.verdict.runs_table import render_runs, span
from clew.store.read.run_info import RunInfo

NOW = 1_800_000_000.0
PAGE = """Most units of a layer
stay at zero.

A second paragraph.

- lower the learning rate,
  or warm it up
- try LeakyReLU

```python
nn.LeakyReLU()
```
"""
CHECK = CheckEntry(
    "dead-units",
    "ACT001",
    "ReLU-like layers in which most units output zero for every sample, over a sustained window.",
    {"What it detects": "ReLU-like layers that are silent.", "How to fix": PAGE},
)


def run(name: str, state: str, *, script: str = "train.py", loss: float | None = 0.5) -> RunInfo:
    return RunInfo(name, Path(name), state, NOW - 7200, script, 12_000, loss, 65.0)


RUNS = [
    run("20270115-080000-train-a1b2", "running"),
    run("20270115-070000-gan-c3d4", "failed", script="experiments/long/path/to/gan.py", loss=float("nan")),
    RunInfo("junk", Path("junk"), "empty", None, "", None, None, None),
]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_runs_at_width(width: int) -> None:
    paper = Paper()
    render_runs(RUNS, stream=paper, width=width, now=NOW)
    assert max(map(len, paper.getvalue().splitlines())) <= width
    assert_golden(f"runs_at_{width}", paper.getvalue())


def test_hostile_script_name_in_the_table_is_shown_not_obeyed() -> None:
    paper = Paper()
    render_runs([run("a", "finished", script="x\x1b[2J\n.py")], stream=paper, width=100, now=NOW)
    assert "\x1b" not in paper.getvalue()
    assert len(paper.getvalue().splitlines()) == 2


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (59, "59 s"), (60, "1 min"), (7300, "2 h"), (200_000, "2 d"), (-5, "0 s")],
)
def test_spans_are_said_in_their_largest_unit(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_page_of_a_check() -> None:
    paper = Paper()
    render_check(CHECK, stream=paper, width=60)
    assert_golden("page_of_a_check", paper.getvalue())


def test_list_of_checks_is_a_line_each() -> None:
    paper = Paper()
    render_checks([CHECK, CHECK], stream=paper, width=60)
    assert len(paper.getvalue().splitlines()) == 2
    assert max(map(len, paper.getvalue().splitlines())) <= 60


def test_markdown_of_a_page_is_taken_apart() -> None:
    assert list(pieces(PAGE)) == [
        TextPiece("Most units of a layer stay at zero."),
        TextPiece("A second paragraph."),
        TextPiece("lower the learning rate, or warm it up", bullet=True),
        TextPiece("try LeakyReLU", bullet=True),
        TextPiece("nn.LeakyReLU()", code=True),
    ]
