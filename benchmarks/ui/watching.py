"""Processes under observation: how much memory a server and its children use."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

EVERY = 0.02  # seconds between two looks


class Watched:
    """A process; its memory and that of its children, in bytes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.peak_alone = 0
        self.peak_together = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(EVERY):
            own = resident(self.process.pid)
            self.peak_alone = max(self.peak_alone, own)
            self.peak_together = max(self.peak_together, own + sum(map(resident, children(self.process.pid))))

    def now(self) -> int:
        return resident(self.process.pid)

    def end(self) -> None:
        self._stop.set()
        self._thread.join()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def watched(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> Iterator[Watched]:
    """Run a server; its output goes to a file."""
    with open(log, "w") as file:
        process = _start(command, file, environment)
        server = Watched(process)
        try:
            yield server
        finally:
            server.end()


def _start(command: Sequence[str], file: IO[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdout=file, stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment}
    )


def resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0  # it has ended
    return pages * os.sysconf("SC_PAGE_SIZE")


def children(pid: int) -> list[int]:
    """All descendants."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(name))
    found, todo = [], [pid]
    while todo:
        for child in parents.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


def line_in(log: Path, word: str, patience: float = 60.0) -> str:
    """The first line of a log that contains a word, once it has been written."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        for line in log.read_text(errors="replace").splitlines():
            if word in line:
                return line
        time.sleep(0.02)
    raise TimeoutError(f"{word!r} never appeared in {log}: {log.read_text()[-500:]}")
