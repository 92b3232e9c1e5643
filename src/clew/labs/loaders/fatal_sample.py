"""Which sample kills the process that reads it: tried in a child, as this one is still needed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Sequence

from clew.labs.loaders.pipeline import Pipeline

ALIVE = 0  # exit code of a child that has read everything


def fatal(pipeline: Pipeline, indices: Sequence[int], seconds: float) -> tuple[int, str] | None:
    """The index and what happened; None if all can be read, or nothing can be tried here."""
    if not hasattr(os, "fork"):
        return None
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _read(pipeline, indices, writing)
    os.close(writing)
    try:
        begun, status = _watched(child, reading, seconds)
    finally:
        os.close(reading)
    if status is None or not begun or (os.WIFEXITED(status) and os.WEXITSTATUS(status) == ALIVE):
        return None
    if os.WIFSIGNALED(status):
        return begun[-1], f"signal {signal.Signals(os.WTERMSIG(status)).name}"
    return begun[-1], f"exit code {os.WEXITSTATUS(status)}"


def _read(pipeline: Pipeline, indices: Sequence[int], writing: int) -> None:
    """In the child: say which sample is begun, then read it. Never returns."""
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(silence, stream)
        with pipeline.reading():
            for index in indices:
                os.write(writing, f"{index}\n".encode())
                with contextlib.suppress(Exception):
                    pipeline.sample(index)
    finally:
        os._exit(ALIVE)


def _watched(child: int, reading: int, seconds: float) -> tuple[list[int], int | None]:
    """Indices that were begun, and how it ended; None: it had to be ended by us."""
    said, until = b"", time.monotonic() + seconds
    while time.monotonic() < until:
        ready, _, _ = select.select([reading], [], [], 0.1)
        if ready:
            piece = os.read(reading, 65536)
            if not piece:
                _, status = os.waitpid(child, 0)
                return [int(line) for line in said.split()], status
            said += piece
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return [int(line) for line in said.split()], None
