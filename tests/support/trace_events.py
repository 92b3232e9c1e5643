"""A strict reader of the Chrome trace event format, as Perfetto's importer takes it."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

PHASES = set("BEXiIMCbnesftPNODR")
NEED_TIME = PHASES - {"M"}


def read_trace(path: Path) -> list[dict[str, Any]]:
    """All events; raises AssertionError where one is not as the format wants it."""
    raw = path.read_bytes()
    if path.name.endswith(".gz"):
        raw = gzip.decompress(raw)
    data = json.loads(raw, parse_constant=_refuse)
    events = data["traceEvents"] if isinstance(data, dict) else data
    assert isinstance(events, list)
    assert events
    for event in events:
        _check(event)
    return events


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


def _check(event: Any) -> None:
    assert isinstance(event, dict), event
    assert event.get("ph") in PHASES, event
    assert isinstance(event.get("name"), str), event
    for key in ("pid", "tid"):
        assert key not in event or isinstance(event[key], (int, str)), event
    assert isinstance(event.get("args", {}), dict), event
    if event["ph"] in NEED_TIME:
        assert _is_time(event.get("ts")), event
    if event["ph"] == "X":
        assert _is_time(event.get("dur")), event
        assert "pid" in event, event
        assert "tid" in event, event
    if event["ph"] in "stf":
        assert "id" in event, event
    if event["ph"] == "C":
        assert all(isinstance(v, (int, float)) for v in event["args"].values()), event


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value) and value >= 0


def crossing(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Pairs of events of one thread that overlap in part: Perfetto draws no such thing."""
    found = []
    threads: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    for rows in threads.values():
        around: list[dict[str, Any]] = []
        for event in sorted(rows, key=lambda e: (e["ts"], -e["dur"])):
            while around and _end(around[-1]) <= event["ts"] + 1e-6:
                around.pop()
            if around and _end(event) > _end(around[-1]) + 1e-6:
                found.append((around[-1]["name"], event["name"]))
            around.append(event)
    return found


def _end(event: dict[str, Any]) -> float:
    return float(event["ts"]) + float(event["dur"])
