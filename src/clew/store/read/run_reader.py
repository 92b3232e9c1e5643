"""Run reader: reads a run folder, while it is written or later.

Start with `open_run(path)`. A reader never executes anything from the run, never raises because of what is in
the log, and lists in `damage` what it could not read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from clew.records.version import FORMAT_VERSION
from clew.store.read.run_data import RunData
from clew.store.read.run_errors import EmptyRun, NewerFormat, NotARun
from clew.store.read.run_metadata import RunMeta
from clew.store.read.segment_tail import RankTail, last_end, rank_folders, segment_files, step_in
from clew.store.write.frames import number
from clew.store.write.process_identity import is_alive

Reader = TypeVar("Reader", bound="RunReader")

META_BYTES = 16 << 20  # a run.json larger than this is not one of ours


def open_run(path: str | Path) -> RunReader:
    """Open the run in that folder, as far as it can be read; raises `RunError` with one clear line."""
    return not_empty(RunReader(path))


def not_empty(run: Reader) -> Reader:
    """Return the run, unless nothing was recorded in it: then raise."""
    if run.state == "empty":
        raise EmptyRun(
            f"{run.path} is empty: the program ended before anything was recorded; "
            "run it again with `clew run`"
        )
    return run


class RunReader:
    """A run folder and what has been read of it; `refresh()` reads what is new."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        check_is_run(self.path)
        self.ranks: dict[int, RunData] = {}
        self._tails: dict[int, RankTail] = {}
        self._nothing = RunData()
        self.refresh()

    def refresh(self) -> None:
        """Read what was written since; only new bytes are read."""
        self.meta, self._meta_damage = read_meta(self.path)
        self._read()
        self.state = self._derive_state()
        if self.state in ("killed", "empty"):
            self._read()  # it may have written its end between our read and our check
            self.state = self._derive_state()
        self.damage = [*self._meta_damage, *(line for rank in self._tails for line in self.rank_damage(rank))]

    @property
    def data(self) -> RunData:
        """The content of the lowest rank."""
        return self.ranks[min(self.ranks)] if self.ranks else self._nothing

    def _read(self) -> None:
        for rank, folder in rank_folders(self.path).items():
            if rank not in self._tails:
                self.ranks[rank] = RunData()
                self._tails[rank] = RankTail(folder, self.ranks[rank].feed)
            self._tails[rank].refresh()

    def _derive_state(self) -> str:
        states = {self.rank_state(rank) for rank in self._tails}
        if not states:
            states = {"running" if is_alive(self.meta.recorded, None) else "empty"}
        return combined_state(states)

    def rank_state(self, rank: int) -> str:
        """The state of one rank alone."""
        data, tail = self.ranks[rank], self._tails[rank]
        end = self._end(rank)
        if end is not None:
            return end_state(end)
        if is_alive(data.begin or self.meta.recorded, tail.heartbeat()):
            return "running"
        return "empty" if data.is_empty and not tail.gaps(finished=True) else "killed"

    def last_heard(self, rank: int) -> float | None:
        """When the rank ended or last touched its log, in seconds since the epoch."""
        wall = number((self._end(rank) or {}).get("wall"))
        return self._tails[rank].heartbeat() if wall is None else wall

    def _end(self, rank: int) -> dict[str, Any] | None:
        """How the rank ended, if it did; also behind damage, which stops the reading but not the run."""
        data, tail = self.ranks[rank], self._tails[rank]
        if data.end is not None or not tail.gaps(finished=True):
            return data.end
        try:
            return last_end(segment_files(tail.folder))
        except OSError:
            return None

    def rank_damage(self, rank: int) -> list[str]:
        """What of the rank's log could not be read or was never recorded, one line each."""
        data, tail, end = self.ranks[rank], self._tails[rank], self._end(rank)
        lines = [str(gap) for gap in tail.gaps(finished=self.state != "running")]
        if lines and end is not None and step_in(end) > data.last_step:
            lines[-1] += f"; of {step_in(end) + 1} steps, {data.last_step + 1} could be"
        if data.damaged:
            lines.append(f"{tail.folder.name}: {data.damaged} invalid records were skipped")
        if end and end.get("lost"):
            lines.append(f"{tail.folder.name}: not everything was recorded: {end['lost']}")
        return lines


def check_is_run(path: Path) -> None:
    """Raise if this is not a run folder, or one of a newer Clew."""
    if not path.is_dir():
        raise NotARun(f"{path}: no such run folder; `clew runs` lists the existing runs")
    if not is_run(path):
        raise NotARun(f"{path} is not a run folder (it has no run.json); `clew runs` lists the existing runs")
    if newer := newer_format(path, read_meta(path)[0]):
        raise NewerFormat(newer)


def newer_format(path: Path, meta: RunMeta) -> str | None:
    """What to do about a run whose format this Clew does not know; None if it does."""
    version = meta.format_version
    if not isinstance(version, int) or version <= FORMAT_VERSION:
        return None
    return (
        f"{path} was recorded by a newer Clew (format {version}; this one reads up to {FORMAT_VERSION}): "
        "upgrade with `pip install -U clew`"
    )


def is_run(path: Path) -> bool:
    """Whether Clew created this folder: it has our run.json, or at least a segment of a log."""
    if isinstance(read_meta(path)[0].format_version, int):
        return True
    return any(segment_files(folder) for folder in rank_folders(path).values())


def read_meta(path: Path) -> tuple[RunMeta, list[str]]:
    """The content of run.json, and what is wrong with it; a broken one is empty."""
    file = path / "run.json"
    try:
        if not file.is_file() or file.stat().st_size > META_BYTES:
            return RunMeta(), ["run.json is missing, too large, or not a plain file"]
        meta = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as e:
        return RunMeta(), [f"run.json can't be read ({type(e).__name__})"]
    if not isinstance(meta, dict):
        return RunMeta(), ["run.json does not contain an object"]
    return RunMeta.read(meta), []


def end_state(end: dict[str, Any]) -> str:
    """The state in the last record; anything but these two words counts as failed."""
    return "finished" if end.get("state") == "finished" else "failed"


def combined_state(ranks: set[str]) -> str:
    """One state for all ranks: still running if one is, otherwise the worst that happened."""
    # When a rank fails, its launcher kills the others: the failure is the cause.
    order = ("running", "failed", "killed", "finished", "empty")
    return next(state for state in order if state in ranks)
