"""Failures of ours end in the guard; what the program itself raises goes on to it."""

import functools
import signal

import pytest

from clew.hooks.entry.guard import INJECT, Guard


class TimeUpError(Exception):
    pass


def time_up(*_: object) -> None:
    raise TimeUpError


class Limit:
    def __call__(self, *_: object) -> None:
        raise TimeUpError

    def over(self, *_: object) -> None:
        raise TimeUpError


@pytest.fixture
def reported():
    return []


@pytest.fixture
def guard(reported):
    return Guard(lambda name, error: reported.append((name, error)))


@pytest.fixture
def alarm():
    before = signal.getsignal(signal.SIGALRM)
    yield lambda handler: signal.signal(signal.SIGALRM, handler)
    signal.signal(signal.SIGALRM, before)


def interrupted() -> None:
    """A probe in which the program's alarm rings."""
    signal.raise_signal(signal.SIGALRM)


@pytest.mark.parametrize("handler", [time_up, Limit(), Limit().over, functools.partial(time_up, 1)])
@pytest.mark.parametrize("way", ["probe", "inner"])
def test_an_exception_of_a_signal_handler_is_the_programs(guard, reported, alarm, handler, way):
    alarm(handler)
    with pytest.raises(TimeUpError):
        getattr(guard, way)("one", interrupted)()
    assert not reported
    assert not guard.off


def test_an_alarm_in_the_middle_of_no_grad_leaves_gradients_on(guard, alarm):
    alarm(time_up)
    recording = [True]
    guard.grad_enabled, guard.set_grad_enabled = lambda: recording[0], lambda on: recording.__setitem__(0, on)

    def entering() -> None:
        recording[0] = False
        interrupted()

    with pytest.raises(TimeUpError):
        guard.probe("one", entering)()
    assert recording == [True]


def test_at_the_end_of_a_run_an_alarm_is_noted_and_nothing_raised(guard, reported, alarm):
    alarm(time_up)
    try:
        interrupted()
    except TimeUpError as error:
        guard.note("one", error)
    assert [name for name, _ in reported] == ["one"]


@pytest.mark.parametrize("way", ["probe", "inner"])
def test_a_failure_of_ours_ends_here_though_there_are_handlers(guard, reported, alarm, way):
    alarm(time_up)

    def fails() -> None:
        raise TimeUpError

    getattr(guard, way)("one", fails)()
    assert [name for name, _ in reported] == ["one"]
    assert guard.off == {"one"}


def test_a_probe_that_raises_is_reported_once_and_switched_off():
    reports = []
    guard = Guard(lambda name, error: reports.append((name, str(error))))
    calls = []

    def probe(x):
        calls.append(x)
        raise ValueError("broken")

    guarded = guard.probe("p", probe)
    assert guarded(1) is None
    assert guarded(2) is None
    assert (calls, reports) == ([1], [("p", "broken")])


def test_a_report_that_fails_does_not_reach_the_program():
    def report(name, error):
        raise OSError("stderr is closed")

    guarded = Guard(report).probe("p", lambda: 1 / 0)
    assert guarded() is None


def test_an_injected_fault_fires_at_the_third_call(monkeypatch):
    monkeypatch.setenv(INJECT, "p")
    reports = []
    guard = Guard(lambda name, error: reports.append(name))
    calls = []
    guarded = guard.probe("p", lambda: calls.append(1))
    for _ in range(5):
        guarded()
    assert (len(calls), reports) == (2, ["p"])
