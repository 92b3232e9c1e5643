"""A place to extend: what was registered in this process, and what installed packages offer.

A package offers an extension under an entry point group, `clew.checks` for example. Entry points are read
when they are first asked for; one that can't be loaded is kept with the reason, and harms nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

Extension = TypeVar("Extension")


class CannotRegister(Exception):  # noqa: N818 - reads as what it is
    """What was given can't be used as an extension, or its name is taken."""


class Extensions(Generic[Extension]):
    """All extensions of one kind, by name; one registered here goes before an installed one of that name."""

    def __init__(self, group: str, made: Callable[[Any, str], Extension]) -> None:
        self.group = group
        self._made = made  # out of what an entry point names, and the entry point's name
        self.registered: dict[str, Extension] = {}
        self.listeners: list[Callable[[str, Extension], None]] = []  # told of each that is registered
        self._installed: dict[str, Extension] | None = None
        self._broken: dict[str, str] = {}

    def add(self, name: str, extension: Extension) -> None:
        """Register; a name that was registered before is replaced."""
        self.registered[name] = extension
        for listener in list(self.listeners):
            listener(name, extension)

    def all(self) -> dict[str, Extension]:
        """Registered ones, then those of installed packages."""
        return {**self.registered, **{n: e for n, e in self.installed().items() if n not in self.registered}}

    def installed(self) -> dict[str, Extension]:
        """Those that packages offer and that could be loaded."""
        if self._installed is None:
            self._installed = {}
            for point in entry_points(group=self.group):
                self._load(point, self._installed)
        return self._installed

    def _load(self, point: Any, found: dict[str, Extension]) -> None:
        try:
            found[point.name] = self._made(point.load(), point.name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - someone else's package must not break a run
            self._broken[point.name] = f"could not be loaded: {type(error).__name__}: {error}"

    def broken(self) -> dict[str, str]:
        """Entry points that could not be loaded, and why."""
        self.installed()
        return dict(self._broken)

    def forget(self) -> None:
        """Start again, as a new process would: for tests."""
        self.registered.clear()
        self.listeners.clear()
        self._installed, self._broken = None, {}


def must_be_named(kind: str, name: str) -> str:
    """The name, if it may be one."""
    if not NAME.fullmatch(name):
        raise CannotRegister(f"{kind}'s name consists of lower-case words joined by hyphens, not {name!r}")
    return name


def name_of(function: Any) -> str:
    """`loss_above_ten` and `LossAboveTen` as `loss-above-ten`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(getattr(function, "__name__", "")))
    return words.replace("_", "-").lower()
