"""Finds where a loss was computed: in the function that calls `backward()`, or in one that passed it.

A trainer often has a method that only calls `loss.backward()`. Then the loss is searched for in the
caller; if that method has already returned, in the function that is still running.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from clew.hooks.entry.user_line import USER, kind_of
from clew.labs.snapshot.users_step.program_slice import stored
from clew.labs.snapshot.users_step.side_effects import UNKNOWN, CannotRerun, SideEffectChecker, definition_of
from clew.records.site import Line

BACKWARDS = ("backward", "manual_backward")
ELSEWHERE = "the loss was computed in another function"
_CALLERS = (
    "autograd",
    "self",
    "accelerator",
    "fabric",
    "engine",
    "model_engine",
)  # `backward()` of these takes the loss
_DEEPEST = 6  # functions that pass a loss to one another


@dataclass(frozen=True)
class Before:
    """The statements that ran before one, since the innermost loop began; that one, and the loop."""

    statements: list[ast.stmt]
    statement: ast.stmt
    loop: ast.For | None = None
    beside: tuple[ast.stmt, ...] = ()  # all that share its line


@dataclass(frozen=True)
class LossPlace:
    """A running function, or one that has returned: the values of its names, and its statements."""

    scope: dict[str, Any]
    body: list[ast.stmt]
    file: str
    arguments: ast.arguments | None = None
    frame: FrameType | None = None  # None: it has returned
    called: tuple[LossPlace, Before, ast.Call] | None = None  # its caller, where already known


@dataclass(frozen=True)
class LossMade:
    """The expression that is the loss, and what ran before it."""

    place: LossPlace
    before: Before
    loss: ast.expr


def where_made(frame: FrameType, line: int) -> LossMade:
    """Where the loss of the `backward()` on this line was computed; raises CannotRerun."""
    place = place_of(frame)
    before = before_line(place.body, line)
    inside = _entered(place, before)
    if inside is not None:
        place, before = inside
    loss = loss_expression(before.statement)
    for _ in range(_DEEPEST):
        if not _is_argument(loss, place, before):
            break
        outer = place.called or _caller(place)
        if outer is None:
            raise CannotRerun(ELSEWHERE)
        name = loss.id if isinstance(loss, ast.Name) else ""
        loss = _argument(outer[2], place.arguments, name)
        place, before = outer[:2]
    return LossMade(place, before, loss)


def place_of(frame: FrameType) -> LossPlace:
    """A running function; raises CannotRerun if its source is not available."""
    found = _definition(frame)
    arguments = found.args if isinstance(found, ast.FunctionDef) else None
    scope = {**frame.f_globals, **frame.f_locals}
    return LossPlace(scope, found.body, frame.f_code.co_filename, arguments, frame)


def _definition(frame: FrameType) -> ast.Module | ast.FunctionDef:
    code = frame.f_code
    text = "".join(linecache.getlines(code.co_filename, frame.f_globals))
    if not text:
        raise CannotRerun("its source can't be read")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise CannotRerun("its source can't be parsed") from error
    if code.co_name == "<module>":
        return tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    raise CannotRerun("the function that called backward() was not found in its file")


def before_line(body: list[ast.stmt], line: int, wanted: Callable[[ast.stmt], bool] | None = None) -> Before:
    """What ran before the statement on this line; if several share it, the one that `wanted` accepts."""
    wanted = wanted or calls_backward
    before: list[ast.stmt] = []
    loop: ast.For | None = None
    while True:
        there = [n for n, s in enumerate(body) if s.lineno <= line <= (s.end_lineno or s.lineno)]
        position = next((n for n in there if wanted(body[n])), there[0] if there else None)
        if position is None:
            raise CannotRerun("the call of backward() was not found")
        statement = body[position]
        before += body[:position]
        blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        inner = next((b for b in blocks if b and b[0].lineno <= line <= (b[-1].end_lineno or 0)), None)
        if inner is None or isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            return Before(before, statement, loop, tuple(body[n] for n in there))
        if isinstance(statement, (ast.For, ast.While)):
            before, loop = [], statement if isinstance(statement, ast.For) else None
        body = inner


def calls_backward(statement: ast.AST) -> bool:
    """Several statements may share a line: `optimizer.zero_grad(); loss.backward()`."""
    return any(isinstance(n, ast.Attribute) and n.attr in BACKWARDS for n in ast.walk(statement))


def loss_expression(statement: ast.stmt) -> ast.expr:
    """What `backward()` is called on in this statement."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in BACKWARDS:
                continue
            value = node.func.value
            named = isinstance(value, (ast.Name, ast.Attribute))
            elsewhere = node.args and named and ast.unparse(value).rpartition(".")[2] in _CALLERS
            loss = node.args[0] if elsewhere or node.func.attr == "manual_backward" else value
            if isinstance(loss, ast.Call) and isinstance(loss.func, ast.Attribute):
                return loss.args[0] if loss.func.attr == "scale" and loss.args else loss
            return loss
    raise CannotRerun("backward() is not called on a named variable")


# -- from a function to the one that gave it the loss --


def _is_argument(loss: ast.expr, place: LossPlace, before: Before) -> bool:
    """Whether the loss was passed in as an argument and not changed here."""
    if not isinstance(loss, ast.Name) or place.arguments is None:
        return False
    given = {a.arg for a in _positional(place.arguments) + place.arguments.kwonlyargs}
    return loss.id in given and not any(loss.id in stored(s) for s in before.statements)


def _positional(arguments: ast.arguments) -> list[ast.arg]:
    return arguments.posonlyargs + arguments.args


def _caller(place: LossPlace) -> tuple[LossPlace, Before, ast.Call] | None:
    """The user's function that called this one, and the call."""
    if place.frame is None:
        return None
    name = place.frame.f_code.co_name
    frame = next(user_frames(place.frame.f_back), None)
    if frame is None:
        return None
    outer = place_of(frame)
    before = before_line(outer.body, frame.f_lineno, lambda s: bool(_calls_of(name, s)))
    calls = _calls_of(name, before.statement)
    return (outer, before, calls[0]) if len(calls) == 1 else None


def user_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """This frame and those above it that run the program's own code."""
    while frame is not None:
        if kind_of(frame.f_code.co_filename) == USER:
            yield frame
        frame = frame.f_back


def _calls_of(name: str, statement: ast.stmt) -> list[ast.Call]:
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return [c for c in calls if ast.unparse(c.func).rpartition(".")[2] == name]


def _argument(call: ast.Call, arguments: ast.arguments | None, name: str) -> ast.expr:
    """The expression passed for an argument."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [a.arg for a in _positional(arguments)] if arguments is not None else []
    bound = names[:1] in (["self"], ["cls"]) and isinstance(call.func, ast.Attribute)
    position = names.index(name) - bound if name in names else len(call.args)
    if position >= len(call.args) or any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
        raise CannotRerun(ELSEWHERE)
    return call.args[position]


# -- from a function to one that it has called, which has returned --


def returned_from(line: Line) -> tuple[FrameType, int] | None:
    """The running function that called the one containing this line, and the line of that call."""
    for frame in user_frames(sys._getframe(1)):
        try:
            place = place_of(frame)
            before = before_line(place.body, frame.f_lineno)
        except CannotRerun:
            continue
        for statement in reversed([*before.statements, *before.beside]):
            for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
                function = _users_function(place, call)
                if function is not None and _has_line(function.__code__, line):
                    return frame, statement.lineno
    return None


def _has_line(code: types.CodeType, line: Line) -> bool:
    return code.co_filename == line[0] and any(number == line[1] for _, _, number in code.co_lines())


def _users_function(place: LossPlace, call: ast.Call) -> Any:
    """The user's function that is called there, if known."""
    target = SideEffectChecker(place.scope).resolve(call.func)
    if not isinstance(target, (types.FunctionType, types.MethodType)):
        return None
    function = inspect.unwrap(target.__func__ if isinstance(target, types.MethodType) else target)
    users = isinstance(function, types.FunctionType) and kind_of(function.__code__.co_filename) == USER
    return function if users else None


def _entered(place: LossPlace, before: Before) -> tuple[LossPlace, Before] | None:
    """The function that is called in the statement, if it is the one that calls `backward()`."""
    for call in (node for node in ast.walk(before.statement) if isinstance(node, ast.Call)):
        function = _users_function(place, call)
        definition = definition_of(function) if function is not None else None
        if definition is None:
            continue
        calls = (node for node in ast.walk(definition) if isinstance(node, ast.Call))
        line = next((inner.lineno for inner in calls if _is_backward(inner)), None)
        if line is None:
            continue
        checker = SideEffectChecker(place.scope)
        scope = checker.scope_of(function, checker.resolve(call.func), definition, call)
        known = {name: value for name, value in scope.items() if value is not UNKNOWN}
        file = function.__code__.co_filename
        inner = LossPlace(known, definition.body, file, definition.args, None, (place, before, call))
        return inner, before_line(definition.body, line)
    return None


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in BACKWARDS


def frame_of(line: Line) -> FrameType | None:
    """The running function that contains this line, if it has not returned."""
    return next((f for f in user_frames(sys._getframe(1)) if _has_line(f.f_code, line)), None)
