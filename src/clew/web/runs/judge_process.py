"""Judges runs in a separate process, so that the server stays small, responsive, and survives a crash.

`python -m clew.web.runs.judge_process` reads a folder per line and answers with a digest per line. It is
started when there is something to judge and ended when there is not.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from clew.records.version import __version__
from clew.store.index.index_cache import cache_root
from clew.web.runs.digest_cache import RunDigest, load, remove_unused, save
from clew.web.runs.run_library import Glance, Library, log_bytes

IDLE_SECONDS = 3.0  # without work the process is ended, which returns its memory to the system
PATIENCE = 300.0  # seconds for one run; a hang must not stop the others for ever
LARGE = 150 << 20  # bytes that judging may leave allocated; above, the next run gets a fresh process
PAUSE = 2.0  # seconds between two verdicts of a growing run, at least
SHARE = 0.1  # share of one processor that a growing run may use


@dataclass
class Judgement:
    """The newest digest of a run."""

    stamp: str = ""
    digest: RunDigest = field(default_factory=RunDigest)
    version: int = 0
    due: float = 0.0  # when it may be judged again


class Judges:
    """The verdicts of a library's runs: requested, computed in turn, cached on disk."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._known: dict[str, Judgement] = {}
        self._queued: set[str] = set()
        self._hurried: set[str] = set()  # of these, those that a client waits for
        self._queue: queue.PriorityQueue[tuple[int, str]] = queue.PriorityQueue()
        self._lock = threading.Lock()
        self._news = threading.Condition(self._lock)
        self._worker = Worker()
        self._thread: threading.Thread | None = None
        self._stopping = False
        remove_unused(cache_root() / "digest")

    def close(self) -> None:
        self._stopping = True
        self._queue.put((-1, ""))
        self._worker.close()
        thread = self._thread
        if thread is not None:
            thread.join(PATIENCE)

    def get(self, name: str, glance: Glance, *, urgent: bool = False) -> Judgement:
        """What is known; if that is outdated, a new verdict is on its way."""
        stamp = judged_stamp(glance)
        with self._lock:
            judged = self._known.setdefault(name, Judgement())
            if judged.stamp == stamp:
                return judged
            if not judged.stamp and (stored := load(self._file(name), stamp)) is not None:
                judged.stamp, judged.digest, judged.version = stamp, stored, judged.version + 1
                return judged
            if name not in self._queued and time.monotonic() < judged.due:
                return judged
            if name not in self._queued or (urgent and name not in self._hurried):
                # Short logs first: a long one must not keep a hundred waiting.
                self._queue.put((0 if urgent else log_bytes(glance), name))
                self._queued.add(name)
                self._hurried |= {name} if urgent else set()
                self._start()
            return judged

    def wait(self, name: str, glance: Glance, seconds: float) -> Judgement:
        """Like `get`, but waits briefly for a first verdict: most runs are judged quickly."""
        judged = self.get(name, glance, urgent=True)
        with self._news:
            self._news.wait_for(lambda: bool(judged.stamp) or self._stopping, seconds)
        return judged

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="clew-judging", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while not self._stopping:
            try:
                _, name = self._queue.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                self._worker.stop()
                with self._lock:
                    if self._queue.empty():
                        self._thread = None
                        return
                continue
            if name in self._queued and not self._stopping:  # else it was moved up, and is done
                self._judge(name)
        self._worker.stop()

    def _judge(self, name: str) -> None:
        began = time.monotonic()
        stamp, found = "", RunDigest.failed("the run was removed")
        with contextlib.suppress(Exception):  # deleted or broken meanwhile: the list says so
            glance = self._library.glance(name)
            stamp = judged_stamp(glance)
            found = self._worker.ask(self._library.path(name))
        with self._news:
            judged = self._known.setdefault(name, Judgement())
            self._queued.discard(name)
            self._hurried.discard(name)
            judged.stamp, judged.digest, judged.version = stamp or "gone", found, judged.version + 1
            judged.due = time.monotonic() + max(PAUSE, (time.monotonic() - began) / SHARE)
            self._news.notify_all()
        self._library.touch(name)
        if found.state != "failed":
            save(self._file(name), stamp, found)

    def _file(self, name: str) -> Path:
        place = str(self._library.folder(name).resolve()).encode(errors="replace")
        return cache_root() / "digest" / f"{hashlib.sha256(place).hexdigest()[:32]}.json"


class Worker:
    """The process that judges; started on demand."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def ask(self, path: Path) -> RunDigest:
        """The digest of a run, whatever happens."""
        try:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            overdue = threading.Timer(PATIENCE, process.kill)
            overdue.start()
            try:
                process.stdin.write(json.dumps(str(path)) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            finally:
                overdue.cancel()
            answer = json.loads(line) if line else None
        except (OSError, ValueError) as error:
            self.stop()
            return RunDigest.failed(f"the checks failed: {error}")
        if not isinstance(answer, dict):
            self.stop()
            return RunDigest.failed("the checks ended without a result; `clew why` may say more")
        found = RunDigest.from_json(answer)
        if found.peak > LARGE:
            self.stop()
        return found

    def _running(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._closed:
                raise OSError("the server is shutting down")
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
                    start_new_session=True,  # Ctrl-C in the terminal is handled by the server
                )
            return self._process

    def stop(self) -> None:
        """End the process; called by the thread that uses it."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def close(self) -> None:
        """From another thread: the thread that is waiting gets no answer, and then ends the process."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()


def judged_stamp(glance: Glance) -> str:
    """The log, the state of the run, and the judge: equal stamps mean an equal verdict."""
    state = glance.info.state if glance.info else None
    basis = repr((glance.stamp, state, __version__, _checks_changed()))
    return hashlib.sha256(basis.encode()).hexdigest()[:32]


@cache
def _checks_changed() -> int:
    """When the code of the checks last changed: the user may be writing one."""
    from clew import checks

    files = Path(checks.__file__).parent.rglob("*.py")
    return max((file.stat().st_mtime_ns for file in files), default=0)


def main() -> None:
    """Answer each line (a folder, as JSON) with one line (its digest)."""
    from clew.web.runs.run_digest import digest

    with contextlib.suppress(OSError, AttributeError):
        os.nice(19)  # training may be running on this machine, and the viewer must not wait
    answers, sys.stdout = sys.stdout, sys.stderr  # one of the user's checks may print
    for line in sys.stdin:
        try:
            text = json.dumps(replace(digest(Path(json.loads(line))), peak=_peak()).to_json())
        except Exception as error:  # noqa: BLE001 - whatever a run causes, the next one is judged
            text = json.dumps(
                RunDigest.failed(f"the checks failed: {type(error).__name__}: {error}").to_json()
            )
        answers.write(text + "\n")
        answers.flush()


def _peak() -> int:
    """The peak memory of this process, in bytes; 0 if the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
