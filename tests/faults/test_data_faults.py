"""`clew data` finds every fault planted in a program's data, and nothing in the repaired program."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fault_pairs import check_of, planted
from program_process import TESTS, run_warm
from test_faults import points_at

from clew.checks.catalog import CHECKS
from clew.checks.needs import fact_kinds, options, text_of
from clew.session.run_options import FAILED_ON

FAULTS = TESTS.parent / "faults" / "data"
PLAY = TESTS / "support" / "planted_fault_script.py"
NAMES = sorted(path.stem for path in FAULTS.glob("*.py"))


def fault(name: str) -> ModuleType:
    return planted(FAULTS, name)


def looked_through(name: str, variant: str, folder: Path) -> tuple[int, dict[str, Any]]:
    """The report of `clew data` on one half of a pair, from a process of its own."""
    report = folder / f"{variant}.json"
    # A busy machine must not leave samples unread.
    options = [
        "--quiet",
        "--dir",
        folder / "runs",
        "--json",
        report,
        "--time-limit",
        "240",
        "--fail-on",
        "warning",
    ]
    kind = next(c for c in CHECKS if c.name == check_of(fault(name)))
    if "data.survey" in fact_kinds(kind.needs):
        options.append("--no-measure")  # it is not read
    ended = run_warm(["-m", "clew", "data", *options, PLAY, FAULTS, name, variant])
    assert report.exists(), ended.err
    return ended.code, json.loads(report.read_text())


def weighty(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [f for f in report["findings"] if f["severity"] != "advice"]


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_of_the_data_is_found_where_it_is(name: str, tmp_path: Path) -> None:
    module = fault(name)
    hint = getattr(module, "SEVERITY", "fault") == "advice"
    code, report = looked_through(name, "buggy", tmp_path)
    found = weighty(report)
    if hint:
        assert found == []
        found = [f for f in report["findings"] if f["check"] == check_of(module)]
    assert found, report["findings"]
    assert found[0]["check"] == check_of(module), found[0]["message"]
    assert points_at(found[0], module.EXPECT), (found[0]["message"], found[0]["site"])
    others = {f["check"] for f in found[1:]} - {check_of(module)}
    assert others <= set(getattr(module, "ALSO", ())), others
    assert code == (0 if hint else FAILED_ON)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found_in_the_data_of_the_repaired_program(name: str, tmp_path: Path) -> None:
    code, report = looked_through(name, "healthy", tmp_path)
    assert [f["message"] for f in weighty(report)] == []
    assert check_of(fault(name)) not in [f["check"] for f in report["findings"]]
    assert report["surveys"][0]["looked"] > 0
    assert code == 0


def test_every_check_that_only_the_data_can_answer_has_a_fault() -> None:
    covered = {check_of(fault(name)) for name in NAMES}
    alone = {
        c.name
        for c in CHECKS
        if all(text_of(o).startswith("fact:data.") for need in c.needs for o in options(need))
    }
    assert alone <= covered
