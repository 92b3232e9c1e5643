"""How well Clew diagnoses: `python -m benchmarks.detection`.

Every planted fault (`faults/`, both variants) and every healthy program (`tests/programs/`) runs
under `clew run` in a process of its own. For a fault: was its cause named first, was it named at
all, was something else blamed, or was nothing reported; and after how many steps would it have been
named first. For a healthy program: which errors and warnings were raised; each of them is a bug.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from clew.checks.run_view import RunView
from clew.checks.runner import judge
from clew.records.site import Site
from clew.store.read.run_data import RunData
from clew.store.read.run_reader import open_run

ROOT = Path(__file__).parent.parent
FAULTS, PROGRAMS = ROOT / "faults", ROOT / "tests" / "programs"
LOOKS = (1, 2, 5, 10, 20, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)  # steps after which a run is judged
LONGEST = 300  # seconds that a program may take
PLAY = (
    "import importlib, sys, warnings; warnings.simplefilter('ignore'); sys.path.insert(0, sys.argv[1]); "
    "getattr(importlib.import_module(sys.argv[2]), sys.argv[3])()"
)


@dataclass(frozen=True)
class Outcome:
    """What was reported about one program."""

    program: str
    expected: str | None  # the check that must come first; None: there must be no finding
    said: tuple[str, ...]  # errors and warnings (or, if advice is expected, everything), in order
    steps: int | None = None  # after which the right cause came first
    broke: str = ""

    @property
    def mark(self) -> str:
        if self.broke:
            return "broke"
        if self.expected is None:
            return "false alarm" if self.said else "clean"
        if not self.said:
            return "missed"
        if self.said[0] == self.expected:
            return "first"
        return "somewhere" if self.expected in self.said else "wrong"


class Until:
    """A run as it was after its first steps."""

    def __init__(self, data: RunData, steps: int) -> None:
        self._data, self.last_step, self.end = data, min(data.last_step, steps - 1), None
        self.facts = [f for f in data.facts if f.step < steps]
        self.events = [e for e in data.events if e.step < steps]

    def signal_names(self) -> Sequence[str]:
        return list(self._data.signal_names())

    def series(self, name: str) -> Iterator[tuple[Site, npt.NDArray[Any], npt.NDArray[Any]]]:
        for site, steps, values in self._data.series(name):
            kept = steps <= self.last_step
            yield site, steps[kept], values[kept]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection", description=__doc__)
    parser.add_argument("--only", action="append", help="part of a program's name (may be repeated)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    jobs = [j for j in _jobs() if not options.only or any(part in " ".join(j) for part in options.only)]
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = []
        for outcome in pool.map(lambda job: play(*job), jobs):
            outcomes.append(outcome)
            print(line(outcome), file=sys.stderr, flush=True)
    print(json.dumps([{**asdict(o), "mark": o.mark} for o in outcomes]) if options.json else table(outcomes))
    return 0 if all(o.mark in ("first", "clean") for o in outcomes) else 1


def _jobs() -> Iterator[tuple[str, str]]:
    for path in sorted(FAULTS.glob("*.py")):
        yield path.stem, "buggy"
        yield path.stem, "healthy"
    for path in sorted(PROGRAMS.glob("*.py")):
        yield str(path.relative_to(ROOT)), ""


def play(name: str, variant: str) -> Outcome:
    """Run one program and compare its findings with what is expected."""
    expected, level = (
        expectation(FAULTS / f"{name}.py") if variant == "buggy" else (None, ("error", "warning"))
    )
    title = f"{name} {variant}".strip()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "play.py")
        script.write_text(PLAY)
        program = [str(script), str(FAULTS), name, variant] if variant else [str(ROOT / name)]
        verdict, runs = Path(folder, "verdict.json"), Path(folder, "runs")
        command = [sys.executable, "-m", "clew", "run", "--dir", str(runs), "--json", str(verdict), *program]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST
            )
        except subprocess.TimeoutExpired:
            return Outcome(title, expected, (), broke=f"took longer than {LONGEST} s")
        if not verdict.exists():
            return Outcome(title, expected, (), broke=done.stderr.strip().rpartition("\n")[2])
        told = said(json.loads(verdict.read_text())["findings"], level)
        steps = _steps_until(next(runs.iterdir()), expected, level) if expected in told[:1] else None
    return Outcome(title, expected, tuple(told), steps)


def expectation(path: Path) -> tuple[str, tuple[str, ...]]:
    """The check that must come first, and the severities that count."""
    name = path.stem
    spec = importlib.util.spec_from_file_location(f"expected_{path.parent.name}_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    advice = getattr(module, "SEVERITY", "") == "advice"
    levels = ("error", "warning", "advice") if advice else ("error", "warning")
    return str(getattr(module, "CHECK", name.replace("_", "-"))), levels


def said(findings: Sequence[dict[str, Any]], levels: Sequence[str]) -> list[str]:
    """The checks with findings of these severities."""
    return [f["check"] for f in findings if f["severity"] in levels]


def _steps_until(run: Path, expected: str | None, levels: Sequence[str]) -> int | None:
    """The number of steps after which the cause would have come first."""
    data = open_run(run).data
    for steps in LOOKS:
        found = [f.to_json() for f in judge(RunView(Until(data, steps))).findings]
        if said(found, levels)[:1] == [expected]:
            return steps
    return None


def line(outcome: Outcome) -> str:
    """One program: the mark, its name, and what was found or when."""
    told = "" if outcome.mark in ("first", "clean") else ", ".join(outcome.said) or "nothing"
    after = f"after {outcome.steps} steps" if outcome.steps else told
    return f"{outcome.mark:<12}{outcome.program:<52}{outcome.broke or after}"


def table(outcomes: Sequence[Outcome]) -> str:
    """The counts, and every program whose outcome is not as it should be."""
    faults = [o for o in outcomes if o.expected is not None]
    healthy = [o for o in outcomes if o.expected is None]
    marks = Counter(o.mark for o in faults)
    early = sum(1 for o in faults if o.steps is not None and o.steps <= 50)
    lines = [line(o) for o in outcomes if o.mark not in ("first", "clean")]
    share = marks["first"] / max(len(faults), 1)
    counted = ", ".join(f"{marks[m]} {m}" for m in ("first", "somewhere", "wrong", "missed", "broke"))
    alarms = sum(o.mark == "false alarm" for o in healthy)
    return "\n".join(
        [
            *lines,
            f"faults: {len(faults)}; {counted}; right cause first in {share:.0%}, {early} within 50 steps",
            f"healthy programs: {len(healthy)}; false alarms: {alarms}",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
