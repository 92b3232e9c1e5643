"""Import paths of classes, functions and modules, verified by looking them up."""

from __future__ import annotations

import ast
import functools
import itertools
import os
import sys
import types
from pathlib import Path
from typing import Any

from clew.hooks.entry.user_line import USER, kind_of
from clew.labs.replay.repro.saved_sources import definable

_FUNCTION_HOMES = ["torch", "torch.nn.functional", "torch.special", "torch.linalg", "math", "operator"]
_FUNCTION_HOMES += ["torch.return_types"]
SCRIPT = "__main__"


def name_of(thing: Any) -> dict[str, Any] | None:
    """A class or function as module and name."""
    homes = [getattr(thing, "__module__", None), *_FUNCTION_HOMES]
    names = [getattr(thing, "__qualname__", None), getattr(thing, "__name__", None)]  # torch.tanh has two
    for home, name in itertools.product(homes, names):
        module = sys.modules.get(home) if isinstance(home, str) else None
        if module is not None and isinstance(name, str) and _reaches(module, name, thing):
            return _checked({"kind": "name", "module": home, "name": name, "file": own_file(module)})
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
    for part in value["name"].split("."):
        found = getattr(found, part)
    return found


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
    if name is None:
        return None
    return _checked({"kind": "name", "module": module.__name__, "name": name, "file": own_file(module)})


def _checked(found: dict[str, Any]) -> dict[str, Any] | None:
    """Only definitions of the script are executed, so the name must be among them."""
    if found["module"] != SCRIPT:
        return found
    first = found["name"].partition(".")[0]
    return found if found["file"] and first in defined_in(found["file"]) else None


def _reaches(module: Any, name: str, thing: Any) -> bool:
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is thing
