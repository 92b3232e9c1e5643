"""Counts and times every call in a window with cProfile, when the user asks for it (`--cprofile`).

It slows Python down several times, so it never runs where times are measured. Written as pstats: snakeviz
opens it.
"""

from __future__ import annotations

import cProfile
import marshal
import sys
from pathlib import Path
from typing import Any

from clew.hooks.entry.patches import INVISIBLE
from clew.labs.profiler.stack_sampler import who_profiles
from clew.records.version import PACKAGE


class CallProfile:
    """The calls of one or more stretches of steps on the training thread."""

    def __init__(self) -> None:
        self.note: str | None = None  # why nothing was profiled
        self._profile: Any = cProfile.Profile()
        self._running = False
        self._any = False

    def start(self) -> None:
        """Begin a stretch, unless something else profiles or traces this thread."""
        reason = who_profiles()
        if reason is not None:
            self.note = f"no calls were counted: {reason}"
            return
        try:
            self._profile.enable()
        except ValueError as error:  # another profiler, of a kind that can't be asked about
            self.note = f"no calls were counted: {error}"
            return
        self._running = self._any = True

    def stop(self) -> None:
        """End a stretch; another profiler that has replaced ours in the meantime stays."""
        if not self._running:
            return
        self._running = False
        if sys.version_info >= (3, 12) or sys.getprofile() is self._profile:
            self._profile.disable()
        else:
            self.note = "another profiler was started while calls were counted"

    def write(self, path: Path) -> bool:
        """Write `python.prof`; False if nothing was profiled."""
        self.stop()
        if not self._any:
            return False
        # Not `create_stats`: it would switch off any active profiler, including the program's own.
        self._profile.snapshot_stats()
        stats: dict[Any, Any] = self._profile.stats
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(marshal.dumps(without_clew(stats)))
        return True


def without_clew(stats: dict[Any, Any]) -> dict[Any, Any]:
    """The pstats table without Clew's functions, as functions and as callers."""
    return {
        key: (*row[:4], {caller: times for caller, times in row[4].items() if not _is_clew(caller)})
        for key, row in stats.items()
        if not _is_clew(key)
    }


def _is_clew(key: tuple[str, int, str]) -> bool:
    return key[0] == INVISIBLE or key[0].startswith(PACKAGE)
