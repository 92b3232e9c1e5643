"""Recording runs, serving them and looking at them, as a user does: in processes of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
SOURCE = Path(__file__).resolve().parents[2] / "src"
STATE = Path(__file__).resolve().parents[2] / "ui" / "src" / "state.ts"
TABS = re.findall(r'"(\w+)"', STATE.read_text(encoding="utf-8").partition("TABS = [")[2].partition("]")[0])
PATIENCE = 120  # seconds; a hang must fail, and a busy machine must not
CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def clew(*arguments: str | Path, **settings: str) -> subprocess.Popen[str]:
    """Start `clew arguments…` with none of the caller's Clew settings, on one core."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("CLEW")}
    env |= {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **settings}
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "clew", *map(str, arguments)]
    return subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=env, cwd=PROGRAMS)


def record(folder: Path, program: str, *arguments: str, options: Sequence[str | Path] = ()) -> Path:
    """Train a program under Clew; its run folder."""
    before = set(folder.glob("*/run.json"))
    process = clew("run", "--dir", folder, *options, program, *arguments)
    said, _ = process.communicate(timeout=PATIENCE)
    made = set(folder.glob("*/run.json")) - before
    assert process.returncode == 0, said
    assert len(made) == 1, said
    return made.pop().parent


@contextmanager
def served(folder: Path, cache: Path, *options: str) -> Iterator[str]:
    """The address, with its token, of `clew ui` on a folder."""
    process = clew("ui", folder, "--port", "0", "--no-open", *options, XDG_CACHE_HOME=str(cache))
    try:
        yield _address(process)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if found := re.fullmatch(r"(https?://\S+token=\S+)", line.strip()):
            return found[1]
    raise AssertionError(f"clew ui printed no address: {''.join(said)}")


def base_of(address: str) -> str:
    """The address without its token."""
    return address.partition("?")[0]
