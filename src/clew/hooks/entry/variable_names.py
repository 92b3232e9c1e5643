"""Names that the program's variables give an object, from the innermost function outwards."""

from __future__ import annotations

import sys
from types import FrameType

from clew.hooks.entry.user_line import USER, kind_of

FRAMES = 6  # user frames that are searched


def names_in_callers(value: object) -> list[str]:
    """Return all names of the object, without repeats."""
    found: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    seen = 0
    while frame is not None and seen < FRAMES:
        if kind_of(frame.f_code.co_filename) == USER:
            seen += 1
            for scope in (frame.f_locals, frame.f_globals):
                found += [str(n) for n, v in list(scope.items()) if v is value and n not in found]
            owner = frame.f_locals.get("self")
            attributes = getattr(owner, "__dict__", {})
            found += [str(n) for n, v in list(attributes.items()) if v is value and n not in found]
        frame = frame.f_back
    return [name for name in found if not name.startswith("_")]
