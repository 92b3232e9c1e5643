"""Program slicing: the statements a value depends on, and where recomputing it can start."""

from __future__ import annotations

import ast
from collections.abc import Sequence

COMPOUND = (ast.If, ast.For, ast.While, ast.With)


class Slicer:
    """Goes back from a value; `dotted`: `self.loss` counts as a variable."""

    def __init__(self, *, dotted: bool = False) -> None:
        self._dotted = dotted

    def reads(self, node: ast.AST) -> set[str]:
        return loaded(node) | (_attributes(node, ast.Load) if self._dotted else set())

    def sets(self, node: ast.AST) -> set[str]:
        return stored(node) | (_attributes(node, ast.Store) if self._dotted else set())

    def needed(self, body: Sequence[ast.stmt], names: set[str]) -> list[ast.stmt]:
        """The statements that the names depend on; of compound ones only the relevant parts."""
        kept: list[ast.stmt] = []
        for statement in reversed(body):
            part = self._part(statement, names)
            if part is not None:
                names |= self.reads(part)
                kept.insert(0, part)
        return kept

    def _part(self, statement: ast.stmt, needed: set[str]) -> ast.stmt | None:
        if isinstance(statement, COMPOUND):
            inside = set(needed)
            for _ in range(2):  # in a loop, a needed name may be set further down
                body = self.needed(statement.body, inside)
            orelse = self.needed(getattr(statement, "orelse", []), inside)
            needed |= inside
            if not body and not orelse:
                return None
            fields = {name: getattr(statement, name) for name in statement._fields}
            fields.update(body=body or [ast.copy_location(ast.Pass(), statement)])
            if "orelse" in fields:
                fields["orelse"] = orelse
            return ast.copy_location(type(statement)(**fields), statement)
        if self.sets(statement) & needed or fills(statement) in needed:
            return statement
        return None

    def taken(self, kept: Sequence[ast.stmt]) -> set[str]:
        """The names that these statements read before they set them."""
        made: set[str] = set()
        taken: set[str] = set()
        for statement in kept:
            taken |= self.reads(statement) - made - self._own(statement)
            made |= self.sets(statement)
        return taken

    def lost(self, kept: Sequence[ast.stmt]) -> set[str]:
        """Names that are read before they are set here, and set afterwards: their value is gone."""
        return self.taken(kept) & {name for s in kept for name in self.sets(s) | filled(s)}

    def _own(self, statement: ast.stmt) -> set[str]:
        own = self._inner_names(statement) if isinstance(statement, COMPOUND) else set()
        for part in ast.walk(statement):
            own |= self.sets(part.target) if isinstance(part, ast.comprehension) else set()
        return own

    def _inner_names(self, statement: ast.stmt) -> set[str]:
        """What a compound statement sets before it reads it."""
        names = self.sets(statement.target) if isinstance(statement, ast.For) else set()
        inside = getattr(statement, "body", [])
        return names | ({n for s in inside for n in self.sets(s)} - self.lost(inside))


def _attributes(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    """`self.loss`, of an object that is known by name."""
    return {
        f"{n.value.id}.{n.attr}"
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, context) and isinstance(n.value, ast.Name)
    }


def fills(statement: ast.stmt) -> str | None:
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


def filled(statement: ast.stmt) -> set[str]:
    """The containers that a statement, or one inside it, changes."""
    parts = [part for part in ast.walk(statement) if isinstance(part, ast.stmt)]
    return {name for part in parts if (name := fills(part)) is not None}


def attributes_set(node: ast.AST) -> set[str]:
    """The names of the attributes that a statement sets, of any object."""
    return {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}


def stored(node: ast.AST) -> set[str]:
    """The names that a statement sets."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def loaded(node: ast.AST) -> set[str]:
    """The names that it reads; `x += 1` reads x too."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    for part in ast.walk(node):
        if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            names.add(part.target.id)
    return names
