"""Finds a model by the name the user gives: `net.py:Net`, `net.py:build(depth=3)`, `package.net:model`."""

from __future__ import annotations

import ast
import builtins
import difflib
import importlib
import importlib.util
import inspect
import sys
import traceback
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from clew.hooks.entry.user_line import USER, kind_of
from clew.labs.network.network_inputs import POSITIONAL, BadInputError, parameters_of


def locate_model(text: str, *, meta: bool = False) -> nn.Module:
    """The model itself; a class or function is called, on the meta device if requested."""
    place, expression = _split(text)
    module: ModuleType = _loaded(place)
    expression = expression or _only_model(module, place)
    with torch.device("meta") if meta else nullcontext():
        return _made(module, expression, place)


def _split(text: str) -> tuple[str, str]:
    if Path(text).suffix == ".py":
        return text, ""
    place, colon, expression = text.partition(".py:")
    if colon:
        return f"{place}.py", expression
    place, _, expression = text.partition(":")
    return place, expression


def _loaded(place: str) -> ModuleType:
    if not place.endswith(".py"):
        sys.path.insert(0, "")
        found: ModuleType = _running(place, lambda: importlib.import_module(place))
        return found
    path = Path(place)
    if not path.is_file():
        close = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.py")], n=1)
        hint = f"; did you mean {path.with_name(close[0])}?" if close else ""
        raise BadInputError(f"no such file: {place}{hint}")
    sys.path.insert(0, str(path.resolve().parent))
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else "__clew_shown__"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look themselves up there
    loader = spec.loader
    try:
        _running(place, lambda: loader.exec_module(module))
    except BadInputError:
        sys.modules.pop(name, None)  # as Python does: a half-executed module is not kept
        raise
    return module


def _running(what: str, action: Any) -> Any:
    """Runs the user's code; an error is reported in one line, with the user's line."""
    try:
        return action()
    except SystemExit as error:
        raise BadInputError(
            f"{what} ended the program when it was loaded: sys.exit({error.code!r})"
        ) from error
    except Exception as error:
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        raise BadInputError(f"{what} failed: {type(error).__name__}: {message}{_where(error)}") from error


def _where(error: Exception) -> str:
    """The user's own line, if the traceback has one; a file that can't be compiled has not run."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({Path(error.filename).name}:{error.lineno})"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    theirs = [f for f in frames if kind_of(f.filename) == USER]
    if not theirs and not frames:
        return ""
    last = (theirs or frames)[-1]
    return f" ({Path(last.filename).name}:{last.lineno})"


def _only_model(module: ModuleType, place: str) -> str:
    """The name to use if none was given: the only model, or the only class that no other uses."""
    models = [n for n, v in vars(module).items() if isinstance(v, nn.Module)]
    classes = [n for n, v in vars(module).items() if _is_own_model_class(module, v)]
    for found in (models, classes):
        if len(found) == 1:
            return found[0]
    if not models and not classes:
        raise BadInputError(f"{place} has no model; write {place}:NAME with a class, function or variable")
    raise BadInputError(
        f"which model of {place}? {', '.join(f'{place}:{n}' for n in [*models, *classes][:6])}"
    )


def _is_own_model_class(module: ModuleType, value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, nn.Module) and value.__module__ == module.__name__


def _made(module: ModuleType, expression: str, place: str) -> nn.Module:
    try:
        tree = ast.parse(expression, mode="eval").body
    except SyntaxError as error:
        raise BadInputError(f"{expression!r} is neither a name nor a call") from error
    first = next((n.id for n in ast.walk(tree) if isinstance(n, ast.Name)), None)
    if first is not None and not hasattr(module, first) and not hasattr(builtins, first):
        near = difflib.get_close_matches(first, [n for n in vars(module) if not n.startswith("_")], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise BadInputError(f"{place} has no {first!r}{hint}")
    code = compile(ast.Expression(tree), f"<{place}>", "eval")
    made = _running(expression, lambda: eval(code, vars(module)))
    if not isinstance(made, nn.Module) and callable(made):
        made = _running(_call_text(expression, made), made)
    if not isinstance(made, nn.Module):
        raise BadInputError(f"{expression} is a {type(made).__name__}, not a model")
    return made


def _call_text(expression: str, function: Any) -> str:
    """`Net()`, or a call with the arguments it needs and was not given."""
    parameters = parameters_of(function)
    needed = [p.name for p in parameters if p.default is p.empty and p.kind in POSITIONAL]
    if needed:
        wanted = ", ".join(f"{name}=…" for name in needed)
        raise BadInputError(f"{expression} needs arguments: write it as a call, {expression}({wanted})")
    return f"{expression}()"
