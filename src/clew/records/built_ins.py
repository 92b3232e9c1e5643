"""Built-in checks and experiments: every class of a kind that the folders of a package define.

A new check or experiment is therefore a new file, and no list names it."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


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
