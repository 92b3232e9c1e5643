"""Every planted fault is found where it is, and the same program without it is found healthy."""

from __future__ import annotations

import importlib
import json
import linecache
import sys
from pathlib import Path
from typing import Any

import fault_verdicts
import pytest
from fault_verdicts import FAULTS, SAMPLING
from program_process import run_warm

from clew.checks.catalog import CHECKS

NAMES = sorted(path.stem for path in FAULTS.glob("*.py"))


def played(name: str, root: Path) -> dict[str, Any]:
    """What `fault_verdicts` says, from a process of its own."""
    ended = run_warm([fault_verdicts.__file__, name, root])
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def alarms(run: dict[str, Any]) -> list[dict[str, Any]]:
    return [f for f in run["verdict"]["findings"] if f["severity"] != "advice"]


def hints(run: dict[str, Any]) -> list[dict[str, Any]]:
    return [f for f in run["verdict"]["findings"] if f["severity"] == "advice"]


def points_at(finding: dict[str, Any], expect: dict[str, str]) -> bool:
    """Whether the finding's site is the expected module, operation and source line."""
    site = finding["site"]
    if any(key in expect and site[key] != expect[key] for key in ("op", "phase")):
        return False
    if expect.get("says", "") not in finding["message"]:
        return False
    wanted = expect.get("module")  # or one inside it, or the same in one of several models
    if wanted is not None and f".{wanted}." not in f".{site['module']}.":
        return False
    line = linecache.getline(site["file"] or "", site["line"] or 0)
    return expect.get("line_contains", "") in line


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_is_found_where_it_is_and_the_repaired_program_is_found_healthy(
    name: str, tmp_path: Path
) -> None:
    fault = played(name, tmp_path)
    for sampling in SAMPLING:
        buggy, healthy = fault["runs"][f"buggy {sampling}"], fault["runs"]["healthy default"]
        found = alarms(buggy)
        if fault["severity"] == "advice":  # a hint may stand beside others, but not beside an alarm
            assert found == [], sampling
            found = [f for f in hints(buggy) if f["check"] == fault["check"]]
            assert fault["check"] not in [f["check"] for f in hints(healthy)], sampling
        assert found, f"nothing was found ({sampling})"
        first = found[0]
        assert first["check"] == fault["check"], (sampling, first["message"])
        assert first["because"] == [], sampling
        assert points_at(first, fault["expect"]), (sampling, first["site"])
        assert [(f["check"], f["message"]) for f in alarms(healthy)] == [], sampling
        assert mean(healthy["losses"][-10:]) < 0.8 * mean(healthy["losses"][:10])
    for key, run in fault["runs"].items():
        assert run["live"] == run["read_back"] == run["verdict"], key


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_every_check_has_a_fault_that_it_must_find() -> None:
    from clew.labs.experiments.experiment_list import EXPERIMENTS  # takes seconds, and a play does without

    sys.path.insert(0, str(FAULTS))
    try:
        covered = {getattr(importlib.import_module(n), "CHECK", n.replace("_", "-")) for n in NAMES}
    finally:
        sys.path.remove(str(FAULTS))
    asked = {kind.name for kind in EXPERIMENTS}  # their faults are held to in test_preflight_faults.py
    # And those of checks that read a profile, or the data, in test_profile_faults.py and test_data_faults.py.
    asked |= {path.stem.replace("_", "-") for path in FAULTS.glob("*/*.py")}
    # These two only repeat what `--try` has measured: tests/checks/perf/test_speed_checks.py.
    asked |= {"memory-format-unfit", "eager-overhead"}
    assert covered | asked == {kind.name for kind in CHECKS}
