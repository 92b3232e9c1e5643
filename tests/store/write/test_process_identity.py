from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator

import pytest

from clew.store.write.process_identity import identity, is_alive, machine, start_time


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def who(process: subprocess.Popen[bytes]) -> dict[str, object]:
    return {"pid": process.pid, "machine": machine(), "process_start": start_time(process.pid)}


def test_this_process_is_alive_whatever_its_heartbeat():
    assert is_alive(identity(), None)
    assert is_alive(identity(), 1.0)


def test_a_killed_process_is_dead_before_its_parent_has_noticed(sleeper):
    them = who(sleeper)
    assert is_alive(them, None)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(them, time.time())


def test_a_process_is_dead_once_it_is_gone(sleeper):
    them = who(sleeper)
    sleeper.kill()
    sleeper.wait()
    assert not is_alive(them, time.time())


def test_another_process_with_the_same_pid_is_not_it(sleeper):
    assert not is_alive({**who(sleeper), "process_start": 1}, time.time())


@pytest.mark.parametrize(("age", "alive"), [(1, True), (3600, False)])
def test_on_another_machine_the_heartbeat_decides(age, alive):
    assert is_alive({**identity(), "machine": "elsewhere"}, time.time() - age) == alive
    assert not is_alive({**identity(), "machine": "elsewhere"}, None)


@pytest.mark.parametrize("pid", [None, "7", -1, 0, 2**40, 1.5, []])
def test_a_pid_that_is_none_does_no_harm(pid):
    assert not is_alive({**identity(), "pid": pid}, None)
