"""The global variables of a script that its functions and classes read.

Only definitions of a script are executed when a step is run again: `mask = make_mask()` is not. What
the code of the step reads of such variables is saved with it.
"""

from __future__ import annotations

import ast
import dis
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

from torch import nn

from clew.labs.replay.repro.importable_names import SCRIPT, defined_in, own_file
from clew.labs.replay.repro.saved_description import SavedDescription

_ALWAYS = {"forward", "backward", "setup_context"}  # called by torch, by no name in the program


def describe_globals(description: SavedDescription, recipe: ast.AST | None) -> dict[str, dict[str, Any]]:
    """By file and name; only for the script itself, since imports set the variables of other files."""
    script = sys.modules.get(SCRIPT)
    file = own_file(script)
    if script is None or file is None:
        return {}
    used = set() if recipe is None else {n.attr for n in ast.walk(recipe) if isinstance(n, ast.Attribute)}
    described: dict[str, Any] = {}
    while True:
        read = _globals_read(_reached(description, vars(script), used))
        new = [n for n in sorted(read - set(described)) if n in vars(script) and not _from_source(n, file)]
        if not new:
            return {file: described} if described else {}
        for name in new:  # they may refer to further classes
            described[name] = description.of(vars(script)[name], name)


def _from_source(name: str, file: str) -> bool:
    """A constant that is set once is read from the source, where it may have been fixed."""
    return name.startswith("__") or defined_in(file).get(name) == 1


def _reached(description: SavedDescription, scope: dict[str, Any], used: set[str]) -> list[types.CodeType]:
    """The script's code that the step may run, starting from the saved objects."""
    found: dict[int, types.CodeType] = {}
    things: dict[int, Any] = {}
    for thing in list(description.named.values()):
        things.update({id(part): part for part in _with_bases(thing)})
    while True:
        size = len(found), len(things), len(used)
        for thing in list(things.values()):
            for code in _codes(thing, used):
                found[id(code)] = code
                used.update(code.co_names)
        for name in _globals_read(found.values()):
            things.update({id(part): part for part in _with_bases(scope.get(name))})
        if size == (len(found), len(things), len(used)):
            return list(found.values())


def _with_bases(thing: Any) -> Iterator[Any]:
    """Functions and classes of the script."""
    for part in thing.__mro__ if isinstance(thing, type) else (thing,):
        if isinstance(part, (type, types.FunctionType)) and part.__module__ == SCRIPT:
            yield part


def _codes(thing: Any, used: set[str]) -> Iterator[types.CodeType]:
    if isinstance(thing, types.FunctionType):
        yield from _with_inner(thing.__code__)
        return
    for name, value in list(vars(thing).items()):
        if name not in used and name not in _ALWAYS and not name.startswith("__"):
            continue
        if name == "__init__" and issubclass(thing, nn.Module):  # they are created without it
            continue
        function = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if isinstance(function, types.FunctionType):
            yield from _with_inner(function.__code__)


def _with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _with_inner(constant)


def _globals_read(codes: Iterable[types.CodeType]) -> set[str]:
    return {
        str(step.argval)
        for code in codes
        for step in dis.get_instructions(code)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
