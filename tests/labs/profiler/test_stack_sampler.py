"""The sampler sees the user's lines, tells kinds of work apart, and leaves the process as it was."""

from __future__ import annotations

import contextvars
import cProfile
import os
import signal
import sys
import threading
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from watched_programs import line_of, run_file, watched

from clew.labs.profiler import stack_sampler
from clew.labs.profiler.stack_flames import python_flame, seconds_by_kind, share_of_kind, source_lines
from clew.labs.profiler.stack_sampler import Sampler, Samples
from clew.records.step_costs import FlameFrame
from clew.records.version import PACKAGE

EVERY_EVENT = 1e-12  # seconds between samples


class Clock:
    """Time passes only where the program says so; with it every event is a sample."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def spend(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(stack_sampler, "perf_counter", made)
    return made


def sampled(folder: Path, text: str, **given: Any) -> Samples:
    """Run a program that calls `mark(step)` itself: at the first of them sampling begins."""
    sampler = Sampler(interval=EVERY_EVENT)

    def mark(step: int) -> None:
        if sys.getprofile() is None:
            sampler.start()
        sampler.mark(step)

    run_file(folder, text, mark=mark, **given)
    assert sampler.note is None
    samples = sampler.stop()
    assert samples is not None
    return samples


LOOP = """
import logging

def slow():
    spend(3.0)  # slow

def quick():
    spend(1.0)  # quick

for step in range(3):
    mark(step)
    slow()  # calls slow
    quick()
mark(3)
slow()
"""


def test_lines_have_their_own_time_and_that_of_what_they_call(tmp_path: Path, clock: Clock) -> None:
    samples = sampled(tmp_path, LOOP, spend=clock.spend)
    file = str(tmp_path / "program.py")
    lines = {(line.file, line.line): line for line in source_lines(samples)}
    assert lines[file, line_of(LOOP, "# slow")].total == pytest.approx(3.0)
    assert lines[file, line_of(LOOP, "# quick")].total == pytest.approx(1.0)
    assert lines[file, line_of(LOOP, "# calls slow")].total == pytest.approx(3.0)
    assert lines[file, line_of(LOOP, "# calls slow")].self == 0.0
    assert lines[file, line_of(LOOP, "# calls slow")].code == "slow()  # calls slow"


def test_what_comes_after_the_last_mark_is_left_out(tmp_path: Path, clock: Clock) -> None:
    samples = sampled(tmp_path, LOOP, spend=clock.spend)
    assert samples.steps == (0, 1, 2)
    assert samples.durations == pytest.approx((4.0, 4.0, 4.0))
    assert sum(seconds for _, seconds, _ in samples.records) == pytest.approx(12.0)


def test_the_flame_has_functions_with_seconds_per_step(tmp_path: Path, clock: Clock) -> None:
    flame = python_flame(sampled(tmp_path, LOOP, spend=clock.spend))
    assert flame is not None
    frames = {frame.name: frame for _, frame in flame.walk()}
    assert flame.value == pytest.approx(4.0)
    assert frames["slow"].value == pytest.approx(3.0)
    assert frames["quick"].value == pytest.approx(1.0)
    assert all(_adds_up(frame) for frame in frames.values())


def _adds_up(frame: FlameFrame) -> bool:
    return frame.value == pytest.approx(frame.self + sum(child.value for child in frame.children))


KINDS = """
import logging
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, index):
        spend(1.0)
        return torch.ones(3)

class Layer(nn.Linear):
    def forward(self, x):
        spend(4.0)
        return super().forward(x)

class Handler(logging.Handler):
    def emit(self, record):
        spend(8.0)

log = logging.getLogger("sampled")
log.addHandler(Handler())
log.propagate = False
model = Layer(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in DataLoader(Data(), batch_size=2):  # torch imports a lot in the first step
    model(x).sum().backward()
    optimizer.step()
optimizer.register_step_post_hook(lambda *_: spend(16.0))
step = 0
mark(step)
for x in bar(DataLoader(Data(), batch_size=2)):
    loss = model(x).sum()
    loss.register_hook(lambda grad: spend(32.0))
    loss.backward()
    optimizer.step()
    log.warning("here")
    spend(64.0)
    step += 1
    mark(step)
"""


BAR = """
class tqdm:
    def __init__(self, iterable):
        self.iterable = iterable
    def __iter__(self):
        for one in self.iterable:
            yield one
"""


def progress_bar(folder: Path) -> Any:
    """As installed: what it wraps is not its own."""
    file = folder / "site-packages" / "tqdm" / "std.py"
    names: dict[str, Any] = {}
    exec(compile(BAR, str(file), "exec"), names)
    return names["tqdm"]


def test_every_kind_of_work_is_told_apart_and_a_bar_around_a_loader_is_data(
    tmp_path: Path, clock: Clock
) -> None:
    samples = sampled(tmp_path, KINDS, spend=clock.spend, bar=progress_bar(tmp_path))
    by_kind = {kind: seconds for kind, seconds in seconds_by_kind(samples).items() if seconds}
    expected = {"data": 2, "forward": 4, "logging": 8, "optimizer": 16, "backward": 32, "rest": 64}
    assert by_kind == {kind: pytest.approx(3 * seconds) for kind, seconds in expected.items()}
    assert share_of_kind("logging", samples) == pytest.approx(8 / 126)
    called = {line.code: line.kind for line in source_lines(samples)}
    assert called['log.warning("here")'] == "logging"
    assert called["loss = model(x).sum()"] == "forward"


def test_printing_is_logging(tmp_path: Path, clock: Clock) -> None:
    """A function in C has no frame: it is seen as it returns."""
    sampler = Sampler(interval=EVERY_EVENT)
    with open(os.devnull, "w") as nowhere:
        sampler.start()
        sampler.mark(0)
        print("here", file=nowhere)
        sampler.mark(1)
    samples = sampler.stop()
    assert samples is not None
    kinds = [calls[-1][0] for calls, _, _ in samples.records if isinstance(calls[-1][0], str)]
    assert "print" in kinds
    assert "logging" in seconds_by_kind(samples)


def test_clews_own_work_is_no_part_of_the_programs(tmp_path: Path, clock: Clock) -> None:
    text = """
import torch
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(7):
    if step >= 3:  # a lot is imported in the first steps
        mark(step)
    optimizer.zero_grad()
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    spend(1.0)
mark(7)
"""
    with watched() as program:
        program.watcher.between_steps.append(lambda step: _work_for_clew(clock))
        samples = sampled(tmp_path, text, spend=clock.spend)
    flame = python_flame(samples)
    assert flame is not None
    files = {frame.file for _, frame in flame.walk() if frame.file is not None}
    assert not any(file.startswith(PACKAGE) or "<clew" in file for file in files)
    assert seconds_by_kind(samples)["rest"] >= 4.0


def _work_for_clew(clock: Clock) -> None:
    clock.spend(5.0)


# -- others --


def test_the_programs_own_profiler_is_left_alone(tmp_path: Path) -> None:
    def theirs(*_: object) -> None:
        return None

    sampler = Sampler()
    sys.setprofile(theirs)
    try:
        sampler.start()
        assert sys.getprofile() is theirs
    finally:
        sys.setprofile(None)
    assert sampler.note is not None
    assert "its own profiler" in sampler.note
    assert sampler.stop() is None


def test_the_programs_own_debugger_is_left_alone() -> None:
    def theirs(*_: object) -> None:
        return None

    sampler, before = Sampler(), sys.gettrace()
    sys.settrace(theirs)
    try:
        sampler.start()
    finally:
        sys.settrace(before)
    assert sampler.note is not None
    assert "its own tracer" in sampler.note
    assert sys.getprofile() is None


def test_cprofile_is_called_by_its_name() -> None:
    sampler, theirs = Sampler(), cProfile.Profile()
    theirs.enable()
    try:
        sampler.start()
    finally:
        theirs.disable()
    assert sampler.note is not None
    assert "cProfile" in sampler.note


def test_a_profiler_that_is_started_meanwhile_stays() -> None:
    def theirs(*_: object) -> None:
        return None

    sampler = Sampler()
    sampler.start()
    sampler.mark(0)
    sys.setprofile(theirs)
    sampler.mark(1)
    try:
        sampler.stop()
        assert sys.getprofile() is theirs
    finally:
        sys.setprofile(None)
    assert sampler.note is not None


# -- nothing is left behind --


def test_everything_is_as_it_was_afterwards(tmp_path: Path, clock: Clock) -> None:
    def state() -> tuple[Any, ...]:
        handlers = tuple(signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGPROF))
        hooks = (threading._profile_hook, threading._trace_hook)  # type: ignore[attr-defined]
        return sys.getprofile(), sys.gettrace(), handlers, hooks, dict(contextvars.copy_context())

    before = state()
    sampled(tmp_path, LOOP, spend=clock.spend)
    assert state() == before


def test_a_failure_of_ours_does_not_reach_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(stack_sampler, "stack_of", fails)
    sampler = Sampler(interval=EVERY_EVENT)
    sampler.start()
    sampler.mark(0)
    assert sorted([3, 1, 2]) == [1, 2, 3]
    assert sampler.stop() is None
    assert sys.getprofile() is None
    assert sampler.note is not None
    assert "ours" in sampler.note


def test_a_forked_child_is_not_sampled() -> None:
    sampler = Sampler(interval=EVERY_EVENT)
    sampler.start()
    child = os.fork()
    if child == 0:
        str(monotonic())  # the first event in the child ends it there
        str(monotonic())
        os._exit(0 if sys.getprofile() is None else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert sys.getprofile() is not None
    sampler.stop()
    assert sys.getprofile() is None


def test_other_threads_are_named_in_a_note(tmp_path: Path) -> None:
    done = threading.Event()
    other = threading.Thread(target=done.wait, name="feeder")
    other.start()
    try:
        sampler = Sampler()
        sampler.start()
        sampler.mark(0)
        sampler.mark(1)
        samples = sampler.stop()
    finally:
        done.set()
        other.join()
    assert samples is not None
    assert any("feeder" in note for note in samples.notes)


def test_windows_are_joined(tmp_path: Path, clock: Clock) -> None:
    first = sampled(tmp_path, LOOP, spend=clock.spend)
    second = sampled(
        tmp_path, LOOP.replace("range(3)", "range(3, 6)").replace("mark(3)", "mark(6)"), spend=clock.spend
    )
    both = Samples.joined([first, second])
    assert both.steps == (0, 1, 2, 3, 4, 5)
    assert both.seconds == pytest.approx(first.seconds + second.seconds)
