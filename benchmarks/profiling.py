"""What `clew profile` costs and how true it is: `python -m benchmarks.profiling`.

Three questions, one table each: how much slower is a run outside the windows, compared with profilers
that run all the time; do the module times agree with hand-made measurements of the same steps; how much
does a long run write to disk.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import pairs, profile_contenders
from benchmarks.agreement import measure_agreement
from benchmarks.overhead import aligned, machine
from benchmarks.workloads import WORKLOADS

SLOWDOWN = 1.10  # of a run outside the windows, at most
APART = 0.10  # from torch's own times, at most
LARGEST = 50 * 10**6  # bytes of a long run's profile, at most
MEGABYTE = 10**6


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    result: dict[str, Any] = {**machine(), "steps": {}, "agreement": {}, "size": {}}
    for name in options.workload or WORKLOADS:
        if "slowdown" in options.only:
            result["steps"][name] = measure_slowdown(name, options)
        if "agreement" in options.only:
            work = WORKLOADS[name]()
            found = measure_agreement(work, options.window, options.windows)
            result["agreement"][name] = found.to_json()
        if "size" in options.only:
            result["size"][name] = measure_size(name, options.long)
    print(json.dumps(result, indent=2) if options.json else table(result))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profiling", description=__doc__)
    parser.add_argument("--workload", action="append", choices=list(WORKLOADS), help="default: all")
    parser.add_argument("--pairs", type=int, help="pairs per column (default 15; 60 for short steps)")
    questions = ("slowdown", "agreement", "size")
    parser.add_argument("--only", action="append", choices=questions, help="one of the questions")
    parser.add_argument("--long", type=int, default=1000, help="steps of a long run (default 1000)")
    parser.add_argument("--quick", action="store_true", help="takes seconds; the numbers mean little")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args(arguments)
    options.only = options.only or list(questions)
    options.window, options.windows = (4, 1) if options.quick else (8, 7)
    if options.quick:
        options.pairs, options.long = 2, 60
    return options


# ---- slowdown ------------------------------------------------------------------------------


def measure_slowdown(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One workload under every profiler, in pairs within one process (see pairs.py)."""
    work = WORKLOADS[name]()
    steps, seconds = pairs.steps_per_half(work.step)
    steps = 2 if options.quick else steps
    row: dict[str, Any] = {"step_ms": seconds * 1000}
    for title, contender in profile_contenders.COLUMNS.items():
        with contender(work) as watched:
            found = pairs.compare(
                watched.step,
                watched.on,
                watched.off,
                pairs=pairs.how_many(seconds, options.pairs),
                steps=steps,
                stretch=0.1 if options.quick else pairs.STRETCH,
            )
        row[title] = asdict(found)
        print(f"{name}, {title}: {found}", file=sys.stderr, flush=True)
    return row


# ---- size ----------------------------------------------------------------------------------


def measure_size(name: str, steps: int) -> dict[str, Any]:
    """Bytes of a run with its profile, and of the profile alone."""
    work = WORKLOADS[name]()
    with tempfile.TemporaryDirectory() as folder:
        with profile_contenders.profiled(work, Path(folder)) as session:
            for _ in range(steps):
                work.step()
        files = [file for file in session.path.rglob("*") if file.is_file()]
        traces = [file for file in files if "traces" in file.parts]
        return {
            "steps": steps,
            "run": sum(file.stat().st_size for file in files),
            "profile": sum(file.stat().st_size for file in traces),
        }


# ---- the tables ----------------------------------------------------------------------------


def table(result: dict[str, Any]) -> str:
    """Markdown, aligned."""
    about = f"{result['date']}, {result['cpu']}, torch {result['torch']}, Python {result['python']}."
    parts = [about]
    if result["steps"]:
        parts += ["", f"Time of a step with ÷ without, outside the windows (target: {SLOWDOWN:.2f}).", ""]
        parts += aligned(_slowdown_rows(result["steps"]))
    if result["agreement"]:
        parts += ["", f"Module times: how far from hand-made measurements (target: {APART:.0%}).", ""]
        parts += aligned(_agreement_rows(result["agreement"]))
    if result["size"]:
        parts += ["", f"Size on disk (target: {LARGEST // MEGABYTE} MB).", ""]
        parts += aligned(_size_rows(result["size"]))
    return "\n".join(parts)


def _slowdown_rows(steps: dict[str, Any]) -> list[list[str]]:
    titles = list(profile_contenders.COLUMNS)
    rows = [["workload, step", "time", *titles]]
    for name, row in steps.items():
        for clock, label in (("cpu", f"{name}, {row['step_ms']:.1f} ms"), ("wall", "")):
            rows.append([label, clock, *(str(pairs.Ratio(**row[title][clock])) for title in titles)])
    return rows


def _agreement_rows(found: dict[str, Any]) -> list[list[str]]:
    rows = [["workload", "phase", "modules", "median", "worst", "at", "parts sum to", "left over"]]
    for name, one in found.items():
        for phase in ("forward", "backward"):
            seen = one[phase]
            numbers = [f"{seen['median']:.1%}", f"{seen['worst']:+.1%}", seen["where"] or "the whole"]
            if not seen["modules"]:
                numbers = ["–", "–", "all below 0.1 ms"]
            head, sums = (name, [f"{one['parts']:.1%}", f"{one['left']:.1%}"])
            if phase == "backward":
                head, sums = "", ["", ""]
            rows.append([head, phase, str(seen["modules"]), *numbers, *sums])
    return rows


def _size_rows(sizes: dict[str, Any]) -> list[list[str]]:
    rows = [["workload", "steps", "whole run", "of it the profile"]]
    for name, one in sizes.items():
        megabytes = [f"{one[what] / MEGABYTE:.1f} MB" for what in ("run", "profile")]
        rows.append([name, f"{one['steps']:,}", *megabytes])
    return rows


if __name__ == "__main__":
    main()
