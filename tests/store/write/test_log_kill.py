from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from store_runs import only_series

import clew
from clew.store.read.run_folders import list_runs
from clew.store.read.run_reader import RunReader, open_run

KILLS = int(os.environ.get("CLEW_KILLS", "60"))
SOURCE = str(Path(clew.__file__).parents[1])


class Writers:
    """The process that forks writers, and what they say."""

    def __init__(self) -> None:
        script = str(Path(__file__).with_name("forked_writers.py"))
        environment = {**os.environ, "PYTHONPATH": SOURCE}
        self._process = subprocess.Popen(
            [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def start(self, root: Path) -> int:
        self._stdin.write(f"{root}\n".encode())
        self._stdin.flush()
        return self.expect("pid")

    @property
    def _stdin(self):
        return self._process.stdin

    def expect(self, word: str) -> int:
        """The number that comes with the next line of this kind."""
        while True:
            found, number = self._process.stdout.readline().decode().split()
            if found == word:
                return int(number)

    def listen(self, seconds: float) -> int:
        """The last row said to be flushed within this time."""
        flushed, until = 0, time.monotonic() + seconds
        while select.select([self._process.stdout], [], [], max(until - time.monotonic(), 0))[0]:
            flushed = self.expect("flushed")
        return flushed

    def flushed_before_death(self, flushed: int) -> int:
        while True:
            word, number = self._process.stdout.readline().decode().split()
            if word == "dead":
                return flushed
            flushed = int(number)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    found = Writers()
    yield found
    found.close()


def assert_nothing_lost(run: Path, flushed: int) -> None:
    reader = open_run(run)
    assert reader.state == "killed"
    assert all("cut short" in line for line in reader.damage)
    if not reader.data.signal_names():
        assert flushed == 0
        return
    _, steps, values = only_series(reader.data, "loss")
    assert len(steps) >= flushed
    np.testing.assert_array_equal(steps, np.arange(len(steps)))
    np.testing.assert_array_equal(values, steps * 0.5)
    layers = list(reader.data.series("weight.mean"))
    assert len(layers) == 20 or flushed == 0
    for _, layer_steps, layer_values in layers:
        assert len(layer_steps) >= flushed
        np.testing.assert_array_equal(layer_values, layer_steps)
    assert [fact.data["rows"] for fact in reader.data.facts][: flushed // 7] == list(range(7, flushed + 1, 7))


def test_kill_9_at_random_moments_loses_nothing_that_was_written(tmp_path, writers):
    # GIVEN writers killed after a random number of milliseconds
    moments = random.Random(20)
    for i in range(KILLS):
        root = tmp_path / str(i)
        pid = writers.start(root)
        flushed = writers.listen(moments.random() ** 2 * 0.08)
        # WHEN one is killed in the middle of whatever it does
        os.kill(pid, signal.SIGKILL)
        flushed = writers.flushed_before_death(flushed)
        # THEN everything it had said to be written is there
        assert_nothing_lost(root / "run", flushed)
        assert [(info.id, info.state) for info in list_runs(root)] == [("run", "killed")]


def test_a_run_is_running_until_its_process_is_killed(tmp_path, writers):
    pid = writers.start(tmp_path)
    flushed = writers.expect("flushed")
    reader = RunReader(tmp_path / "run")
    assert reader.state == "running"
    assert list_runs(tmp_path)[0].state == "running"
    os.kill(pid, signal.SIGKILL)
    flushed = writers.flushed_before_death(flushed)
    reader.refresh()
    assert reader.state == "killed"
    assert_nothing_lost(tmp_path / "run", flushed)
