"""Plays one planted fault under Clew and prints the verdicts: `fault_verdicts.py NAME FOLDER`."""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from program_process import TESTS

import clew
from clew.checks.run_view import RunView
from clew.checks.runner import judge
from clew.records.verdict import Verdict

FAULTS = TESTS.parent / "faults"
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


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # torch itself warns of one of the faults
    sys.path.insert(0, str(FAULTS))
    print(json.dumps(play(sys.argv[1], Path(sys.argv[2]))))
