"""Clew's messages on stderr while the user's program runs: they may get lost, and do no harm.

A reader that has gone away, a full device and a closed file must not change how the program ends.
Nothing from Clew may stay in Python's own buffer for stderr either: what can't be flushed when the
process ends makes its exit code 120.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from time import monotonic
from typing import IO, Any, cast

from clew.render.safe_text import encodable, neutral
from clew.render.screen import encoding_of

LONGEST_ERROR = 160  # characters of an exception's text: with the rest of the message, two terminal lines
BAR_WIDTH = 24  # of the progress line
REDRAW_PAUSE = 0.1  # seconds between two drawings of it
NO_TERMINAL = 80  # columns of a stream that does not say how many it has


def say(line: str) -> None:
    """Print one line, in one piece."""
    if sys.stderr is not None:  # print would take stdout instead
        Outlet(sys.stderr).write(f"{line}\n")


def to_stderr() -> IO[str]:
    """Stderr to draw on; discards everything if there is none."""
    return cast("IO[str]", Outlet(sys.stderr))


def in_short(error: BaseException) -> str:
    """An exception in one line: torch adds pages of tables to some."""
    first = str(error).strip().split("\n", 1)[0]
    name = type(error).__name__
    return f"{name}: {neutral(first, LONGEST_ERROR)}" if first else name


class Outlet:
    """A stream that accepts everything, and passes on what the underlying stream accepts."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._gone = stream is None

    def write(self, text: str) -> int:
        """Immediately, bypassing the stream's own buffer."""
        if not self._gone and self._stream is not None:
            try:
                with _unkilled():
                    _put(self._stream, text)
            except (OSError, ValueError):  # nobody reads it, it is full, or it was closed
                self._gone = True
        return len(text)

    def flush(self) -> None:
        """Nothing is ever buffered."""

    def isatty(self) -> bool:
        try:
            return not self._gone and self._stream is not None and self._stream.isatty()
        except (OSError, ValueError):
            return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _put(stream: IO[str], text: str) -> None:
    stream.flush()  # what the program wrote comes first
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    if raw is None:  # a replaced stream: a notebook's, a test's
        stream.write(text)
        stream.flush()
        return
    errors = getattr(stream, "errors", None) or "backslashreplace"
    data = memoryview(text.replace("\n", os.linesep).encode(encoding_of(stream), errors))
    while data and (written := raw.write(data)):
        data = data[written:]


@contextlib.contextmanager
def _unkilled() -> Iterator[None]:
    """Block SIGPIPE: a program may ask to be killed when nobody reads it, but not because of our output."""
    pipe = getattr(signal, "SIGPIPE", None)
    if pipe is None or signal.getsignal(pipe) is not signal.SIG_DFL or not hasattr(signal, "sigtimedwait"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {pipe})
    try:
        yield
    finally:
        if pipe not in before:
            signal.sigtimedwait({pipe}, 0)  # ours, if there is one
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class ProgressLine:
    """Progress in one line, redrawn in place on a terminal.

    Called with how many are done, of how many, which one is running and its progress.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._next = 0.0
        self._longest = 0
        self._name = ""

    def __call__(self, number: int, count: int, name: str, done: float) -> None:
        if not count or (monotonic() < self._next and name == self._name):
            return
        self._next, self._name = monotonic() + REDRAW_PAUSE, name
        share = min((number + min(max(done, 0.0), 1.0)) / count, 1.0)
        filled = round(share * BAR_WIDTH)
        self._draw(f"  [{'=' * filled}{' ' * (BAR_WIDTH - filled)}] {min(number + 1, count)}/{count} {name}")

    def clear(self) -> None:
        """Clear the line for what follows."""
        if self._longest:
            self._draw("")
            self._write("\r")

    def _draw(self, text: str) -> None:
        text = text[: self._columns() - 1]  # a longer line would wrap, and could not be redrawn
        self._write("\r" + text.ljust(self._longest))
        self._longest = max(self._longest, len(text))

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or NO_TERMINAL
        except (AttributeError, OSError, ValueError):
            return NO_TERMINAL

    def _write(self, text: str) -> None:
        try:
            self._stream.write(encodable(text, encoding_of(self._stream)))
            self._stream.flush()
        except (OSError, ValueError):
            return
