"""The trace of the profiled steps, in the format of Perfetto, chrome://tracing and TensorBoard."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from clew.records.step_costs import Profile
from clew.render.profile.recorded_profile import trace_file

AT_ONCE = 1 << 20  # bytes
MOST = 1 << 30  # bytes of an unpacked trace: a small file may claim to hold endless ones


def write_chrome_trace(profile: Profile, run: Path, path: Path) -> bool:
    """The profiler's own trace, packed if the name ends so; else the one step that the profile keeps."""
    traced = trace_file(run, profile, "chrome trace")
    if traced is None and not profile.timeline:
        return False
    with _opened(path, "wb") as out:
        if traced is None:
            out.write(json.dumps(timeline_trace(profile), separators=(",", ":")).encode())
        else:
            _copy(traced, out)
    return True


def _copy(source: Path, out: IO[bytes]) -> None:
    with _opened(source, "rb") as file:
        copied = 0
        while copied < MOST and (piece := file.read(AT_ONCE)):
            out.write(piece)
            copied += len(piece)


def _opened(path: Path, mode: str) -> IO[bytes]:
    packed = path.name.endswith(".gz")
    return cast("IO[bytes]", gzip.open(path, mode) if packed else path.open(mode))


def timeline_trace(profile: Profile) -> dict[str, Any]:
    """One step as complete events: a thread for each lane."""
    lanes = list(dict.fromkeys(str(row.get("lane", "main")) for row in profile.timeline))
    named = [_metadata("thread_name", number, lane) for number, lane in enumerate(lanes)]
    return {
        "displayTimeUnit": "ms",
        "traceEvents": [_metadata("process_name", 0, "clew"), *named, *_events(profile, lanes)],
    }


def _metadata(kind: str, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": 0, "tid": thread, "args": {"name": name}}


def _events(profile: Profile, lanes: list[str]) -> Iterator[dict[str, Any]]:
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
