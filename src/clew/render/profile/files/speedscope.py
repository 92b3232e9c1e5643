"""The flame graphs of a profile as a speedscope file: time, Python stacks, memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.records.step_costs import FlameFrame, Profile
from clew.render.number_text import own

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


@dataclass
class _Frames:
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
    """The whole file; a profile in it for each flame that there is."""
    frames = _Frames()
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


def _sampled(name: str, root: FlameFrame, unit: str, frames: _Frames) -> dict[str, Any]:
    """A stack for each frame that has something of its own, weighted with it."""
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
