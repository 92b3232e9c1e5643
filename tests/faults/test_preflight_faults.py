"""Every experiment fails on the program planted for it, and passes on the same program repaired."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fault_pairs import check_of, planted
from program_process import TESTS, run_warm
from test_faults import points_at

from clew.labs.experiments.experiment_list import EXPERIMENTS
from clew.session.run_options import FAILED_ON

FAULTS = TESTS.parent / "faults" / "preflight"
PLAY = TESTS / "support" / "planted_fault_script.py"
NAMES = sorted(path.stem for path in FAULTS.glob("*.py"))


def fault(name: str) -> ModuleType:
    return planted(FAULTS, name)


def checked(name: str, variant: str, folder: Path) -> tuple[int, dict[str, Any]]:
    """The report of `clew check` on one half of a pair, from a process of its own.

    Only the question at stake: all questions of all programs are asked by `benchmarks.preflight`.
    """
    report = folder / f"{variant}.json"
    # A busy machine must not leave questions open.
    options = ["--quiet", "--dir", folder / "runs", "--json", report, "--time-limit", "240"]
    options += ["--only", check_of(fault(name))]
    ended = run_warm(["-m", "clew", "check", *options, PLAY, FAULTS, name, variant])
    assert report.exists(), ended.err
    return ended.code, json.loads(report.read_text())


def by_experiments(report: dict[str, Any], severity: str) -> list[dict[str, Any]]:
    """The findings of this weight that experiments made, the first to be read first."""
    names = {row["name"] for row in report["preflight"]["experiments"]}
    wanted = ("advice",) if severity == "advice" else ("error", "warning")
    return [f for f in report["findings"] if f["check"] in names and f["severity"] in wanted]


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_fails_on_its_fault_and_blames_the_right_place(name: str, tmp_path: Path) -> None:
    module = fault(name)
    severity = getattr(module, "SEVERITY", "fault")
    code, report = checked(name, "buggy", tmp_path)
    found = by_experiments(report, severity)
    if severity == "advice":
        assert by_experiments(report, "fault") == []
        found = [f for f in found if f["check"] == check_of(module)]
    assert found, report["preflight"]["experiments"]
    first = found[0]
    assert first["check"] == check_of(module), first["message"]
    assert first["because"] == []
    assert points_at(first, module.EXPECT), first["site"]
    others = {f["check"] for f in found[1:] if not f["because"]}
    assert others <= set(getattr(module, "ALSO", ())), others
    assert code == (0 if severity == "advice" else FAILED_ON)


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_passes_on_the_repaired_program(name: str, tmp_path: Path) -> None:
    module = fault(name)
    code, report = checked(name, "healthy", tmp_path)
    answers = {row["name"]: row for row in report["preflight"]["experiments"]}
    assert report["preflight"]["failed"] == []
    assert [f["message"] for f in report["findings"] if f["severity"] != "advice"] == []
    assert answers[check_of(module)]["state"] == "passed", answers[check_of(module)]
    assert check_of(module) not in [f["check"] for f in report["findings"]]
    assert code == 0


def test_every_experiment_has_a_fault_that_it_must_fail_on() -> None:
    covered = {check_of(fault(name)) for name in NAMES}
    assert {kind.name for kind in EXPERIMENTS} <= covered
