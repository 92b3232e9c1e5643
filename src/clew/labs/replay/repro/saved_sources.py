"""Finds the classes and functions of a saved step in the program's own source.

Of a script only imports, functions, classes and constants are executed, never the training. This
text is part of the `rebuild.py` in every repro folder, so it must not import Clew.
"""

from __future__ import annotations
import __future__

import ast
import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PLAIN_CALLS = {"torch", "nn", "np", "numpy", "math", "os", "Path", "pathlib", "int", "float", "str", "bool"}
_PLAIN_CALLS |= {"len", "range", "dict", "list", "tuple", "set", "max", "min", "namedtuple", "partial"}
_PLAIN_CALLS |= {"slice", "frozenset", "collections", "functools", "Enum", "enum", "TypeVar", "logging"}
_EFFECTS = {"load", "save", "manual_seed", "compile", "makedirs", "mkdir", "remove", "system", "seed"}
_modules: dict[str, tuple[types.ModuleType, dict[str, str]]] = {}
_failed: dict[str, list[ast.stmt]] = {}  # of these files, what may need a variable that was saved


class CannotRebuild(Exception):  # noqa: N818 - reads as what it is
    """What is missing, in one line."""


class NotSaved(CannotRebuild):
    """A value that has no place in JSON or safetensors."""


def find_modules_in(paths: list[str]) -> None:
    """Make the program's own modules importable, as they were when the step was saved."""
    for path in reversed(paths):
        if path not in sys.path and Path(path).is_dir():
            sys.path.insert(0, path)


def find(value: dict[str, Any]) -> Any:
    """A module, class or function: installed, or from the program's own file."""
    module, problems = _module(value)
    if value["kind"] == "import":
        return module
    found = module
    for part in value["name"].split("."):
        found = getattr(found, part, None)
    if found is None:
        why = problems.get(value["name"].split(".")[0]) or "it is no longer defined there"
        raise CannotRebuild(f"{value['name']} of {value.get('file') or value['module']}: {why}")
    return found


def _module(value: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    name, file, why = value["module"], value.get("file"), ""
    if name != "__main__":
        try:
            module = importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - it is the program's own code
            why = f" ({type(error).__name__}: {error})"
        else:
            # Another program may have a module of the same name.
            if not file or not Path(file).is_file() or _same_file(getattr(module, "__file__", None), file):
                return module, {}
    if not file or not Path(file).is_file():
        raise CannotRebuild(f"{value.get('name', name)} is needed from {file or name}{why}")
    return definitions(file)


def _same_file(one: str | None, other: str) -> bool:
    return one is not None and Path(one).resolve() == Path(other).resolve()


def definitions(file: str) -> tuple[types.ModuleType, dict[str, str]]:
    """A script's imports, functions, classes and constants, without running the rest of it."""
    if file not in _modules:
        module = types.ModuleType(f"_saved_{len(_modules)}")
        module.__file__ = file
        sys.modules[module.__name__] = module  # dataclasses look themselves up
        _modules[file] = (module, {})
        try:
            body = ast.parse(Path(file).read_text(encoding="utf-8"), file).body
        except SyntaxError as error:
            raise CannotRebuild(f"{file} can't be parsed: line {error.lineno}: {error.msg}") from error
        _define(file, [statement for statement in outermost(body) if _defines(statement)])
    return _modules[file]


def _define(file: str, statements: list[ast.stmt]) -> None:
    module, problems = _modules[file]
    for statement in statements:
        postponed = getattr(module, "annotations", None) is __future__.annotations
        flags = __future__.annotations.compiler_flag if postponed else 0
        code = compile(ast.Module([statement], []), file, "exec", flags, dont_inherit=True)
        try:
            exec(code, module.__dict__)
            problems.update(dict.fromkeys(names_set(statement), ""))
        except Exception as error:  # noqa: BLE001 - reported when the name is needed
            _failed.setdefault(file, []).append(statement)
            why = problems.get(getattr(error, "name", None) or "") or f"{type(error).__name__}: {error}"
            problems.update(dict.fromkeys(names_set(statement), why))


def why_undefined(name: str | None) -> str | None:
    """For a name that was missing when a function ran: why a script did not define it."""
    known = [
        (file, problems[name]) for file, (_, problems) in _modules.items() if name and problems.get(name)
    ]
    return f"{name} of {known[0][0]}: {known[0][1]}" if known else None


def define_again(file: str) -> None:
    """Try the failed definitions again: they may have needed a variable that exists by now."""
    _define(file, _failed.pop(file, []))


def outermost(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a script, also those below `if __name__ == "__main__"`."""
    for statement in body:
        if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
            yield from statement.body
        else:
            yield statement


def definable(body: list[ast.stmt]) -> dict[str, int]:
    """The names that `definitions` would set, and how many statements set each, those of others included."""
    times: dict[str, int] = {}
    made: set[str] = set()
    for statement in outermost(body):
        for name in names_set(statement):
            times[name] = times.get(name, 0) + 1
        if _defines(statement):
            made.update(names_set(statement))
    return {name: times[name] for name in made}


def _defines(statement: ast.stmt) -> bool:
    if isinstance(
        statement, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    ):
        return True
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return all(_is_plain(n) for n in ast.walk(statement) if isinstance(n, ast.Call))
    if isinstance(statement, ast.Try):
        return all(_defines(inner) for inner in statement.body)
    return False


def _is_plain(call: ast.Call) -> bool:
    function: ast.expr = call.func
    if isinstance(function, ast.Attribute) and function.attr in _EFFECTS:
        return False
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and function.id in _PLAIN_CALLS


def names_set(statement: ast.stmt) -> list[str]:
    """The names that a statement binds in its own scope."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.Try):
        return [name for inner in statement.body for name in names_set(inner)]
    return [n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
