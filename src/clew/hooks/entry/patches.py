"""Patches of functions in other modules: invisible in tracebacks and warnings, and reversible.

A wrapper adds a stack frame, and a stack frame is visible: in tracebacks, and in `warnings.warn(...,
stacklevel=2)`, which would blame Clew instead of the user's line. When it counts stack levels, the
interpreter skips frames that look like its import machinery, so our wrappers have a file name that looks like
it (CPython: `is_internal_frame` in _warnings.c). The launcher drops the same frames from tracebacks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

INVISIBLE = "<clew: importlib._bootstrap>"

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def invisible(wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Give a wrapper a file name that warnings and our tracebacks skip."""
    assert isinstance(wrapper, FunctionType)
    wrapper.__code__ = wrapper.__code__.replace(co_filename=INVISIBLE)
    return wrapper


def wrapped(original: Callable[..., Any], wrap: Wrap) -> Callable[..., Any]:
    """Return the replacement for a function, under its original name."""
    return invisible(functools.wraps(original)(wrap(original)))


class Patches:
    """A set of replaced attributes that are all restored together."""

    def __init__(self) -> None:
        self._entries: list[tuple[Any, str, Any, Any]] = []

    def wrap(self, owner: Any, name: str, wrap: Wrap) -> None:
        """Replace `owner.name` by `wrap(original)`; do nothing if the attribute does not exist."""
        original = vars(owner).get(name)
        if original is None:
            return
        self.put(owner, name, original, wrapped(original, wrap))

    def put(self, owner: Any, name: str, original: Any, replacement: Callable[..., Any]) -> None:
        """Same as `wrap`, with a wrapper that was created before."""
        setattr(owner, name, replacement)
        self._entries.append((owner, name, original, replacement))

    def remove(self) -> None:
        """Restore everything. If someone has wrapped our wrapper since, their wrapper stays."""
        for owner, name, original, replacement in reversed(self._entries):
            if vars(owner).get(name) is replacement:
                setattr(owner, name, original)
        self._entries.clear()
