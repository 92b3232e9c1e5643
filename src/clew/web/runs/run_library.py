"""A folder of runs: lists them with their state, and opens them.

Only folders directly under the root are runs, and nothing outside the root is ever read: an id is
compared with existing names, and links that lead out are not followed.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.store.read.run_errors import RunError
from clew.store.read.run_info import RunInfo, peek
from clew.store.read.run_metadata import RunMeta
from clew.store.read.run_reader import check_is_run, is_run, read_meta
from clew.store.read.segment_tail import rank_folders, segment_files
from clew.web.runs.opened_run import OpenRun

OPEN_RUNS = 4  # kept open at once; each may cache tens of megabytes
RUNNING_SECONDS = 2.0  # seconds between two checks whether a running run still is


class NoSuchRun(RunError):  # noqa: N818 - says what there is
    """There is no run of this name."""


class RunGone(RunError):  # noqa: N818 - as above
    """The run existed, but its folder is gone."""


class Unreadable(RunError):  # noqa: N818 - as above
    """The run exists, but can't be read."""


Stamp = tuple[Any, ...]


@dataclass
class Glance:
    """What is known about a run without opening it, and how recent that is."""

    stamp: Stamp
    info: RunInfo | None
    meta: RunMeta
    error: str | None = None
    version: int = 1
    checked: float = field(default_factory=time.monotonic)


class Library:
    """All runs under a folder. Safe to use from several threads."""

    def __init__(self, root: Path, only: str | None = None) -> None:
        self.root = root
        self._only = only
        self._lock = threading.RLock()
        self._glances: dict[str, Glance] = {}
        self._gone: dict[str, int] = {}
        self._open: OrderedDict[str, OpenRun] = OrderedDict()

    def folder(self, name: str) -> Path:
        """The folder of the run with this name."""
        return self.root / name

    def close(self) -> None:
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()

    def scan(self) -> dict[str, Glance]:
        """Check every run again, thoroughly only those that changed; newest first."""
        with self._lock:
            names = self.names()
            for name in self._glances.keys() - set(names):
                self._gone[name] = self._glances.pop(name).version
                self._shut(name)
            for name in names:
                self._glance(name)
            order = sorted(self._glances, key=self._age, reverse=True)
            return {name: self._glances[name] for name in order}

    def glance(self, name: str) -> Glance:
        """The current state of one run; raises if there is none."""
        with self._lock:
            if not self._has(name):
                if name in self._glances or name in self._gone:
                    self._gone[name] = self._glances.pop(name, Glance((), None, RunMeta())).version
                    self._shut(name)
                    raise RunGone(f"the folder of run {name} no longer exists")
                raise NoSuchRun(f"no run {name} here")
            return self._glance(name)

    def path(self, name: str) -> Path:
        """The folder of a run that can be read."""
        self._readable(name)
        return self.folder(name)

    def _readable(self, name: str) -> Glance:
        glance = self.glance(name)
        if glance.error is not None:
            raise Unreadable(glance.error)
        return glance

    @contextmanager
    def open(self, name: str) -> Iterator[OpenRun]:
        """The run, open and up to date; others may be closed meanwhile, this one is not."""
        glance = self._readable(name)
        with self._lock:
            run = self._open.pop(name, None)
            run = OpenRun(self.folder(name)) if run is None else run
            self._open[name] = run
            run.users += 1
            for other in list(self._open)[:-OPEN_RUNS]:
                self._shut(other)
        try:
            run.refresh(glance.stamp)
            yield run
        finally:
            with self._lock:
                run.users -= 1
                if not run.users and self._open.get(name) is not run:
                    run.close()

    def names(self) -> list[str]:
        """All runs in the folder, without a closer look at them."""
        return [name for name in sorted(self._entries()) if _looks_like_a_run(self.root / name)]

    def _has(self, name: str) -> bool:
        """Compared with existing names: a path that leads elsewhere is not among them."""
        return name in self._entries() and _looks_like_a_run(self.root / name)

    def _entries(self) -> list[str]:
        try:
            return [name for name in os.listdir(self.root) if self._only in (None, name)]
        except OSError:
            return []

    def _glance(self, name: str) -> Glance:
        path = self.folder(name)
        stamp = stamp_of(path)
        old = self._glances.get(name)
        now = time.monotonic()
        if old is not None and old.stamp == stamp and not _may_have_ended(old, now):
            return old
        new = _inspect(path.parent, path, stamp)
        new.version = self._next_version(name, old, new)
        self._glances[name] = new
        return new

    def _next_version(self, name: str, old: Glance | None, new: Glance) -> int:
        if old is None:
            return self._gone.pop(name, 0) + 1
        same = old.stamp == new.stamp and old.error == new.error and _state(old) == _state(new)
        return old.version if same else old.version + 1

    def touch(self, name: str) -> None:
        """Something about the run changed that is not in its log: its verdict, its notes."""
        with self._lock:
            if name in self._glances:
                self._glances[name].version += 1

    def _shut(self, name: str) -> None:
        run = self._open.pop(name, None)
        if run is not None and not run.users:  # else its user closes it
            run.close()

    def _age(self, name: str) -> tuple[float, str]:
        info = self._glances[name].info
        return (info.started or 0.0) if info else 0.0, name


class Shelf(Library):
    """Chosen runs from anywhere; one that shares its name with another gets a number."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths: dict[str, Path] = {}
        for path in paths:
            same = sum(known.name == path.name for known in self._paths.values())
            self._paths[f"{path.name}-{same + 1}" if same else path.name] = path.absolute()
        super().__init__(next(iter(self._paths.values())).parent)

    def folder(self, name: str) -> Path:
        return self._paths[name]

    def names(self) -> list[str]:
        """In the order in which they were chosen."""
        return [name for name, path in self._paths.items() if _looks_like_a_run(path)]

    def _has(self, name: str) -> bool:
        return name in self.names()


def stamp_of(path: Path) -> Stamp:
    """The length of the log: equal stamps mean that nothing was written in between."""
    parts: list[Any] = [_stat(path / "run.json")]
    for folder in rank_folders(path).values():
        parts += [(segment.name, _stat(segment)) for segment in segment_files(folder)]
    return tuple(parts)


def log_bytes(glance: Glance) -> int:
    """The length of the log."""
    size: int = sum(part[1][0] for part in glance.stamp[1:] if part[1])
    return size


def _stat(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_size, about.st_mtime_ns


def _looks_like_a_run(path: Path) -> bool:
    """Including a broken one: its row says so."""
    return path.is_dir() and ((path / "run.json").exists() or bool(rank_folders(path)))


def _inspect(root: Path, path: Path, stamp: Stamp) -> Glance:
    try:
        parts = [path, path / "run.json", *(s for f in rank_folders(path).values() for s in segment_files(f))]
        if not all(inside(part, root) for part in parts):
            return Glance(stamp, None, RunMeta(), "a link to outside this folder; it is not followed")
        if not is_run(path):
            damage = read_meta(path)[1]
            return Glance(stamp, None, RunMeta(), f"no run can be read here: {'; '.join(damage) or 'empty'}")
        check_is_run(path)
        return Glance(stamp, peek(path), read_meta(path)[0])
    except (RunError, OSError, ValueError) as error:
        return Glance(stamp, None, RunMeta(), str(error) or type(error).__name__)


def inside(path: Path, root: Path) -> bool:
    """Whether a path, with links resolved, is in the folder."""
    return path.resolve().is_relative_to(root.resolve())


def _state(glance: Glance) -> str | None:
    return glance.info.state if glance.info else None


def _may_have_ended(glance: Glance, now: float) -> bool:
    return _state(glance) == "running" and now - glance.checked > RUNNING_SECONDS
