"""Reads the profile of a recorded run from its folder. The contents are not trusted."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from clew.records.step_costs import Profile
from clew.store.read.run_errors import RunError

LARGEST = 64 << 20  # bytes; a profile is far smaller


class NoProfile(RunError):  # noqa: N818 - says what the run lacks
    """The run was not profiled, or its profile can't be read."""


def read_profile(run: Path) -> Profile:
    """What `clew profile` left in the run's folder; raises `NoProfile`."""
    file = run / "traces" / "profile.json"
    name = run.name
    if not is_within(file, run):
        raise NoProfile(f"{name} has no profile; record one with: clew profile train.py")
    try:
        if file.stat().st_size > LARGEST:
            raise NoProfile(f"the profile of {name} is too large: {file}")
        data: Any = json.loads(file.read_bytes(), parse_constant=lambda word: None, parse_float=_finite)
        if not isinstance(data, dict):
            raise ValueError(f"a {type(data).__name__}")
        return Profile.from_json(data)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise NoProfile(f"the profile of {name} can't be read: {type(error).__name__} in {file}") from error


def _finite(digits: str) -> float | None:
    """A number that can be drawn; nothing for one that is beyond all bounds."""
    value = float(digits)
    return value if math.isfinite(value) else None


def trace_file(run: Path, profile: Profile, kind: str) -> Path | None:
    """The raw file of that kind in the run's traces, if it is there and no link leads out."""
    name = profile.files.get(kind, "")
    if not name or Path(name).name != name:
        return None
    file = run / "traces" / name
    return file if is_within(file, run) else None


def is_within(file: Path, run: Path) -> bool:
    """Whether it is an ordinary file of the run's folder."""
    try:
        real = os.path.realpath(file)
        return file.is_file() and Path(real).is_relative_to(os.path.realpath(run))
    except (OSError, ValueError):
        return False
