"""Running programs in processes of their own, with and without Clew."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
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
    arguments, env = [sys.executable, *map(str, command)], {**_surroundings(), **environment}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        arguments, stdout=pipe, stderr=pipe, text=True, env=env, cwd=PROGRAMS, preexec_fn=before
    )


def _surroundings() -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("CLEW")}
    env["PYTHONPATH"] = str(SOURCE)
    env["OMP_WAIT_POLICY"] = "PASSIVE"  # two programs at once would spin for each other's cores
    return env


def run_warm(command: Sequence[str | Path], **environment: str) -> Ended:
    """Run `python command…` on one thread in a fork of a process that has torch imported already."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        asked = {"command": [str(part) for part in command], "cwd": str(PROGRAMS), "environment": environment}
        code = _Warm.get().ask({**asked, "out": str(out), "err": str(err)})
        return Ended(code, *(f.read_text("utf-8", "replace") if f.exists() else "" for f in (out, err)))


class _Warm:
    """`warm_start.py`, once for this process."""

    @staticmethod
    @functools.cache
    def get() -> _Warm:
        return _Warm()

    def __init__(self) -> None:
        env = {**_surroundings(), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("warm_start.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
            start_new_session=True,  # so that it and its child can be ended together
        )

    def ask(self, asked: dict[str, object]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = threading.Timer(PATIENCE, lambda: os.killpg(self._process.pid, 9))
        late.start()
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        finally:
            late.cancel()
        if not answer:
            _Warm.get.cache_clear()
            raise AssertionError(f"{asked['command']} did not end within {PATIENCE} s")
        return int(answer)


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
