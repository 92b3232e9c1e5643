"""The guard around every probe: no failure of Clew's may reach the user's training.

A probe that raises is recorded once as an incident and switched off for the rest of the run. All others keep
running.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable
from time import perf_counter
from typing import Any

INJECT = "CLEW_FAULT_INJECTION"  # name of a probe whose third call should raise; used by tests


class InjectedFaultError(RuntimeError):
    """Raised on purpose by a probe named in the environment."""


class Guard:
    """Knows which probes exist, which are switched off, and where to report failures."""

    def __init__(self, report: Callable[[str, BaseException], None]) -> None:
        self._report = report
        self.off: set[str] = set()
        self.names: list[str] = []
        self._inject = os.environ.get(INJECT)
        self._calls = 0
        self.seconds = 0.0  # spent in probes on the training thread
        # How to get and set torch's gradient mode; a program without torch has no such mode.
        self.grad_enabled: Callable[[], bool] = bool
        self.set_grad_enabled: Callable[[bool], object] = bool

    def probe(
        self, name: str, function: Callable[..., None], on_fail: Callable[[], None] | None = None
    ) -> Callable[..., None]:
        """Wrap `function` so that it returns None, never raises, and its time is counted."""
        self.names.append(name)
        off = self.off

        def guarded(*args: Any, **kwargs: Any) -> None:
            if name in off:
                return
            began, recording = perf_counter(), self.grad_enabled()
            try:
                function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - the whole point: nothing may escape
                self.set_grad_enabled(recording)
                self.fail(name, error)
                if on_fail is not None:
                    on_fail()
            except BaseException:
                # Raised by a signal handler, which can run at any moment, even halfway into
                # `torch.no_grad()`.
                self.set_grad_enabled(recording)
                raise
            self.seconds += perf_counter() - began

        return guarded if self._inject != name else self._failing(name, guarded, on_fail)

    def bare(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` unwrapped, for a caller that catches exceptions itself and calls `fail`."""
        self.names.append(name)
        if self._inject != name:
            return function

        def injected(*args: Any) -> Any:
            self._calls += 1
            if self._calls == 3:
                raise InjectedFaultError(f"fault injected into {name}")
            return function(*args)

        return injected

    def inner(self, name: str, function: Callable[..., None]) -> Callable[..., None]:
        """Wrap a function called within a probe: the probe counts its time, and continues if it fails."""
        bare, off = self.bare(name, function), self.off

        def safe(*args: Any) -> None:
            if name in off:
                return
            try:
                bare(*args)
            except Exception as error:  # noqa: BLE001 - an observer must not break the probe
                self.fail(name, error)

        return safe

    def _failing(
        self, name: str, guarded: Callable[..., Any], on_fail: Callable[[], None] | None
    ) -> Callable[..., Any]:
        def injected(*args: Any, **kwargs: Any) -> Any:
            self._calls += 1
            if self._calls == 3:
                self.fail(name, InjectedFaultError(f"fault injected into {name}"))
                if on_fail is not None:
                    on_fail()
            return guarded(*args, **kwargs)

        return injected

    def fail(self, name: str, error: BaseException) -> None:
        """Switch a probe off and report it once. Exceptions that the program itself raised are re-raised."""
        if _from_signal_handler(error):
            raise error
        self.note(name, error)

    def note(self, name: str, error: BaseException) -> None:
        """Switch a probe off and report it once, whatever was raised: the end of a run must not fail."""
        if name in self.off:
            return
        self.off.add(name)
        try:
            self._report(name, error)
        except Exception:  # noqa: BLE001 - reporting is the last resort; there is nowhere left to report to
            return


def _from_signal_handler(error: BaseException) -> bool:
    """Whether a signal handler of the program raised this. It runs in the current frame, possibly ours.

    Examples: a time limit with `SIGALRM`, and torch's report that a loader worker died.
    """
    codes = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


def _code_of(handler: Any) -> Any:
    if not callable(handler):  # no handler, or the system's default
        return None
    while isinstance(handler, functools.partial):
        handler = handler.func
    return getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
