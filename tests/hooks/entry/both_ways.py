"""One command line, under plain `python` and under the launcher."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "src"
DRIVER = Path(__file__).parent / "drive.py"


@dataclass(frozen=True)
class Result:
    stdout: str
    stderr: str
    code: int


def _run(command: list[str], folder: Path, stdin: str, flags: tuple[str, ...]) -> Result:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, *flags, *command],
        cwd=folder,
        input=stdin,
        capture_output=True,
        env=environment,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return Result(done.stdout, done.stderr, done.returncode)


def both_ways(
    folder: Path, *command: str, stdin: str = "", flags: tuple[str, ...] = ()
) -> tuple[Result, Result]:
    """Run the same command line under `python` and under the launcher."""
    plain = _run(list(command), folder, stdin, flags)
    launched = _run([str(DRIVER), *command], folder, stdin, flags)
    return plain, launched
