"""Run folders: create, list, find and remove them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.records.version import FORMAT_VERSION
from clew.store.read.run_errors import CannotCreate, NotARun, RunBusy
from clew.store.write.frames import number, plain
from clew.store.write.process_identity import identity

if TYPE_CHECKING:
    from clew.store.read.run_info import RunInfo

__all__ = ["create_run", "default_root", "find_run", "list_runs", "rank_folder", "remove_run"]

SAFE_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}")  # safe on every filesystem and in a URL
ATTEMPTS = 20  # tries to find a free name; one is enough unless clocks and randomness conspire


def default_root() -> Path:
    """Where runs are kept: `$CLEW_DIR`, or `.clew/runs` in the current folder."""
    return Path(os.environ.get("CLEW_DIR") or Path(".clew", "runs"))


def create_run(root: Path, meta: Mapping[str, Any], *, run_id: str | None = None, rank: int = 0) -> Path:
    """Create a run folder and its run.json; raises `CannotCreate`.

    `meta` says what is run (`script`, `command`, `versions`, `git`, `hparams`, …); who runs it and when is
    added here. All ranks of a job use the same `run_id`: only rank 0 writes run.json.
    """
    if run_id is not None and not SAFE_ID.fullmatch(run_id):
        raise CannotCreate(f"{run_id!r} can't name a run: use letters, digits, '.', '_' and '-'")
    try:
        root.mkdir(parents=True, exist_ok=True)
        _keep_out_of_git(root)
        path = _new_folder(root, meta) if run_id is None else root / run_id
        path.mkdir(exist_ok=True)
        if rank == 0 and not (path / "run.json").exists():
            _write_meta(path, meta)
    except OSError as e:
        raise CannotCreate(
            f"can't create a run in {root}: {e.strerror or e}; choose a folder with --dir"
        ) from e
    return path


def rank_folder(run: Path, rank: int) -> Path:
    """The folder of a rank's log."""
    return run / f"rank{rank:05d}"


def _new_folder(root: Path, meta: Mapping[str, Any]) -> Path:
    """A new folder: its name sorts by time and says what was run."""
    stem = Path(str(meta.get("name") or meta.get("script") or "run")).stem
    slug = re.sub(r"[^A-Za-z0-9_]+", "-", stem).strip("-")[:40] or "run"
    for _ in range(ATTEMPTS):
        path = root / f"{time.strftime('%Y%m%d-%H%M%S')}-{slug}-{os.urandom(2).hex()}"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise FileExistsError(0, "no free name for the run")


def _write_meta(path: Path, meta: Mapping[str, Any]) -> None:
    """Write to a temporary file and rename it: a reader sees all of it or nothing."""
    known = {"format_version": FORMAT_VERSION, "id": path.name, "started": time.time(), **identity()}
    text = json.dumps({**plain(meta), **known}, indent=2, allow_nan=False)
    aside = path / f".run.json.{os.getpid()}"
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path / "run.json")


def _keep_out_of_git(root: Path) -> None:
    """Add a .gitignore: runs don't belong in the user's repository or in its status."""
    home = root.absolute().parent
    ignore = home / ".gitignore"
    in_repository = any((folder / ".git").exists() for folder in home.parents)
    if home.name == ".clew" and in_repository and not ignore.exists():
        with contextlib.suppress(OSError):  # convenient, but not worth failing a run
            ignore.write_text("*\n")


def list_runs(root: Path) -> list[RunInfo]:
    """All runs in the folder, newest first; anything that is not a run is skipped."""
    from clew.store.read.run_info import peek

    found = [peek(path) for path in _run_folders(root)]
    return sorted(found, key=lambda run: (run.started or 0.0, run.id), reverse=True)


def find_run(root: Path, text: str | None = None) -> Path:
    """The newest run, or the one with this id, unique beginning of an id, or path."""
    runs = _run_folders(root)
    if text is None:
        if not runs:
            raise NotARun(f"no runs in {root}; record one with `clew run train.py`")
        return max(runs, key=_age)
    named = [run for run in runs if run.name == text] or [
        run for run in runs if text and run.name.startswith(text)
    ]
    if len(named) == 1:
        return named[0]
    if named:
        shown = ", ".join(sorted(run.name for run in named)[-3:])
        raise NotARun(f"{len(named)} runs begin with {text!r} (such as {shown}); give more of the name")
    return _by_path(root, text)


def _by_path(root: Path, text: str) -> Path:
    from clew.store.read.run_reader import is_run

    path = Path(text)
    path = path.parent if path.name == "run.json" else path
    if not text or not path.exists():
        raise NotARun(f"no run {text!r} in {root}; `clew runs` lists the existing runs")
    if not is_run(path):
        raise NotARun(f"{path} is not a run folder (it has no run.json); `clew runs` lists the existing runs")
    return path


def remove_run(path: Path, *, force: bool = False) -> None:
    """Delete a run folder; one that is still running only if forced."""
    from clew.store.read.run_info import peek
    from clew.store.read.run_reader import is_run

    if path.is_symlink() or not is_run(path):
        raise NotARun(f"{path} is not a run folder, so it is not removed")
    if not force and peek(path).state == "running":
        raise RunBusy(f"{path.name} is still running; stop it first, or use --force")
    try:
        shutil.rmtree(path)
    except OSError as e:
        raise RunBusy(f"{path} can't be removed: {e.strerror or e}") from e


def _run_folders(root: Path) -> list[Path]:
    from clew.store.read.run_reader import is_run

    try:
        names = sorted(os.listdir(root))
    except OSError:
        return []
    return [root / name for name in names if is_run(root / name)]


def _age(path: Path) -> tuple[float, str]:
    from clew.store.read.run_reader import read_meta

    return number(read_meta(path)[0].started) or 0.0, path.name
