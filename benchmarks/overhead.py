"""What Clew costs: `python -m benchmarks.overhead`.

Step time with Clew divided by step time without, in pairs within one process (see pairs.py);
memory and start-up in fresh processes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks import contenders, pairs
from benchmarks.workloads import WORKLOADS

MEBIBYTE = 1024 * 1024


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    if options.memory_child:
        name, watched = options.memory_child
        print(_peak_memory(name, watched == "with", options.memory_steps))
        return
    columns = {**contenders.COLUMNS, **(contenders.PEERS if options.peers else {})}
    if options.column:
        everything = {**contenders.COLUMNS, **contenders.PEERS}
        columns = {title: everything[title] for title in options.column}
    result: dict[str, Any] = {**machine(), "steps": {}, "memory": {}, "skipped": []}
    for name in options.workload or WORKLOADS:
        result["steps"][name] = measure_steps(name, columns, options, result["skipped"])
        if not options.steps_only:
            result["memory"][name] = measure_memory(name, options.memory_steps, options.memory_runs)
    if not options.steps_only:
        result["startup"] = measure_startup(options.startups)
    print(json.dumps(result, indent=2) if options.json else table(result))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--workload", action="append", choices=list(WORKLOADS), help="default: all")
    parser.add_argument("--pairs", type=int, help="pairs per column (default 40; 60 for short steps)")
    parser.add_argument("--peers", action="store_true", help="also the peers that are installed")
    titles = [*contenders.COLUMNS, *contenders.PEERS]
    parser.add_argument("--column", action="append", choices=titles, help="default: all but the peers")
    parser.add_argument("--steps-only", action="store_true", help="skip memory and start-up")
    parser.add_argument("--quick", action="store_true", help="takes seconds; the numbers mean little")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--memory-child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--memory-steps", type=int, default=60, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.quick:
        options.pairs, options.memory_steps = 2, 3
    options.startups = 3 if options.quick else 20
    options.memory_runs = 1 if options.quick else 5
    return options


def machine() -> dict[str, str]:
    """Where the numbers come from."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": f"{model}, {os.cpu_count()} cores",
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }


# ---- steps ---------------------------------------------------------------------------------


def measure_steps(
    name: str, columns: dict[str, Any], options: argparse.Namespace, skipped: list[str]
) -> dict[str, Any]:
    """One workload under every contender."""
    work = WORKLOADS[name]()
    steps, seconds = pairs.steps_per_half(work.step)
    if options.quick:
        steps = 2
    row: dict[str, Any] = {"step_ms": seconds * 1000, "steps_per_half": steps}
    for title, contender in columns.items():
        if title in contenders.PEERS and contenders.missing(title):
            if title not in skipped:
                skipped.append(title)
            continue
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


# ---- memory --------------------------------------------------------------------------------


def measure_memory(name: str, steps: int, runs: int) -> dict[str, float]:
    """Peak resident memory of a whole process, without and with Clew: medians, since it varies."""
    ways = ("without", "with")
    peaks = [{way: _child_peak(name, way, steps) for way in ways} for _ in range(runs)]
    return {way: statistics.median(peak[way] for peak in peaks) / MEBIBYTE for way in ways}


def _child_peak(name: str, way: str, steps: int) -> int:
    command = [sys.executable, "-m", "benchmarks.overhead", "--memory-child", name, way]
    command += ["--memory-steps", str(steps)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout)


def _peak_memory(name: str, watched: bool, steps: int) -> int:
    work = WORKLOADS[name]()
    with tempfile.TemporaryDirectory() as folder:
        if watched:
            from clew.api.attach import attach

            with attach(run_root=folder, quiet=True):
                for _ in range(steps):
                    work.step()
        else:
            for _ in range(steps):
                work.step()
    return peak_of_this_process()


def peak_of_this_process() -> int:
    """Bytes. Linux hands `ru_maxrss` down from the parent through exec; `VmHWM` begins anew."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


# ---- start-up ------------------------------------------------------------------------------


def measure_startup(runs: int) -> dict[str, float]:
    """Median seconds of an empty script, under plain Python and under `clew run`, interleaved."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "empty.py")
        script.write_text("")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        commands = {
            "without": [sys.executable, str(script)],
            "with": [sys.executable, "-m", "clew", "run", str(script)],
        }
        taken: dict[str, list[float]] = {way: [] for way in commands}
        for _ in range(runs):
            for way, command in commands.items():
                begin = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment)
                taken[way].append(time.perf_counter() - begin)
    return {way: statistics.median(values) for way, values in taken.items()}


# ---- the table -----------------------------------------------------------------------------


def table(result: dict[str, Any]) -> str:
    """Markdown, aligned, for the README."""
    titles = [
        t for t in (*contenders.COLUMNS, *contenders.PEERS) if any(t in r for r in result["steps"].values())
    ]
    lines = [["workload, step", "time", *titles]]
    for name, row in result["steps"].items():
        for clock, label in (("cpu", f"{name}, {row['step_ms']:.1f} ms"), ("wall", ""), ("whole", "")):
            cells = [_ratio(row[title][clock]) if title in row else "–" for title in titles]
            lines.append([label, clock, *cells])
    memory = [["peak memory", "without", "with clew", "more"]]
    for name, peak in result["memory"].items():
        more = peak["with"] - peak["without"]
        memory.append([name, f"{peak['without']:.0f} MiB", f"{peak['with']:.0f} MiB", f"{more:+.0f} MiB"])
    about = f"{result['date']}, {result['cpu']}, torch {result['torch']}, Python {result['python']}."
    ratios = "Time of a step with ÷ without: median of pairs (95% bootstrap interval)."
    ratios += " cpu and wall: a typical step; whole: all that was done for the steps, in CPU time."
    parts = [f"{about} {ratios}", "", *aligned(lines)]
    if result["memory"]:
        parts += ["", *aligned(memory)]
    if "startup" in result:
        startup = result["startup"]
        taken, added = startup["with"], startup["with"] - startup["without"]
        text = f"`clew run` of an empty script takes {taken:.2f} s, {added:+.2f} s compared with `python`."
        parts += ["", f"Start-up: {text}"]
    if result["skipped"]:
        parts.append(f"Not installed, so not measured: {', '.join(result['skipped'])}.")
    return "\n".join(parts)


def _ratio(ratio: dict[str, float]) -> str:
    return str(pairs.Ratio(**ratio))


def aligned(rows: list[list[str]]) -> list[str]:
    """A Markdown table whose source is readable too."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    text = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in rows]
    return [text[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *text[1:]]


if __name__ == "__main__":
    main()
