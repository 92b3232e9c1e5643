"""Clew from Python: `with clew.attach(model, optimizer):`, and what a program can add to its run."""

from __future__ import annotations

import atexit
import sys
from pathlib import Path
from typing import Any

from clew.records.verdict import Verdict
from clew.session.active_session import active
from clew.session.run_options import RunOptions, enabled
from clew.session.session import Session


def attach(
    *things: Any,
    run_root: str | Path | None = None,
    name: str | None = None,
    budget: float = 0.02,
    every_step: bool = False,
    stop_on: str | None = None,
    ignore: tuple[str, ...] = (),
    track: tuple[str, ...] = (),
    quiet: bool = False,
) -> Session | Disabled:
    """Record and check the training in this process: as a `with` block, or until `close()`.

    You may pass models and optimizers; otherwise they are found when they are first used.
    """
    if not enabled():
        return Disabled()
    session = active()
    if session is not None:
        session.join()
        session.introduce(*things)
        return session
    session = Session(
        RunOptions(
            script=sys.argv[0] if sys.argv and sys.argv[0] else "python",
            args=(),
            root=Path(run_root) if run_root is not None else None,
            name=name,
            budget=budget,
            every_step=every_step,
            stop_on=stop_on,
            ignore=tuple(ignore),
            track=tuple(track),
            quiet=quiet,
        )
    )
    session.start()
    atexit.register(session.close)
    try:
        session.introduce(*things)
    except TypeError:
        session.close("failed")
        raise
    return session


class Disabled:
    """What `attach` returns when `CLEW=off`: everything works and nothing happens."""

    verdict = Verdict()
    path: Path | None = None

    def __enter__(self) -> Disabled:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def close(self, *_: object) -> None:
        """Nothing to close."""

    def pause(self) -> None:
        """Nothing to detach."""

    def resume(self) -> None:
        """Nothing to attach."""

    def probes(self) -> list[str]:
        """There are none."""
        return []


def log(values: dict[str, Any] | None = None, /, **named: Any) -> None:
    """Record your own metrics: `clew.log(accuracy=0.93)`. Does nothing when no run is recorded."""
    session = active()
    if session is not None:
        session.guarded("log", lambda: session.user_log.log({**(values or {}), **named}))


def ignore(check: str, where: str = "", why: str = "") -> None:
    """Ignore a check in this run, everywhere or only `where` (a module, a file, a line), and say why.

    `where` may contain `*`: `clew.ignore("dead-units", where="gate.*", why="sparse by design")`.
    """
    session = active()
    if session is not None:
        session.guarded("ignore", lambda: session.user_log.ignore(check, where, why))


def config(values: Any = None, /, **named: Any) -> None:
    """Record hyperparameters: `clew.config(lr=0.1)` or `clew.config(vars(args))`."""
    session = active()
    if session is not None:
        given = vars(values) if hasattr(values, "__dict__") else dict(values or {})
        session.guarded("config", lambda: session.user_log.config({**given, **named}))
