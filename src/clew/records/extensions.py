"""Where checks, experiments and other extensions are found: built in, registered, or offered by packages.

A built-in check or experiment is a class in a file of its own, and no list names it (`built_ins`).

A package offers an extension under an entry point group, for example `clew.checks`. Entry points are read on
first use; one that cannot be loaded is kept with the reason, and does not affect the others.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from types import ModuleType
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


def built_ins(kind: type, package: ModuleType, leave_out: Collection[str] = ()) -> Iterator[Any]:
    """The classes of this kind in the files of the package's folders, except those with a name in
    `leave_out`. The import system finds the files, so that a zip works as well."""
    for folder in iter_modules(package.__path__):
        if not folder.ispkg or folder.name in leave_out:
            continue
        name = f"{package.__name__}.{folder.name}"
        for file in iter_modules(import_module(name).__path__, f"{name}."):
            members = vars(import_module(file.name)).values()
            yield from (member for member in members if _is_defined_in(file.name, member, kind))


def _is_defined_in(module: str, member: object, kind: type) -> bool:
    """Whether a module defines this class, and does not only import it."""
    return (
        isinstance(member, type)
        and member.__module__ == module
        and issubclass(member, kind)
        and not inspect.isabstract(member)
    )
