"""Clew's messages on stderr while the user's program runs: they may get lost, and do no harm.

A reader that has gone away, a full device and a closed file must not change how the program ends.
Nothing of ours may stay in Python's own buffer for stderr either: what can't be flushed when the
process ends makes its exit code 120.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from typing import IO, Any, cast

from clew.render.safe_text import neutral
from clew.render.screen import encoding_of

LONGEST_ERROR = 160  # characters of an exception's text: with what was lost, two lines of a terminal


def say(line: str) -> None:
    """One line, in one piece."""
    if sys.stderr is not None:  # print would take stdout instead
        Outlet(sys.stderr).write(f"{line}\n")


def to_stderr() -> IO[str]:
    """Stderr to draw on; without one, nowhere."""
    return cast("IO[str]", Outlet(sys.stderr))


def in_short(error: BaseException) -> str:
    """An exception in one line: torch adds pages of tables to some."""
    first = str(error).strip().split("\n", 1)[0]
    name = type(error).__name__
    return f"{name}: {neutral(first, LONGEST_ERROR)}" if first else name


class Outlet:
    """A stream that takes everything, and passes on what the one behind it can take."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._gone = stream is None

    def write(self, text: str) -> int:
        """At once, past the stream's own buffer."""
        if not self._gone and self._stream is not None:
            try:
                with _unkilled():
                    _put(self._stream, text)
            except (OSError, ValueError):  # nobody reads it, it is full, or it was closed
                self._gone = True
        return len(text)

    def flush(self) -> None:
        """Nothing is ever kept back."""

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
    if raw is None:  # somebody's own: a notebook's, a test's
        stream.write(text)
        stream.flush()
        return
    errors = getattr(stream, "errors", None) or "backslashreplace"
    data = memoryview(text.replace("\n", os.linesep).encode(encoding_of(stream), errors))
    while data and (written := raw.write(data)):
        data = data[written:]


@contextlib.contextmanager
def _unkilled() -> Iterator[None]:
    """A program may have asked to be killed when nobody reads what it writes; not what we write."""
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
