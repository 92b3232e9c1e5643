"""What a saved step takes from the program by name: classes, functions, modules and global variables.

Names are verified by looking them up. Only definitions of a script are executed when a step is run again:
`mask = make_mask()` is not. What the code of the step reads of such variables is saved with it.
"""

from __future__ import annotations

import ast
import dis
import functools
import itertools
import operator
import os
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from clew.hooks.entry.user_line import USER, kind_of
from clew.labs.replay.repro.saved_sources import definable

if TYPE_CHECKING:
    from clew.labs.replay.repro.saved_description import SavedDescription

_FUNCTION_HOMES = ["torch", "torch.nn.functional", "torch.special", "torch.linalg", "math", "operator"]
_FUNCTION_HOMES += ["torch.return_types"]
SCRIPT = "__main__"
_ALWAYS = {"forward", "backward", "setup_context"}  # called by torch, by no name in the program


def name_of(thing: Any) -> dict[str, Any] | None:
    """A class or function as module and name."""
    homes = [getattr(thing, "__module__", None), *_FUNCTION_HOMES]
    names = [getattr(thing, "__qualname__", None), getattr(thing, "__name__", None)]  # torch.tanh has two
    for home, name in itertools.product(homes, names):
        module = sys.modules.get(home) if isinstance(home, str) else None
        if module is not None and isinstance(name, str) and _reaches(module, name, thing):
            return _as_name(module, str(home), name)
    return _by_variable(thing)


def import_of(module: types.ModuleType) -> dict[str, Any] | None:
    """A module that can be imported by name."""
    name = module.__name__
    if name == SCRIPT or sys.modules.get(name) is not module:
        return None
    return {"kind": "import", "module": name, "file": own_file(module)}


def live(value: dict[str, Any]) -> Any:
    """The object that `name_of` or `import_of` named, in the running program."""
    found = sys.modules[value["module"]]
    if value["kind"] == "import":
        return found
    return operator.attrgetter(value["name"])(found)


def own_file(module: Any) -> str | None:
    """The file of a module that belongs to the program."""
    file = getattr(module, "__file__", None)
    return os.path.abspath(file) if file is not None and kind_of(file) == USER else None


@functools.lru_cache(maxsize=4)
def defined_in(file: str) -> dict[str, int]:
    """What a script defines without being run: see `saved_sources.definable`."""
    try:
        return definable(ast.parse(Path(file).read_text(encoding="utf-8")).body)
    except (OSError, SyntaxError, ValueError):
        return {}


def _by_variable(thing: Any) -> dict[str, Any] | None:
    """A lambda or decorated function, under the name it has in its module."""
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    if module is None or not isinstance(thing, types.FunctionType):
        return None
    name = next((n for n, value in list(vars(module).items()) if value is thing), None)
    return None if name is None else _as_name(module, module.__name__, name)


def _as_name(module: Any, home: str, name: str) -> dict[str, Any] | None:
    """Only definitions of the script are executed, so a name in it must be among them."""
    file = own_file(module)
    if home == SCRIPT and (file is None or name.partition(".")[0] not in defined_in(file)):
        return None
    return {"kind": "name", "module": home, "name": name, "file": file}


def _reaches(module: Any, name: str, thing: Any) -> bool:
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is thing


# -- global variables of the script --


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
