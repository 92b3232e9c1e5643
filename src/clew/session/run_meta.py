"""Who, what, when: the metadata of a run before it starts."""

from __future__ import annotations

import getpass
import os
import platform
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clew.records.version import __version__
from clew.session.run_options import RunOptions
from clew.store.read.run_metadata import RunMeta
from clew.store.write.process_identity import start_time


def run_meta(options: RunOptions, rank: int) -> RunMeta:
    """The content of run.json, except what the store adds itself (format, process, host)."""
    return RunMeta(
        name=options.name,
        script=options.script,
        module=options.module,
        args=tuple(options.args),
        command=(os.path.basename(sys.executable), *sys.argv),
        cwd=os.getcwd(),
        user=_user(),
        versions={"clew": __version__, "python": platform.python_version(), "os": platform.platform()},
        world_size=_number("WORLD_SIZE") or 1,
        rank=rank,
    )


def rank_and_run_id(options: RunOptions) -> tuple[int, str | None]:
    """This process's rank, and the run that it shares with the other ranks.

    The ranks do not talk to each other for this: each derives the same name from what the launcher gave all
    of them. Across machines, set CLEW_RUN_ID.
    """
    rank = _number("RANK")
    given = os.environ.get("CLEW_RUN_ID")
    if given:
        return rank or 0, _safe(given)
    if rank is None or _number("WORLD_SIZE") in (None, 1):
        return 0, None
    shared = "|".join(
        os.environ.get(k, "")
        for k in ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")
    )
    began = _parent_start()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(began))
    word = _safe(options.name or Path(options.script).stem)
    return rank, f"{stamp}-{word}-{zlib.crc32(f'{shared}|{began}'.encode()) & 0xFFFF:04x}"


def _safe(text: str) -> str:
    """A name that a folder can have on any filesystem."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).lstrip(".-")[:100] or "run"


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None


def _parent_start() -> float:
    """When the launcher of this rank started: the same for all ranks of a machine."""
    ticks = start_time(os.getppid())
    if ticks is None:  # no /proc here
        return time.time() // 60 * 60  # ranks start within seconds of each other
    boot = next(ln for ln in Path("/proc/stat").read_text().splitlines() if ln.startswith("btime"))
    return float(boot.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None


def git_state() -> dict[str, Any] | None:
    """Commit, branch and whether there are changes; None outside a repository, or without git."""
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return None
    status = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "commit": commit,
        "branch": _git("rev-parse", "--abbrev-ref", "HEAD"),
        "dirty": None if status is None else bool(status),
    }


def _git(*args: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *args], capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def argv_config(args: Sequence[str]) -> dict[str, Any]:
    """`--lr 0.1 --epochs=3 --amp data/` as {"lr": 0.1, "epochs": 3, "amp": True, "args": ["data/"]}."""
    values: dict[str, Any] = {}
    plain: list[Any] = []
    pending: str | None = None
    for arg in args:
        if arg.startswith("--") and len(arg) > 2:
            name, has_value, value = arg[2:].partition("=")
            values[name] = _value(value) if has_value else True
            pending = None if has_value else name
        elif pending is not None:
            values[pending] = _value(arg)
            pending = None
        else:
            plain.append(_value(arg))
    return {**values, "args": plain} if plain else values


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
