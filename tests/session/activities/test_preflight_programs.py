"""`clew check` finds nothing wrong with ordinary, healthy programs, and asks them something at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from program_process import PROGRAMS, run_warm

SCRIPTS = PROGRAMS / "preflight"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py"))
FEWEST = {"gan": 0}  # passed; of two losses in turn hardly any question makes sense


@pytest.mark.parametrize("name", NAMES)
def test_a_healthy_program_passes_its_pre_flight(name: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    # A busy machine must not leave questions open.
    options = ["--quiet", "--dir", tmp_path / "runs", "--json", report, "--time-limit", "240"]
    ended = run_warm(["-m", "clew", "check", *options, SCRIPTS / f"{name}.py"])
    assert report.exists(), ended.err
    found = json.loads(report.read_text())
    assert [(f["check"], f["message"]) for f in found["findings"] if f["severity"] != "advice"] == []
    assert found["preflight"]["failed"] == []
    passed, asked = found["preflight"]["passed"], found["preflight"]["experiments"]
    assert len(passed) >= FEWEST.get(name, len(asked) // 3), found["preflight"]["unjudged"]
    assert all(row["reason"] for row in asked if row["state"] == "unjudged")
    assert [row["reason"] for row in asked if "failed" in row["reason"]] == []
    assert found["run"]["incidents"] == []
    assert (ended.code, ended.out, ended.err) == (0, "", "")
