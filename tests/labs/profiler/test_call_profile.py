"""cProfile on request: a file that pstats reads, of the program alone, and never in another's way."""

from __future__ import annotations

import pstats
import sys
from pathlib import Path

from watched_programs import run_file, watched

from clew.labs.profiler.call_profile import CallProfile

PROGRAM = """
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def one_step():
    model(torch.ones(2, 2)).sum().backward()
    optimizer.step()

one_step()
calls.start()
for step in range(5):
    one_step()
calls.stop()
one_step()
"""


def test_the_calls_of_the_window_are_written_for_pstats(tmp_path: Path) -> None:
    calls = CallProfile()
    with watched():
        run_file(tmp_path, PROGRAM, calls=calls)
    assert calls.write(tmp_path / "traces" / "python.prof")
    stats = pstats.Stats(str(tmp_path / "traces" / "python.prof")).stats  # type: ignore[attr-defined]
    counts = {name: row[0] for (_, _, name), row in stats.items()}
    assert counts["one_step"] == 5
    callers = [caller for row in stats.values() for caller in row[4]]
    files = {key[0] for key in (*stats, *callers)}
    assert not any("/clew/hooks/" in file or "<clew" in file for file in files)


def test_without_a_window_nothing_is_written(tmp_path: Path) -> None:
    calls = CallProfile()
    assert not calls.write(tmp_path / "python.prof")
    assert not (tmp_path / "python.prof").exists()


def test_the_programs_own_profiler_is_left_alone(tmp_path: Path) -> None:
    def theirs(*_: object) -> None:
        return None

    calls = CallProfile()
    sys.setprofile(theirs)
    try:
        calls.start()
        calls.stop()
        assert not calls.write(tmp_path / "python.prof")
        assert sys.getprofile() is theirs
    finally:
        sys.setprofile(None)
    assert calls.note is not None
    assert calls.note.startswith("no calls were counted")


def test_one_that_is_started_later_is_not_ended_by_writing(tmp_path: Path) -> None:
    def theirs(*_: object) -> None:
        return None

    calls = CallProfile()
    calls.start()
    calls.stop()
    sys.setprofile(theirs)
    try:
        assert calls.write(tmp_path / "python.prof")
        assert sys.getprofile() is theirs
    finally:
        sys.setprofile(None)
