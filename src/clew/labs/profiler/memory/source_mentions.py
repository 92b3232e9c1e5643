"""Lines that make an object grow: `losses.append(loss)`, `total += loss`, `kept[key] = value`."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass
from functools import lru_cache

_ADDING = {"append", "extend", "insert", "add", "appendleft", "update", "setdefault"}
_REMOVING = {"pop", "popleft", "popitem", "clear", "remove", "discard"}


@dataclass(frozen=True)
class Mentions:
    """Lines of one file."""

    added: tuple[int, ...] = ()  # something is put in
    summed: tuple[int, ...] = ()  # added to itself
    limited: bool = False  # something is taken out, or the length is looked at


@dataclass(frozen=True)
class Target:
    """What is looked for: the last name of it and the subscripts after that."""

    name: str
    subscripts: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Target:
        """Of `self.history['loss']`."""
        head, *rest = text.replace("`", "").split("[")
        return cls(head.rpartition(".")[2], tuple(part.rstrip("]") for part in rest))

    def is_at(self, node: ast.AST) -> bool:
        """Whether an expression is this; a subscript that is computed may be any."""
        subscripts: list[str | None] = []
        while isinstance(node, ast.Subscript):
            constant = node.slice.value if isinstance(node.slice, ast.Constant) else None
            subscripts.insert(0, None if constant is None else repr(constant))
            node = node.value
        named = (
            node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        )
        if named != self.name or len(subscripts) != len(self.subscripts):
            return False
        return all(s is None or s == own for s, own in zip(subscripts, self.subscripts, strict=True))


def mentions(file: str, name: str) -> Mentions:
    """What a file does with a name."""
    tree = _parsed(file)
    if tree is None:
        return Mentions()
    target = Target.of(name)
    added, summed, limited = [], [], False
    for node in ast.walk(tree):
        if _adds(node, target):
            added.append(node.lineno)  # type: ignore[attr-defined]
        elif _sums(node, target):
            summed.append(node.lineno)  # type: ignore[attr-defined]
        elif _limits(node, target):
            limited = True
    return Mentions(tuple(sorted(added)), tuple(sorted(summed)), limited)


def calls_of(file: str, methods: tuple[str, ...]) -> tuple[int, ...]:
    """Lines on which one of these methods is called."""
    tree = _parsed(file)
    nodes = ast.walk(tree) if tree is not None else ()
    return tuple(
        sorted(
            node.lineno
            for node in nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in methods
        )
    )


@lru_cache(maxsize=64)
def _parsed(file: str) -> ast.Module | None:
    text = "".join(linecache.getlines(file))
    if not text or len(text) > 2_000_000:
        return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _adds(node: ast.AST, target: Target) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _ADDING and target.is_at(node.func.value)
    if isinstance(node, ast.Assign):
        return any(isinstance(t, ast.Subscript) and target.is_at(t.value) for t in node.targets)
    if isinstance(node, ast.AugAssign):
        listed = isinstance(node.value, (ast.List, ast.ListComp, ast.Tuple))
        return listed and target.is_at(node.target)
    return False


def _sums(node: ast.AST, target: Target) -> bool:
    """`total += loss`, and `total = total + loss`."""
    if isinstance(node, ast.AugAssign):
        return target.is_at(node.target)
    if isinstance(node, ast.Assign):
        within = any(target.is_at(part) for part in ast.walk(node.value))
        return within and any(target.is_at(part) for one in node.targets for part in _parts(one))
    return False


def _parts(target: ast.AST) -> list[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return list(target.elts)
    return [target] if isinstance(target, ast.expr) else []


def _limits(node: ast.AST, target: Target) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _REMOVING and target.is_at(node.func.value)
    if isinstance(node, ast.Delete):
        return any(isinstance(t, ast.Subscript) and target.is_at(t.value) for t in node.targets)
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        return any(_is_length(part, target) for part in ast.walk(node.test))
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):  # kept = kept[-100:]
        return isinstance(node.value.slice, ast.Slice) and target.is_at(node.value.value)
    return False


def _is_length(node: ast.AST, target: Target) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "len":
        return False
    return any(target.is_at(argument) for argument in node.args)
