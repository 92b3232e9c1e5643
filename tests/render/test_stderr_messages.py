"""Messages may get lost, but leave nothing behind that could do harm."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from clew.render.screen import Screen
from clew.render.stderr_messages import Outlet, ProgressLine, in_short, say, to_stderr


def test_an_exception_is_one_short_line() -> None:
    assert in_short(ValueError("no good\nCPU: registered at …\n" * 60)) == "ValueError: no good"
    assert in_short(KeyError()) == "KeyError"
    long = in_short(RuntimeError("x" * 5000))
    assert len(long) < 200
    assert "…" in long
    assert in_short(RuntimeError("a \x1b[31m b")) == r"RuntimeError: a \x1b[31m b"


def test_what_can_be_written_is_written_after_what_the_program_wrote() -> None:
    read, write = os.pipe()
    stream = open(write, "w", encoding="utf-8")  # noqa: SIM115 - closed below
    stream.write("theirs, ")
    Outlet(stream).write("ours…\n")
    stream.write("theirs again\n")
    stream.close()
    with open(read, encoding="utf-8") as end:
        assert end.read() == "theirs, ours…\ntheirs again\n"


def test_a_reader_that_is_gone_leaves_nothing_in_the_buffer() -> None:
    read, write = os.pipe()
    os.close(read)
    stream = open(write, "w", encoding="utf-8")  # noqa: SIM115 - closing it is what is tested
    Screen(Outlet(stream)).block("a drawing of several lines " * 40)  # type: ignore[arg-type]
    stream.close()  # would raise if anything were left to flush


def test_a_stream_of_somebody_elses_is_written_to_as_it_is() -> None:
    stream = io.StringIO()
    Outlet(stream).write("a line\n")
    assert stream.getvalue() == "a line\n"
    stream.close()
    assert Outlet(stream).write("lost\n") == 5
    assert not Outlet(stream).isatty()


def test_without_a_stderr_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    say("nowhere")
    to_stderr().write("nowhere")
    assert capsys.readouterr().out == ""


DIES_OF_A_PIPE = """
import signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
from clew.render.stderr_messages import say
say("ours")
assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
print("alive")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks for sigtimedwait")
def test_a_program_that_wants_to_die_of_a_broken_pipe_does_not_die_of_ours() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", DIES_OF_A_PIPE], stdout=subprocess.PIPE, stderr=write)
    os.close(write)
    assert (done.returncode, done.stdout) == (0, b"alive\n")


def test_a_progress_line_never_wraps() -> None:
    stream = io.StringIO()
    line = ProgressLine(stream)
    line(1, 5, "a setting with a very long name " * 5, 0.5)
    line.clear()
    assert max(len(drawn) for drawn in stream.getvalue().split("\r")) == 79
