"""Every planted fault is found where it is, and the same program without it is found healthy.

Run as a script, this file is the program that plays one fault under Clew and prints the verdicts.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import linecache
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from running import TESTS, run_warm

import clew
from clew.checks.catalog import CHECKS
from clew.checks.run_view import RunView
from clew.checks.runner import judge
from clew.records.verdict import Verdict

FAULTS = TESTS.parent / "faults"
NAMES = sorted(path.stem for path in FAULTS.glob("*.py"))
SAMPLING = ("default", "every-step")
PLAYS = (*(("buggy", sampling) for sampling in SAMPLING), ("healthy", "default"))
# The budget is what makes sampling depend on the clock; without limit the default pattern is always the same.
NO_LIMIT = 1e6


def play(name: str, root: Path) -> dict[str, Any]:
    """Run a fault under both kinds of sampling, and the repaired program as users do."""
    module = importlib.import_module(name)
    check = getattr(module, "CHECK", name.replace("_", "-"))
    runs = {}
    for variant, sampling in PLAYS:
        every_step = sampling == "every-step"
        session = clew.attach(run_root=root, quiet=True, every_step=every_step, budget=NO_LIMIT)
        losses = []
        with contextlib.suppress(RuntimeError, IndexError, ValueError), session:  # some end in one
            losses = getattr(module, variant)()
        read_back = judge(RunView(clew.open_run(session.path).data))
        runs[f"{variant} {sampling}"] = {
            "losses": losses,
            "verdict": plain(session.verdict),
            "live": plain(session.judge.verdict()),
            "read_back": plain(read_back),
        }
    severity = getattr(module, "SEVERITY", "fault")
    return {"check": check, "expect": module.EXPECT, "severity": severity, "runs": runs}


def plain(verdict: Verdict) -> dict[str, Any]:
    return {
        "findings": [finding.to_json() for finding in verdict.findings],
        "not_judged": [item.to_json() for item in verdict.not_judged],
    }


def played(name: str, root: Path) -> dict[str, Any]:
    """What `play` says, from a process of its own."""
    ended = run_warm([__file__, name, root])
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
    # These two only repeat what `--try` has measured: tests/checks/test_speed.py.
    asked |= {"memory-format-unfit", "eager-overhead"}
    assert covered | asked == {kind.name for kind in CHECKS}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # torch itself warns of one of the faults
    sys.path.insert(0, str(FAULTS))
    print(json.dumps(play(sys.argv[1], Path(sys.argv[2]))))
