"""File and line of the user's own code that is running now, and the user's names for an object.

A frame counts as the user's if its file does not belong to Clew, torch, the standard library or an installed
package. If the whole program is installed (a library's training command), the nearest frame outside torch and
Clew is the best answer.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from types import FrameType, TracebackType

from clew.hooks.entry.patches import INVISIBLE
from clew.records.site import Line
from clew.records.version import DEMO, PACKAGE

_STDLIB = tuple(
    os.path.join(path, "")
    for path in {sysconfig.get_paths()["stdlib"], os.path.dirname(os.path.abspath(os.__file__))}
)
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

_COMMANDS = ("clew", "clew.exe", "clew-script.py")

USER, LIBRARY, HIDDEN = 2, 1, 0
_kinds: dict[str, int] = {}

FRAMES = 6  # user frames that are searched


def kind_of(filename: str) -> int:
    """Return USER, LIBRARY (installed, but not torch) or HIDDEN (torch, Clew, interpreter)."""
    known = _kinds.get(filename)
    if known is None:
        known = _kinds[filename] = _classify(filename)
    return known


def _classify(filename: str) -> int:
    if filename == INVISIBLE or filename.startswith("<frozen"):
        return HIDDEN
    if filename.startswith("<"):
        return USER  # typed into a shell or notebook
    path = os.path.abspath(filename)
    if path.startswith(DEMO):
        return USER
    if os.path.basename(path) in _COMMANDS and os.path.basename(os.path.dirname(path)) in ("bin", "Scripts"):
        return HIDDEN  # the script that pip generated for our entry point
    if path.startswith(PACKAGE) or (f"{os.sep}torch{os.sep}" in path and any(p in path for p in _PACKAGES)):
        return HIDDEN
    if any(p in path for p in _PACKAGES):
        return LIBRARY
    return HIDDEN if path.startswith(_STDLIB) else USER


def user_line() -> Line:
    """File and line of the innermost user frame.

    Can be called from any depth: Clew's own frames are skipped by their file, so callers need not count them.
    Each frame takes less than 0.1 microseconds.
    """
    frame: FrameType | None = sys._getframe(1)
    fallback: FrameType | None = None
    while frame is not None:
        filename = frame.f_code.co_filename
        kind = _kinds.get(filename)  # runs at every backward: this saves a call per frame
        if kind is None:
            kind = kind_of(filename)
        if kind == USER:
            return filename, frame.f_lineno
        if kind == LIBRARY and fallback is None:
            fallback = frame
        frame = frame.f_back
    if fallback is not None:
        return fallback.f_code.co_filename, fallback.f_lineno
    return None, None


def called_by_us(function: str) -> bool:
    """Whether the nearest frame of this function name was called from Clew's own code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    caller = frame.f_back if frame is not None else None
    return caller is not None and caller.f_code.co_filename.startswith(PACKAGE)


def user_frame(traceback: TracebackType | None) -> Line:
    """File and line of the innermost user frame that an exception passed through."""
    found: Line = (None, None)
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if kind_of(code.co_filename) == USER:
            found = code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next
    return found


def line_of_creation(instance: object) -> Line:
    """Where `instance`, whose `__init__` is running, is being created: outside its own `__init__` chain."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if kind_of(code.co_filename) != HIDDEN and not _is_own_init(frame, instance):
            return code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None, None


def _is_own_init(frame: FrameType, instance: object) -> bool:
    code = frame.f_code
    if code.co_name != "__init__" or not code.co_argcount:
        return False
    return frame.f_locals.get(code.co_varnames[0]) is instance


def name_in_caller(value: object) -> str | None:
    """The user's name for this object: a variable in the calling frames, or an attribute of their `self`."""
    frame: FrameType | None = sys._getframe(1)
    seen = 0
    while frame is not None and seen < 3:
        if kind_of(frame.f_code.co_filename) == USER:
            seen += 1
            name = _name_in_frame(frame, value)
            if name is not None:
                return name
        frame = frame.f_back
    return None


def _name_in_frame(frame: FrameType, value: object) -> str | None:
    for scope in (frame.f_locals, frame.f_globals):
        for name, found in list(scope.items()):
            if found is value and name != "self" and not name.startswith("_"):
                return str(name)
    owner = frame.f_locals.get("self")
    attributes = {**getattr(owner, "__dict__", {}), **getattr(owner, "_modules", {})}
    return next((str(n) for n, found in attributes.items() if found is value), None)


def names_in_callers(value: object) -> list[str]:
    """All names that the program's variables give an object, from the innermost function outwards."""
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
