"""`clew profile` names what each planted program wastes, and where; the repaired program wastes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fault_pairs import planted
from program_process import TESTS, run_warm
from test_faults import points_at

from clew.checks.catalog import CHECKS
from clew.checks.needs import fact_kinds

FAULTS = TESTS.parent / "faults" / "profile"
PLAY = TESTS / "support" / "planted_fault_script.py"
NAMES = sorted(path.stem for path in FAULTS.glob("*.py"))
TRIES = 3  # what others do on the machine can hide a waste for a moment, and never for long
# These say only what `--try` has measured: tests/checks/perf/test_speed_checks.py.
TRIED = {"memory-format-unfit", "eager-overhead"}


def fault(name: str) -> ModuleType:
    return planted(FAULTS, name)


def profiled(name: str, variant: str, folder: Path) -> dict[str, Any]:
    """The report of `clew profile` on one half of a pair, from a process of its own."""
    folder.mkdir(exist_ok=True)
    report = folder / f"{variant}.json"
    options = ["--quiet", "--dir", folder / "runs", "--json", report, *getattr(fault(name), "OPTIONS", ())]
    ended = run_warm(["-m", "clew", "profile", *options, PLAY, FAULTS, name, variant])
    assert ended.code == 0, ended.err
    return json.loads(report.read_text())


def named(report: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [f for f in report["findings"] if f["check"] == name.replace("_", "-")]


def told(report: dict[str, Any]) -> str:
    """What the report says instead, for whoever reads that a test failed."""
    profile = {key: value for key, value in report["profile"].items() if len(str(value)) < 200}
    parts = [(part["name"], part["median"], part["share"]) for part in report["profile"]["parts"]]
    messages = [f["message"] for f in report["findings"]]
    return f"findings: {messages}\nnot judged: {report['not_judged']}\n{profile}\n{parts}"


@pytest.mark.parametrize("name", NAMES)
def test_what_a_program_wastes_is_named_with_its_line_and_the_gain(name: str, tmp_path: Path) -> None:
    module = fault(name)
    for attempt in range(TRIES):
        report = profiled(name, "buggy", tmp_path / str(attempt))
        found = named(report, name)
        if found:
            break
    assert found, told(report)
    assert points_at(found[0], module.EXPECT), found[0]
    assert found[0]["fix"]
    if module.GAIN is not None:
        gain = found[0]["evidence"][0]
        assert "gain" in gain["text"]
        assert gain["values"][0] >= module.GAIN


@pytest.mark.parametrize("name", NAMES)
def test_the_repaired_program_is_not_said_to_waste_it(name: str, tmp_path: Path) -> None:
    assert named(profiled(name, "healthy", tmp_path), name) == []


def test_every_check_of_a_profile_has_a_program_that_wastes_what_it_names() -> None:
    asked = {kind.name for kind in CHECKS if "profile" in fact_kinds(kind.needs)}
    assert (asked | {"memory-growth"}) - TRIED == {name.replace("_", "-") for name in NAMES}
