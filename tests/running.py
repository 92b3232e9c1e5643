"""Running programs in processes of their own, with and without Clew."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent
PROGRAMS = TESTS / "programs"
SOURCE = TESTS.parent / "src"
PATIENCE = 300  # seconds; a hang must fail, and a busy machine must not


@dataclass(frozen=True)
class Ended:
    """What a process left: its exit code and what it said."""

    code: int
    out: str
    err: str


def start(
    command: Sequence[str | Path], *, before: Callable[[], None] | None = None, **environment: str
) -> subprocess.Popen[str]:
    """Start `python command…` with Clew importable and none of the caller's Clew settings.

    `before` runs in the new process first.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("CLEW")}
    env["PYTHONPATH"] = str(SOURCE)
    env["OMP_WAIT_POLICY"] = "PASSIVE"  # two programs at once would spin for each other's cores
    env.update(environment)
    arguments = [sys.executable, *map(str, command)]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        arguments, stdout=pipe, stderr=pipe, text=True, env=env, cwd=PROGRAMS, preexec_fn=before
    )


def wait(process: subprocess.Popen[str]) -> Ended:
    """Wait for a process that `start` began."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return Ended(process.returncode, out, err)


def clew_run(folder: Path, *options: str | Path) -> list[str | Path]:
    """The command of a recorded run; the script and its arguments come after the options."""
    return ["-m", "clew", "run", "--dir", folder, *options]
