"""The one session of this process, and what a forked child does with it."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.session.session import Session

_active: Session | None = None


def active() -> Session | None:
    """The session of this process, if there is one."""
    return _active


def activate(session: Session) -> None:
    """Make this the session of the process; a forked child will abandon it."""
    global _active
    _active = session
    _watch_forks()


def deactivate(session: Session) -> None:
    """The session is over; does nothing if another one has taken its place."""
    global _active
    if _active is session:
        _active = None


@cache  # once per process: handlers can't be removed
def _watch_forks() -> None:
    """A forked child (a loader's worker) must not write into its parent's run."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    session = _active
    if session is not None:
        deactivate(session)
        session.abandon()
