"""Replacing a function in someone else's module, invisibly and reversibly.

A wrapper adds a stack frame, and a stack frame shows: in tracebacks, and in
`warnings.warn(..., stacklevel=2)`, which would blame Clew instead of the user's line. The
interpreter skips frames that look like its import machinery when it counts stack levels, so
wrappers carry a file name of that look (CPython: `is_internal_frame` in _warnings.c). The
launcher drops the same frames from tracebacks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

INVISIBLE = "<clew: importlib._bootstrap>"

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def invisible(wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Give a wrapper a file name that warnings and our tracebacks pass over."""
    assert isinstance(wrapper, FunctionType)
    wrapper.__code__ = wrapper.__code__.replace(co_filename=INVISIBLE)
    return wrapper


def wrapped(original: Callable[..., Any], wrap: Wrap) -> Callable[..., Any]:
    """What stands in for a function, under its name."""
    return invisible(functools.wraps(original)(wrap(original)))


class Patches:
    """A set of replaced attributes that comes off as one."""

    def __init__(self) -> None:
        self._entries: list[tuple[Any, str, Any, Any]] = []

    def wrap(self, owner: Any, name: str, wrap: Wrap) -> None:
        """Replace `owner.name` by `wrap(original)`; an attribute that isn't there is left alone."""
        original = vars(owner).get(name)
        if original is None:
            return
        self.put(owner, name, original, wrapped(original, wrap))

    def put(self, owner: Any, name: str, original: Any, replacement: Callable[..., Any]) -> None:
        """The same with a wrapper that was made before."""
        setattr(owner, name, replacement)
        self._entries.append((owner, name, original, replacement))

    def remove(self) -> None:
        """Put everything back. Where someone has wrapped our wrapper since, theirs stays."""
        for owner, name, original, replacement in reversed(self._entries):
            if vars(owner).get(name) is replacement:
                setattr(owner, name, original)
        self._entries.clear()
