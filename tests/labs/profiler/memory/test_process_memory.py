"""Memory of the process and its children: which they are, how often they are read, and what is growth."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import psutil
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from clew.labs.profiler.memory import process_memory
from clew.labs.profiler.memory.process_memory import ProcessWatch, own_memory, steady_slope


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(process_memory, "perf_counter", made)
    return made


def test_this_process_is_the_main_one_with_all_that_is_known(clock: Clock) -> None:
    watch = ProcessWatch()
    watch.read(3)
    main = watch.found()[0]
    assert main.role == "main"
    assert main.rss > 1 << 20
    assert main.uss is not None
    assert 0 < main.uss <= main.rss
    assert main.readings == ((3, main.rss),)
    assert main.slope == 0.0


def test_it_is_asked_at_most_a_few_times_a_second(clock: Clock) -> None:
    watch = ProcessWatch()
    for step in range(100):
        clock.now += 0.01
        watch.read(step)
    assert len(watch.found()[0].readings) <= 5


def test_readings_are_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "MOST_READINGS", 40)
    watch = ProcessWatch()
    for step in range(process_memory.MOST_READINGS + 50):
        clock.now += 0.3
        watch.read(step)
    readings = watch.found()[0].readings
    assert len(readings) <= process_memory.MOST_READINGS
    assert readings[0][0] == 0
    assert readings[-1][0] == process_memory.MOST_READINGS + 49


def test_children_are_those_that_were_there_last(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader's workers of one epoch are gone in the next; those of the last are what is shown."""
    every = psutil.Process.children
    before = set(every(psutil.Process()))  # other tests' may be there all the time
    monkeypatch.setattr(
        psutil.Process, "children", lambda *a, **k: [c for c in every(*a, **k) if c not in before]
    )
    watch, shown = ProcessWatch(), []
    for step in range(2):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        clock.now += 10
        watch.read(step)
        child.communicate(b"\n")
        shown.append(child.pid)
    clock.now += 10
    watch.read(2)
    found = watch.found()
    assert [(process.pid, process.role) for process in found[1:]] == [(shown[1], "child")]
    assert found[0].readings[-1][0] == 2


def test_a_loaders_workers_are_called_so(clock: Clock) -> None:
    loader = DataLoader(TensorDataset(torch.ones(64, 2)), batch_size=1, num_workers=1)
    iterator = iter(loader)
    next(iterator)  # from here on the worker has its name
    watch = ProcessWatch()
    watch.read(0)
    workers = [process for process in watch.found() if process.role == "loader worker"]
    assert [process.pid for process in workers] == [iterator._workers[0].pid]  # type: ignore[attr-defined]
    assert workers[0].pss is not None
    del iterator


def test_own_memory_is_part_of_the_resident_one() -> None:
    watch = ProcessWatch()
    watch.read(0)
    assert 0 < own_memory() <= 1.5 * watch.found()[0].rss


MB = 1 << 20
STEPS = np.arange(0, 2_000, 10)
NOISE = np.random.default_rng(0).normal(0.0, 1.0, len(STEPS))


def slope(values: np.ndarray) -> float | None:
    found = steady_slope(list(zip(STEPS.tolist(), (500 * MB + values).tolist(), strict=True)))
    return None if found is None else found.rate


def test_a_steady_rise_is_measured() -> None:
    assert slope(0.1 * MB * STEPS) == pytest.approx(0.1 * MB, rel=0.01)


def test_a_rise_in_noise_or_in_steps_is_measured_too() -> None:
    assert slope(0.1 * MB * STEPS + 3 * MB * NOISE) == pytest.approx(0.1 * MB, rel=0.1)
    assert slope(16 * MB * np.floor(STEPS / 160)) == pytest.approx(0.1 * MB, rel=0.2)


def test_the_rise_at_the_beginning_does_not_count() -> None:
    assert slope(300 * MB * (1 - np.exp(-STEPS / 100))) is None


@pytest.mark.parametrize(
    "values",
    [
        0.0 * STEPS,
        20 * MB * NOISE,
        np.where(STEPS > 1_000, 200.0 * MB, 0.0),
        40 * MB * (STEPS % 500) / 500,
        np.minimum(0.2 * MB * STEPS, 250 * MB),
        -0.1 * MB * STEPS,
        0.0005 * MB * STEPS,
    ],
    ids=["flat", "noise", "one jump", "saw", "fills up", "falls", "too little"],
)
def test_what_does_not_go_on_rising_is_no_growth(values: np.ndarray) -> None:
    assert slope(values) is None


def test_few_readings_give_no_verdict() -> None:
    assert steady_slope([]) is None
    assert steady_slope([(0, 1.0)] * 100) is None
    assert steady_slope([(n, float(n * MB)) for n in range(12)]) is None
