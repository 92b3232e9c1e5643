"""Runs a saved step again under the microscope, after its process has ended."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from clew.labs.replay.culprits import Mended, find_suspects, pick_culprit
from clew.labs.replay.microscope import Microscope, batch_size
from clew.labs.replay.repro.rebuilt_step import RerunResult, SavedStep
from clew.labs.replay.repro.saved_sources import CannotRebuild, definitions
from clew.labs.replay.step_replay import ReplayAnswer
from clew.labs.snapshot.users_step.loss_recipe import LOSS
from clew.labs.snapshot.users_step.replay_lines import BOUNDARIES
from clew.measure.nested_tensors import tensors_in


def replay_saved(
    folder: Path, models: dict[str, nn.Module] | None = None
) -> tuple[RerunResult, ReplayAnswer]:
    """The result of running the step again, and the operation to blame; raises `CannotRebuild`."""
    saved = _opened(folder, models)
    scope, again = _once(saved, frozenset())
    if not again.bad:
        return again, ReplayAnswer(None, again.problem or "")
    bad = [again.results[name] for name in again.bad]
    found = find_suspects(scope, bad, batch_size([call[1:] for call in saved.calls]) or scope.batch)
    # Rebuilt for each run: a run changes buffers.
    culprit = pick_culprit(found, lambda mended: bool(_once(_opened(folder, models), mended)[1].bad))
    return again, ReplayAnswer(culprit, "the operation that produced it was not found")


def _once(saved: SavedStep, mended: Mended) -> tuple[Microscope, RerunResult]:
    """Run the step; `mended` values are made finite on the way."""
    scope = Microscope(saved.models, lambda _: None, mended=mended)
    _name_batch(scope, saved)
    scope.mend_what_is_known()
    with scope:
        return scope, _run(saved)


def _opened(folder: Path, models: dict[str, nn.Module] | None) -> SavedStep:
    try:
        return SavedStep(folder, models)
    except CannotRebuild:
        raise
    except Exception as error:
        first = next(iter(str(error).splitlines()), "")
        raise CannotRebuild(f"{folder} can't be rebuilt: {type(error).__name__}: {first}") from error


def _run(saved: SavedStep) -> RerunResult:
    return saved.run(statements_of(saved.data["recipe"]))


BOUNDARIES.add(_run.__code__)


def statements_of(recipe: dict[str, Any] | None) -> Callable[..., Tensor] | None:
    """The statements that computed the loss, as a function of the names they read."""
    if recipe is None:
        return None
    code = _compiled(recipe)

    def compute(**names: Any) -> Tensor:
        exec(code, names)
        loss: Tensor = names[LOSS]
        return loss

    return compute


def _compiled(recipe: dict[str, Any]) -> Any:
    """The statements, with their original line numbers."""
    tree = ast.parse(recipe["source"])
    nodes = list(ast.walk(tree))
    for node, line in zip(nodes, recipe["lines"], strict=False):
        if hasattr(node, "lineno") and line:
            node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
            node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    return compile(tree, recipe["file"] or "<loss>", "exec", dont_inherit=True)


def _name_batch(scope: Microscope, saved: SavedStep) -> None:
    named = [(name, value) for name, value in saved.names.items() if isinstance(value, Tensor)]
    for _, args, kwargs in saved.calls:
        named += [(f"input[{n}]", t) for n, t in enumerate(tensors_in((args, kwargs)))]
    scope.name_batch(named)


def make_model(spec: str) -> nn.Module:
    """The model that `train.py:Net(32, deep=True)` or `package.models:make()` refers to."""
    place, _, call = spec.rpartition(":")
    if not place or not call:
        raise CannotRebuild(f"{spec!r} is not a model; write file.py:Class(…) or module:function()")
    try:
        written = ast.parse(call, mode="eval").body
    except SyntaxError as error:
        raise CannotRebuild(f"{call!r} is not a Python expression") from error
    node = written if isinstance(written, ast.Call) else ast.Call(written, [], [])
    if not isinstance(node.func, ast.Name):
        raise CannotRebuild(f"{call!r} is neither a class nor a function")
    maker = _maker(place, node.func.id)
    try:
        args = [ast.literal_eval(a) for a in node.args]
        kwargs = {k.arg or "": ast.literal_eval(k.value) for k in node.keywords}
        model = maker(*args, **kwargs)
    except Exception as error:
        raise CannotRebuild(f"{spec} failed: {type(error).__name__}: {error}") from error
    if not isinstance(model, nn.Module):
        raise CannotRebuild(f"{spec} returns a {type(model).__name__}, not a model")
    return model


def _maker(place: str, name: str) -> Any:
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise CannotRebuild(f"no such file: {place}")
        found = getattr(definitions(str(Path(place).absolute()))[0], name, None)
    else:
        try:
            found = getattr(importlib.import_module(place), name, None)
        except ImportError as error:
            raise CannotRebuild(f"no such module: {place}") from error
    if not callable(found):
        raise CannotRebuild(f"there is no {name} in {place}")
    return found
