"""How accurate the pre-flight is: `python -m benchmarks.preflight`.

Every program of `faults/preflight/` (both variants), every repaired program of `faults/` and the
ordinary ones of `tests/programs/preflight/` goes through `clew check` with its default time limit,
each in a process of its own. For a fault: was its check the first to fail? For a healthy program:
which findings were reported; each of them is a bug. And how long each took, and how many experiments
were left out for lack of time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.detection import FAULTS, PLAY, ROOT, Outcome, expectation, line, said, table

LONGEST = 400  # seconds that a program and its experiments may take
PREFLIGHT = FAULTS / "preflight"
PROGRAMS = ROOT / "tests" / "programs" / "preflight"


@dataclass(frozen=True)
class Job:
    """One program: half of a fault pair, or a script."""

    path: Path
    variant: str = ""

    @property
    def title(self) -> str:
        return f"{self.path.relative_to(ROOT)} {self.variant}".strip()


@dataclass(frozen=True)
class Checked:
    """What was found, in how many seconds, and which experiments there was no time for."""

    outcome: Outcome
    seconds: float = 0.0
    out_of_time: tuple[str, ...] = ()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.preflight", description=__doc__)
    parser.add_argument("--only", action="append", help="part of a program's name (may be repeated)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    jobs = [j for j in _jobs() if not options.only or any(part in j.title for part in options.only)]
    checked = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for found in pool.map(play, jobs):
            checked.append(found)
            late = f"  no time for {', '.join(found.out_of_time)}" if found.out_of_time else ""
            print(f"{line(found.outcome)}  {found.seconds:.0f} s{late}", file=sys.stderr, flush=True)
    print(table([c.outcome for c in checked]))
    slowest = max((c.seconds for c in checked), default=0.0)
    open_ones = sum(bool(c.out_of_time) for c in checked)
    print(f"slowest: {slowest:.0f} s; programs with experiments left out for lack of time: {open_ones}")
    return 0 if all(c.outcome.mark in ("first", "clean") for c in checked) else 1


def _jobs() -> Iterator[Job]:
    for path in sorted(PREFLIGHT.glob("*.py")):
        yield Job(path, "buggy")
        yield Job(path, "healthy")
    yield from (Job(path) for path in sorted(PROGRAMS.glob("*.py")))
    yield from (Job(path, "healthy") for path in sorted(FAULTS.glob("*.py")))


def play(job: Job) -> Checked:
    """Check one program and compare its findings with what is expected."""
    levels: tuple[str, ...] = ("error", "warning")
    expected, levels = expectation(job.path) if job.variant == "buggy" else (None, levels)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "play.py")
        script.write_text(PLAY)
        played = [str(script), str(job.path.parent), job.path.stem, job.variant]
        program = played if job.variant else [str(job.path)]
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "clew", "check", "--quiet", "--dir", str(Path(folder, "runs"))]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                [*command, "--json", str(report), *program],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=LONGEST,
            )
        except subprocess.TimeoutExpired:
            return Checked(Outcome(job.title, expected, (), broke=f"took longer than {LONGEST} s"))
        if not report.exists():
            last = done.stderr.strip().rpartition("\n")[2]
            return Checked(Outcome(job.title, expected, (), broke=last or f"exit code {done.returncode}"))
        return _read(json.loads(report.read_text()), job, expected, levels)


def _read(report: dict[str, Any], job: Job, expected: str | None, levels: Sequence[str]) -> Checked:
    asked = report["preflight"]["experiments"]
    late = [
        row["name"] for row in asked if "not finished after" in row["reason"] or "no time" in row["reason"]
    ]
    seconds = sum(row["seconds"] for row in asked)
    return Checked(
        Outcome(job.title, expected, tuple(said(report["findings"], levels))), seconds, tuple(late)
    )


if __name__ == "__main__":
    sys.exit(main())
