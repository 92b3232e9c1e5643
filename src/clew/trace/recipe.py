"""The statements of the user's own that made the loss, taken from the frame that called `backward()`.

Going back from the loss, the statements that define what it depends on are kept, as far as the
first call of a model; names from before that are taken as they are. All of it must be pure.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from torch import nn

from clew.attach.models import unwrap
from clew.trace.purity import ImpureError, Purity, loaded, stored

LOSS = "__clew_loss__"
_RANDOM = ("rand", "normal", "bernoulli", "multinomial", "next", "shuffle", "choice", "sample", "dropout")
_BACKWARDS = ("backward", "manual_backward")
_CALLERS = ("autograd", "self", "accelerator", "fabric", "engine", "model_engine")  # they are given the loss
_COMPOUND = (ast.If, ast.For, ast.While, ast.With)


@dataclass(frozen=True)
class Recipe:
    """Code that computes the loss again into `namespace[LOSS]`."""

    code: CodeType
    namespace: dict[str, Any]
    source: str
    tree: ast.Module
    earlier: frozenset[str] = frozenset()  # names whose value is that from when the model was called

    def run(self) -> Any:
        exec(self.code, self.namespace)
        return self.namespace[LOSS]


def recipe(frame: FrameType, line: int, earlier: Mapping[str, Any] | None = None) -> Recipe:
    """How the loss of the `backward()` call on this line was made; raises ImpureError.

    `earlier` are the variables as they were when the model was called, where that is known: the
    state of a recurrent network is overwritten by the call, a batch may be by the next one.
    """
    before, call = _before(_function(frame).body, line)
    return _built(frame, before, _loss_expression(call), earlier or {})


def recipe_of(
    frame: FrameType, line: int, name: str | None, earlier: Mapping[str, Any] | None = None
) -> Recipe:
    """How a variable got its value before this line; without a name, what the line returns."""
    before, statement = _before(_function(frame).body, line)
    if name is not None:
        return _built(frame, before, ast.copy_location(ast.Name(name, ast.Load()), statement), earlier or {})
    if not isinstance(statement, ast.Return) or statement.value is None:
        raise ImpureError("the function that called the model returns nothing there")
    return _built(frame, before, statement.value, earlier or {})


def _built(frame: FrameType, before: list[ast.stmt], loss: ast.expr, earlier: Mapping[str, Any]) -> Recipe:
    namespace = {**frame.f_globals, **frame.f_locals, **earlier}
    for name, value in list(namespace.items()):
        if isinstance(value, nn.Module) and type(value).__name__ != "OptimizedModule":
            namespace[name] = unwrap(value)
    kept = _needed(before, loaded(loss))
    kept = _from_first_model(kept, namespace)
    lost = _lost(kept)
    known = {name for name in lost & set(earlier) if not any(name in _filled(s) for s in kept)}
    lost -= known
    if lost:
        raise ImpureError(f"{', '.join(sorted(lost))} was overwritten in the step")
    if not kept and not any(isinstance(node, ast.Call) for node in ast.walk(loss)):
        raise ImpureError("the loss was made in another function")
    purity = Purity(namespace)
    purity.statements(kept)
    purity.expression(loss)
    target = ast.Name(LOSS, ast.Store())
    final = ast.copy_location(ast.Assign([target], loss), loss)
    tree = ast.fix_missing_locations(ast.Module([*kept, final], []))
    source = "\n".join(ast.unparse(s) for s in tree.body)
    code = compile(tree, frame.f_code.co_filename, "exec")
    return Recipe(code, namespace, source, tree, frozenset(known))


def _function(frame: FrameType) -> ast.Module | ast.FunctionDef:
    code = frame.f_code
    text = "".join(linecache.getlines(code.co_filename, frame.f_globals))
    if not text:
        raise ImpureError("its source can't be read")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ImpureError("its source can't be parsed") from error
    if code.co_name == "<module>":
        return tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    raise ImpureError("the function that called backward() was not found in its file")


def _before(body: list[ast.stmt], line: int) -> tuple[list[ast.stmt], ast.stmt]:
    """The statements that ran before the one on this line, since the innermost loop began; and that one."""
    before: list[ast.stmt] = []
    while True:
        there = [n for n, s in enumerate(body) if s.lineno <= line <= (s.end_lineno or s.lineno)]
        position = next((n for n in there if _calls_backward(body[n])), there[0] if there else None)
        if position is None:
            raise ImpureError("the call of backward() was not found")
        statement = body[position]
        before += body[:position]
        blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        inner = next((b for b in blocks if b and b[0].lineno <= line <= (b[-1].end_lineno or 0)), None)
        if inner is None or isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            return before, statement
        if isinstance(statement, (ast.For, ast.While)):
            before = []
        body = inner


def _calls_backward(statement: ast.stmt) -> bool:
    """Several statements may share a line: `optimizer.zero_grad(); loss.backward()`."""
    return any(isinstance(n, ast.Attribute) and n.attr in _BACKWARDS for n in ast.walk(statement))


def _loss_expression(statement: ast.stmt) -> ast.expr:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in _BACKWARDS:
                continue
            value = node.func.value
            named = isinstance(value, (ast.Name, ast.Attribute))
            elsewhere = node.args and named and ast.unparse(value).rpartition(".")[2] in _CALLERS
            loss = node.args[0] if elsewhere or node.func.attr == "manual_backward" else value
            scaled = isinstance(loss, ast.Call) and isinstance(loss.func, ast.Attribute)
            if scaled and isinstance(loss, ast.Call) and loss.func.attr == "scale" and loss.args:  # type: ignore[attr-defined]
                return loss.args[0]
            return loss
    raise ImpureError("backward() is not called on something named there")


def _needed(body: Sequence[ast.stmt], needed: set[str]) -> list[ast.stmt]:
    """The statements that the names depend on; of compound ones only the parts that matter."""
    kept: list[ast.stmt] = []
    for statement in reversed(body):
        part = _part(statement, needed)
        if part is not None:
            needed |= loaded(part)
            kept.insert(0, part)
    return kept


def _part(statement: ast.stmt, needed: set[str]) -> ast.stmt | None:
    if isinstance(statement, _COMPOUND):
        inside = set(needed)
        for _ in range(2):  # in a loop, what is needed may be set further down
            body = _needed(statement.body, inside)
        orelse = _needed(getattr(statement, "orelse", []), inside)
        needed |= inside
        if not body and not orelse:
            return None
        fields = {name: getattr(statement, name) for name in statement._fields}
        fields.update(body=body or [ast.copy_location(ast.Pass(), statement)])
        if "orelse" in fields:
            fields["orelse"] = orelse
        return ast.copy_location(type(statement)(**fields), statement)
    if stored(statement) & needed or _fills(statement) in needed:
        return statement
    return None


def _fills(statement: ast.stmt) -> str | None:
    """`outputs.append(h)` changes `outputs`, `grid[0] = 1` changes `grid`."""
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                return target.value.id
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        owner = call.func.value
        if call.func.attr in ("append", "extend", "update") and isinstance(owner, ast.Name):
            return owner.id
    return None


def _from_first_model(kept: list[ast.stmt], namespace: dict[str, Any]) -> list[ast.stmt]:
    """Without what came before the first model ran, unless the value of a name would be lost: see `_lost`."""
    start = next((n for n, s in enumerate(kept) if _calls_model(s, namespace)), 0)
    while start > 0 and _lost(kept[start:]):
        text = ast.unparse(kept[start - 1])
        if any(word in text for word in _RANDOM):
            break
        start -= 1
    return kept[start:]


def _calls_model(statement: ast.stmt, namespace: dict[str, Any]) -> bool:
    purity = Purity(namespace)
    try:
        purity.statements([statement])
    except ImpureError:
        named = [purity.resolve(n) for n in ast.walk(statement) if isinstance(n, (ast.Name, ast.Attribute))]
        return any(isinstance(value, nn.Module) for value in named)  # else the data: it is still there
    return purity.calls_module


def _lost(kept: list[ast.stmt]) -> set[str]:
    """Names that are read before they are set here, and set after: their value is no longer there."""
    made: set[str] = set()
    lost: set[str] = set()
    later = {name for s in kept for name in stored(s) | _filled(s)}
    for statement in kept:
        own = _inner_names(statement) if isinstance(statement, _COMPOUND) else set()
        for part in ast.walk(statement):
            own |= stored(part.target) if isinstance(part, ast.comprehension) else set()
        lost |= (loaded(statement) - made - own) & later
        made |= stored(statement)
    return lost


def _filled(statement: ast.stmt) -> set[str]:
    """The containers that a statement, or one inside it, changes."""
    parts = [part for part in ast.walk(statement) if isinstance(part, ast.stmt)]
    return {name for part in parts if (name := _fills(part)) is not None}


def _inner_names(statement: ast.stmt) -> set[str]:
    """What a compound statement sets before it reads it."""
    names = stored(statement.target) if isinstance(statement, ast.For) else set()
    inside = getattr(statement, "body", [])
    return names | ({n for s in inside for n in stored(s)} - _lost(inside))
