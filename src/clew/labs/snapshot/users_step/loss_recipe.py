"""The user's statements that computed the loss, taken from the frame that called `backward()`.

Going back from the loss, the statements that it depends on are kept, as far as the
first call of a model; earlier names keep their values, unless these are not finite: then
the statements that computed them are kept too. All of it must be pure.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from torch import Tensor, nn

from clew.hooks.collect_layers.trained_models import unwrap
from clew.labs.snapshot.nonfinite_values import is_bad
from clew.labs.snapshot.users_step.loss_origin import (
    ELSEWHERE,
    LossMade,
    before_line,
    loss_expression,
    place_of,
    where_made,
)
from clew.labs.snapshot.users_step.program_slice import Slicer, filled
from clew.labs.snapshot.users_step.side_effects import CannotRerun, SideEffectChecker
from clew.measure.nested_tensors import tensors_in

LOSS = "__clew_loss__"
_RANDOM = re.compile(
    r"rand|normal(?!i)|bernoulli|multinomial|\bnext\(|shuffle|choice|sample\w*\(|dropout", re.IGNORECASE
)


@dataclass(frozen=True)
class Recipe:
    """Code that recomputes the loss into `namespace[LOSS]`."""

    code: CodeType
    namespace: dict[str, Any]
    source: str
    tree: ast.Module
    earlier: frozenset[str] = frozenset()  # names with the value they had when the model was called
    owners: tuple[Any, ...] = ()  # objects whose attributes it sets; the caller restores them
    skipped: tuple[ast.stmt, ...] = ()  # earlier statements, whose results are reused

    def run(self) -> Any:
        exec(self.code, self.namespace)
        return self.namespace[LOSS]

    @property
    def file(self) -> str:
        """Where its statements are from."""
        return self.code.co_filename


def recipe(frame: FrameType, line: int, earlier: Mapping[str, Any] | None = None) -> Recipe:
    """How the loss of the `backward()` call on this line was computed; raises CannotRerun.

    `earlier` are the variables as they were when the model was called, where that is known: the
    call overwrites the state of a recurrent network, and the next call may overwrite a batch.
    """
    place = place_of(frame)
    before = before_line(place.body, line)
    return _Builder(LossMade(place, before, loss_expression(before.statement)), earlier or {}).built()


def recipe_of(
    frame: FrameType, line: int, name: str | None, earlier: Mapping[str, Any] | None = None
) -> Recipe:
    """How a variable got its value before this line; without a name, what the line returns."""
    place = place_of(frame)
    before = before_line(place.body, line)
    statement = before.statement
    if name is not None:
        variable = ast.copy_location(ast.Name(name, ast.Load()), statement)
        return _Builder(LossMade(place, before, variable), earlier or {}).built()
    if not isinstance(statement, ast.Return) or statement.value is None:
        raise CannotRerun("the function that called the model returns nothing there")
    return _Builder(LossMade(place, before, statement.value), earlier or {}).built()


def recipe_to_put_back(frame: FrameType, line: int, delivered: Any = None) -> Recipe:
    """Like `recipe`, but the loss may come from a caller, and attributes may be set.

    The caller restores the attributes of its `owners`. `delivered` is the loader's batch: a loop
    often overwrites the variables it came in.
    """
    made = where_made(frame, line)
    return _Builder(made, {}, delivered, puts_back=True).built()


class _Builder:
    """Turns what is known of a loss into a recipe."""

    def __init__(
        self, made: LossMade, earlier: Mapping[str, Any], delivered: Any = None, *, puts_back: bool = False
    ) -> None:
        self._made = made
        self._earlier = earlier
        self._puts_back = puts_back
        self._slicer = Slicer(dotted=puts_back)
        self._scope = {**made.place.scope, **earlier}
        for name, value in list(self._scope.items()):
            if isinstance(value, nn.Module) and type(value).__name__ != "OptimizedModule":
                self._scope[name] = unwrap(value)
        self._delivered = _named(made, delivered, self._slicer)

    def built(self) -> Recipe:
        loss = self._made.loss
        needed = self._slicer.needed(self._made.before.statements, self._slicer.reads(loss))
        start = self._from_first_model(needed)
        if self._puts_back:
            start = self._from_finite(needed, start)
        kept = needed[start:]
        lost = self._slicer.lost(kept)
        known = {name for name in lost & set(self._earlier) if not any(name in filled(s) for s in kept)}
        taken = self._slicer.taken(kept)
        given = {
            n: v for n, v in self._delivered.items() if n in taken and not self._set_in(n, needed[:start])
        }
        lost -= known | set(given)
        if lost:
            raise CannotRerun(f"{', '.join(sorted(lost))} was overwritten in the step")
        if not kept and not any(isinstance(node, ast.Call) for node in ast.walk(loss)):
            raise CannotRerun(ELSEWHERE)
        self._scope.update(given)
        self._must_know(taken | (self._slicer.reads(loss) - {n for s in kept for n in self._slicer.sets(s)}))
        return self._compiled(kept, needed[:start], frozenset(known))

    def _compiled(self, kept: list[ast.stmt], skipped: list[ast.stmt], known: frozenset[str]) -> Recipe:
        loss = self._made.loss
        checker = SideEffectChecker(self._scope, puts_back=self._puts_back)
        checker.statements(kept)
        checker.expression(loss)
        tree = ast.fix_missing_locations(ast.Module([*kept, _assigned(loss)], []))
        source = "\n".join(ast.unparse(s) for s in tree.body)
        code = compile(tree, self._made.place.file, "exec")
        owners = tuple(checker.owners.values())
        return Recipe(code, self._scope, source, tree, known, owners, tuple(skipped))

    def _must_know(self, names: set[str]) -> None:
        """Raise if a function has returned: its variables are gone."""
        gone = [
            n for n in sorted(names) if "." not in n and n not in self._scope and not hasattr(builtins, n)
        ]
        if gone and self._made.place.frame is None:
            raise CannotRerun(f"the value of {gone[0]} is no longer available")

    def _from_first_model(self, kept: list[ast.stmt]) -> int:
        """Drop what ran before the first model, unless the value of a name would be lost."""
        only_in_loss = self._puts_back and self._calls_model(_assigned(self._made.loss))
        start = next(
            (n for n, s in enumerate(kept) if self._calls_model(s)), len(kept) if only_in_loss else 0
        )
        while start > 0 and self._slicer.lost(kept[start:]):
            if _RANDOM.search(ast.unparse(kept[start - 1])):
                break
            start -= 1
        return start

    def _from_finite(self, kept: list[ast.stmt], start: int) -> int:
        """Go further back while a reused value is not finite: an earlier statement made it so."""
        best = start
        for earlier in range(start - 1, -1, -1):
            if not self._takes_bad(kept, best):
                break
            statement = kept[earlier]
            if _RANDOM.search(ast.unparse(statement)) or not self._is_pure(statement):
                break
            open_ = {
                n for n in self._slicer.lost(kept[earlier:]) if not self._is_delivered(n, kept[:earlier])
            }
            if not open_:
                best = earlier
        return best

    def _takes_bad(self, kept: list[ast.stmt], start: int) -> bool:
        """Whether a name set by earlier statements has a NaN or infinity."""
        after = [*kept[start:], ast.Expr(self._made.loss)]
        names = self._slicer.taken(after) & {n for s in kept[:start] for n in self._slicer.sets(s)}
        return any(_is_bad(self._scope.get(name)) for name in names)

    def _is_pure(self, statement: ast.stmt) -> bool:
        try:
            SideEffectChecker(self._scope, puts_back=self._puts_back).statements([statement])
        except CannotRerun:
            return False
        return True

    def _is_delivered(self, name: str, before: Sequence[ast.stmt]) -> bool:
        return name in self._delivered and not self._set_in(name, before)

    def _set_in(self, name: str, statements: Sequence[ast.stmt]) -> bool:
        return any(name in self._slicer.sets(s) | filled(s) for s in statements)

    def _calls_model(self, statement: ast.stmt) -> bool:
        checker = SideEffectChecker(self._scope, puts_back=self._puts_back)
        try:
            checker.statements([statement])
        except CannotRerun:
            nodes = [n for n in ast.walk(statement) if isinstance(n, (ast.Name, ast.Attribute))]
            named = [checker.resolve(n) for n in nodes]
            return any(isinstance(value, nn.Module) for value in named)  # else the data, which still exists
        return checker.calls_module


def _assigned(loss: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.Name(LOSS, ast.Store())], loss), loss)


def _is_bad(value: Any) -> bool:
    if not isinstance(value, (Tensor, dict, list, tuple)):
        return False
    return any(is_bad(tensor) for tensor in tensors_in(value))


def _named(made: LossMade, delivered: Any, slicer: Slicer) -> dict[str, Any]:
    """The loop's variables as the loader delivered them, where it was this loop that took the batch."""
    loop = made.before.loop
    if loop is None or delivered is None:
        return {}
    target: ast.expr = loop.target
    if isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "enumerate":
        target = target.elts[-1] if isinstance(target, ast.Tuple) else target
    values = _unpacked(target, delivered)
    overwritten = {n for s in made.before.statements for n in slicer.sets(s)}
    same = all(
        made.place.scope.get(name) is value for name, value in values.items() if name not in overwritten
    )
    return values if same else {}


def _unpacked(target: ast.expr, value: Any) -> dict[str, Any]:
    if isinstance(target, ast.Name):
        return {target.id: value}
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, (tuple, list)):
        return {}
    if len(target.elts) != len(value):
        return {}
    pairs = zip(target.elts, value, strict=True)
    return {name: v for part, item in pairs for name, v in _unpacked(part, item).items()}
