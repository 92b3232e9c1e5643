"""Exports a profile to files that other tools open: a table, traces, stacks, and a page."""

from __future__ import annotations

import csv
import gzip
import json
import marshal
import math
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from clew.records.step_costs import FlameFrame, Profile
from clew.render.html_bundle import BundleNotBuilt
from clew.render.profile.flame_graph import own, write_html
from clew.render.profile.recorded_profile import trace_file
from clew.store.read.run_errors import RunError


class CannotExport(RunError):  # noqa: N818 - says what the matter is
    """The folder can't be written, or a format is unknown."""


def export(profile: Profile, run_folder: Path, out: Path, formats: Iterable[str] = ()) -> list[Path]:
    """Write these formats (`DEFAULT_FORMATS` if none is named) to a folder; returns the files written.

    Formats that a profile has no data for (no Python stacks, no trace) are left out. Raises `CannotExport`.
    """
    wanted = tuple(formats) or DEFAULT_FORMATS
    unknown = [name for name in wanted if name not in WRITERS]
    if unknown:
        raise CannotExport(f"no such format: {unknown[0]!r}; available: {', '.join(FORMATS)}")
    written: list[Path] = []
    failed = ""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in dict.fromkeys(wanted):
            file_name, write = WRITERS[name]
            try:
                written += [out / file_name] if write(profile, run_folder, out / file_name) else []
            except BundleNotBuilt as error:  # the other files need no page
                failed = f"{file_name} was not written: {error}"
    except OSError as error:
        raise CannotExport(f"can't write to {out}: {error.strerror or error}") from error
    if failed:
        raise CannotExport(f"{failed}; the other files are in {out}" if written else failed)
    return written


# ---- a table of ops --------------------------------------------------------------------------

HEADER = ("parameter scope", "function name", "input shapes", "arguments", "forward", "backward", "runs")
_OBEYED = ("=", "+", "@", "\t", "\r")  # a spreadsheet treats a cell that begins like this as a formula


def write_csv(profile: Profile, path: Path) -> bool:
    """Times are mean seconds of one run; `runs` is how often it ran in the profiled steps."""
    rows = list(_op_rows(profile)) or list(_module_rows(profile))
    if not rows:
        return False
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(rows)
    return True


def _op_rows(profile: Profile) -> Iterator[list[str]]:
    for op in profile.ops:
        words = (op.module, op.op, op.shapes, op.arguments)
        yield _csv_row(words, op.forward, op.backward, op.calls, profile.detailed)


def _module_rows(profile: Profile) -> Iterator[list[str]]:
    """If no ops were recorded: the modules' own times."""
    for module in profile.modules:
        words = (module.module, module.type, "", "")
        yield _csv_row(words, module.self_forward, module.self_backward, module.calls, profile.detailed)


def _csv_row(words: tuple[str, ...], forward: float, backward: float, calls: float, steps: int) -> list[str]:
    each = calls if calls > 0 else 1.0
    times = [f"{seconds / each:.9g}" for seconds in (forward, backward)]
    return [*map(_inert, words), *times, str(round(calls * max(steps, 1)))]


def _inert(text: str) -> str:
    """Text that no spreadsheet executes."""
    formula = text.startswith(_OBEYED) or (text.startswith("-") and not _is_number(text))
    return f"'{text}" if formula else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ---- traces for Perfetto, chrome://tracing and TensorBoard -----------------------------------

AT_ONCE = 1 << 20  # bytes
LARGEST_TRACE = 1 << 30  # bytes of an unpacked trace: a small file may unpack endlessly


def write_chrome_trace(profile: Profile, run: Path, path: Path) -> bool:
    """The profiler's own trace, compressed if the suffix says so; else the one step in the profile."""
    traced = trace_file(run, profile, "chrome trace")
    if traced is None and not profile.timeline:
        return False
    with _opened(path, "wb") as out:
        if traced is None:
            out.write(json.dumps(timeline_trace(profile), separators=(",", ":")).encode())
        else:
            _copy_trace(traced, out)
    return True


def _copy_trace(source: Path, out: IO[bytes]) -> None:
    with _opened(source, "rb") as file:
        copied = 0
        while copied < LARGEST_TRACE and (piece := file.read(AT_ONCE)):
            out.write(piece)
            copied += len(piece)


def _opened(path: Path, mode: str) -> IO[bytes]:
    packed = path.name.endswith(".gz")
    return cast("IO[bytes]", gzip.open(path, mode) if packed else path.open(mode))


def timeline_trace(profile: Profile) -> dict[str, Any]:
    """One step as complete events: one thread per lane."""
    lanes = list(dict.fromkeys(str(row.get("lane", "main")) for row in profile.timeline))
    named = [_metadata("thread_name", number, lane) for number, lane in enumerate(lanes)]
    return {
        "displayTimeUnit": "ms",
        "traceEvents": [_metadata("process_name", 0, "clew"), *named, *_timeline_events(profile, lanes)],
    }


def _metadata(kind: str, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": 0, "tid": thread, "args": {"name": name}}


def _timeline_events(profile: Profile, lanes: list[str]) -> Iterator[dict[str, Any]]:
    for row in profile.timeline:
        start, duration = _time(row.get("start")), _time(row.get("duration"))
        if start is None or duration is None:
            continue
        yield {
            "ph": "X",
            "name": str(row.get("name", "")),
            "cat": "step",
            "pid": 0,
            "tid": lanes.index(str(row.get("lane", "main"))),
            "ts": 1e6 * start,  # the format counts in microseconds
            "dur": 1e6 * duration,
            "args": {"module": str(row["module"])} if row.get("module") else {},
        }


def _time(value: Any) -> float | None:
    fits = isinstance(value, (int, float)) and math.isfinite(value) and value >= 0
    return float(value) if fits else None


# ---- Python stacks for pstats and snakeviz ---------------------------------------------------

Function = tuple[str, int, str]  # file, line, name: how pstats knows a function


@dataclass
class _CallCost:
    """Of a function, or of a function as called by another: the numbers that pstats keeps."""

    calls: int = 0
    outermost: int = 0  # calls that are not inside another call of the same function
    own: float = 0.0
    total: float = 0.0

    def add(self, frame: FlameFrame, *, inside_itself: bool, times: float) -> None:
        self.calls += 1
        self.own += own(frame) * times
        if not inside_itself:
            self.outermost += 1
            self.total += frame.value * times

    def row(self) -> tuple[int, int, float, float]:
        return self.outermost, self.calls, self.own, self.total


@dataclass
class _FunctionCost:
    cost: _CallCost = field(default_factory=_CallCost)
    callers: dict[Function, _CallCost] = field(default_factory=dict)


def write_pstats(profile: Profile, run: Path, path: Path) -> bool:
    """cProfile's own output if it ran; else the sampled stacks in the same form."""
    traced = trace_file(run, profile, "cprofile")
    if traced is not None:
        shutil.copyfile(traced, path)
        return True
    if profile.python is None:
        return False
    path.write_bytes(marshal.dumps(stats_of(profile.python, max(profile.detailed, 1))))
    return True


def stats_of(root: FlameFrame, steps: int = 1) -> dict[Function, tuple[object, ...]]:
    """The dictionary that `pstats.Stats` loads.

    A sampler sees no calls: their number is the number of places in the tree. Times cover all
    `steps`: pstats prints three digits of a second, too few for one step.
    """
    known: dict[Function, _FunctionCost] = {}
    waiting: list[tuple[FlameFrame, tuple[Function, ...]]] = [(root, ())]
    while waiting:
        frame, above = waiting.pop()
        name = (frame.file or "~", frame.line or 0, frame.name)
        entry = known.setdefault(name, _FunctionCost())
        inside_itself = name in above
        entry.cost.add(frame, inside_itself=inside_itself, times=steps)
        if above:
            by = entry.callers.setdefault(above[-1], _CallCost())
            by.add(frame, inside_itself=inside_itself, times=steps)
        waiting += [(child, (*above, name)) for child in frame.children]
    return {
        name: (*entry.cost.row(), {caller: cost.row() for caller, cost in entry.callers.items()})
        for name, entry in known.items()
    }


# ---- flame graphs for speedscope -------------------------------------------------------------

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


@dataclass
class _SharedFrames:
    """The frames that all profiles of the file share, each once."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    known: dict[tuple[str, str | None, int | None], int] = field(default_factory=dict)

    def index(self, frame: FlameFrame) -> int:
        key = (frame.name, frame.file, frame.line)
        if key not in self.known:
            self.known[key] = len(self.rows)
            place = {"file": frame.file, "line": frame.line}
            self.rows.append({"name": frame.name, **{k: v for k, v in place.items() if v is not None}})
        return self.known[key]


def write_speedscope(profile: Profile, path: Path) -> bool:
    data = speedscope(profile)
    if not data["profiles"]:
        return False
    path.write_text(json.dumps(data, separators=(",", ":")), encoding="utf-8")
    return True


def speedscope(profile: Profile) -> dict[str, Any]:
    """The whole file, with one profile per flame graph."""
    frames = _SharedFrames()
    flames = (
        ("time of a step", profile.flame, "seconds"),
        ("Python in a step", profile.python, "seconds"),
        ("memory at the peak", profile.memory.root, "bytes"),
    )
    profiles = [_sampled(name, root, unit, frames) for name, root, unit in flames if root is not None]
    return {
        "$schema": SCHEMA,
        "exporter": "clew",
        "name": "clew profile",
        "activeProfileIndex": 0,
        "shared": {"frames": frames.rows},
        "profiles": profiles,
    }


def _sampled(name: str, root: FlameFrame, unit: str, frames: _SharedFrames) -> dict[str, Any]:
    """A stack for each frame with time of its own, weighted by it."""
    samples: list[list[int]] = []
    weights: list[float] = []
    waiting: list[tuple[FlameFrame, list[int]]] = [(root, [])]
    while waiting:
        frame, above = waiting.pop()
        stack = [*above, frames.index(frame)]
        if own(frame) > 0:
            samples.append(stack)
            weights.append(own(frame))
        waiting += [(child, stack) for child in reversed(frame.children)]
    return {
        "type": "sampled",
        "name": name,
        "unit": unit,
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }


Writer = Callable[[Profile, Path, Path], bool]  # profile, run's folder, file; whether there was something

# By format: the file's name and its writer. TensorBoard's PyTorch plugin looks for *.pt.trace.json.gz.
WRITERS: dict[str, tuple[str, Writer]] = {
    "csv": ("profile.csv", lambda profile, run, file: write_csv(profile, file)),
    "chrome": ("profile.pt.trace.json.gz", write_chrome_trace),
    "chrome-plain": ("profile.pt.trace.json", write_chrome_trace),
    "pstats": ("profile.prof", write_pstats),
    "speedscope": ("profile.speedscope.json", lambda profile, run, file: write_speedscope(profile, file)),
    "html": ("profile.html", lambda profile, run, file: write_html(profile, file, run.name)),
}
FORMATS = tuple(WRITERS)
DEFAULT_FORMATS = ("csv", "chrome", "pstats", "speedscope", "html")  # if none is requested
