"""Registry of extensions of one kind: registered in this process, or offered by installed packages.

A package offers an extension under an entry point group, for example `clew.checks`. Entry points are read on
first use; one that cannot be loaded is kept with the reason, and does not affect the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

Extension = TypeVar("Extension")


class CannotRegister(Exception):  # noqa: N818 - reads as what it is
    """The given object cannot be used as an extension, or its name is taken."""


class Extensions(Generic[Extension]):
    """All extensions of one kind, by name; one registered here overrides an installed one of that name."""

    def __init__(self, group: str, made: Callable[[Any, str], Extension]) -> None:
        self.group = group
        self._made = made  # called with the object that an entry point names, and the entry point's name
        self.registered: dict[str, Extension] = {}
        self.listeners: list[Callable[[str, Extension], None]] = []  # called for each new extension
        self._installed: dict[str, Extension] | None = None
        self._broken: dict[str, str] = {}

    def add(self, name: str, extension: Extension) -> None:
        """Register an extension; replaces one registered under the same name."""
        self.registered[name] = extension
        for listener in list(self.listeners):
            listener(name, extension)

    def all(self) -> dict[str, Extension]:
        """Registered extensions, then those of installed packages."""
        return {**self.registered, **{n: e for n, e in self.installed().items() if n not in self.registered}}

    def installed(self) -> dict[str, Extension]:
        """Extensions that packages offer and that could be loaded."""
        if self._installed is None:
            self._installed = {}
            for point in entry_points(group=self.group):
                self._load(point, self._installed)
        return self._installed

    def _load(self, point: Any, found: dict[str, Extension]) -> None:
        try:
            found[point.name] = self._made(point.load(), point.name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - another package must not break a run
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
    """Return the name if it is valid, otherwise raise `CannotRegister`."""
    if not NAME.fullmatch(name):
        raise CannotRegister(f"{kind}'s name consists of lower-case words joined by hyphens, not {name!r}")
    return name


def name_of(function: Any) -> str:
    """`loss_above_ten` and `LossAboveTen` as `loss-above-ten`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(getattr(function, "__name__", "")))
    return words.replace("_", "-").lower()
