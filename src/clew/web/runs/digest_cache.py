"""The digest of a run, as it passes from the process that judges to the server and is cached on disk."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.records.codec import plain, read
from clew.render.verdict_json import replace_file
from clew.store.index.index_cache import UNUSED_DAYS
from clew.web.answer_shapes import FindingJson


@dataclass(frozen=True)
class RunDigest:
    """What the whole log of a run says about it."""

    state: str = "pending"  # ready, none (nothing to judge), failed, pending
    error: str | None = None
    verdict: Any = None  # VerdictJson, once there is one
    steps: int | None = None
    links: tuple[Mapping[str, Any], ...] = ()  # of each finding: its code, and the fix as a diff
    pages: Mapping[str, Any] = field(default_factory=dict)  # CheckPage by the name of its check
    hparams: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    peak: int = 0  # memory of the process that judged, in bytes

    @classmethod
    def failed(cls, reason: str) -> RunDigest:
        return cls("failed", reason, steps=0)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunDigest:
        return read(cls, data)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = plain(self)
        return data

    @property
    def findings(self) -> list[FindingJson]:
        return self.verdict["findings"] if self.verdict else []

    @property
    def damage(self) -> list[str]:
        """What could not be read of the log."""
        return self.verdict["run"]["damage"] if self.verdict else []

    @property
    def incidents(self) -> list[str]:
        """What failed inside Clew."""
        return self.verdict["run"]["incidents"] if self.verdict else []


def load(file: Path, stamp: str) -> RunDigest | None:
    """The cached digest, if it is of this state of the run."""
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    with contextlib.suppress(OSError):
        os.utime(file)  # in use
    fits = isinstance(stored, dict) and stored.get("stamp") == stamp and isinstance(stored.get("data"), dict)
    return RunDigest.from_json(stored["data"]) if fits else None


def save(file: Path, stamp: str, digest: RunDigest) -> None:
    with contextlib.suppress(OSError):  # a cache: without it the run is judged again
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, json.dumps({"stamp": stamp, "data": digest.to_json()}))


def remove_unused(folder: Path) -> None:
    """A verdict that was not requested for this long can be computed again."""
    with contextlib.suppress(OSError):
        for file in folder.glob("*.json"):
            if time.time() - file.stat().st_mtime > UNUSED_DAYS * 86400:
                file.unlink()
