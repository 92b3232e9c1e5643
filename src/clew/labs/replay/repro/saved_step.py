"""Runs a saved step again under the microscope, after its process has ended."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from clew.labs.replay.culprits import Mended, guilty, suspects
from clew.labs.replay.microscope import BATCH, CONSTANT, Microscope
from clew.labs.replay.repro.rebuilt_step import Again, SavedStep
from clew.labs.replay.repro.saved_sources import CannotRebuild, definitions
from clew.labs.replay.step_replay import ReplayAnswer, is_mask
from clew.labs.snapshot.finite_values import can_be_bad, is_bad
from clew.labs.snapshot.users_step.loss_recipe import LOSS
from clew.labs.snapshot.users_step.replay_lines import BOUNDARIES
from clew.measure.nested_tensors import tensors_in


def replay_saved(folder: Path, models: dict[str, nn.Module] | None = None) -> tuple[Again, ReplayAnswer]:
    """The result of running the step again, and the operation to blame; raises `CannotRebuild`."""
    saved = _opened(folder, models)
    scope, again = _once(saved, frozenset())
    if not again.bad:
        return again, ReplayAnswer(None, again.problem or "")
    bad = [again.results[name] for name in again.bad]
    found = suspects(scope, bad, _batch_size(saved) or scope.batch)
    # Rebuilt for each run: a run changes buffers.
    culprit = guilty(found, lambda mended: bool(_once(_opened(folder, models), mended)[1].bad))
    return again, ReplayAnswer(culprit, "the operation that produced it was not found")


def _once(saved: SavedStep, mended: Mended) -> tuple[Microscope, Again]:
    """Run the step; `mended` values are made finite on the way."""
    scope = Microscope(saved.models, lambda _: None, mended=mended)
    _name_batch(scope, saved)
    scope.mend_what_is_known()
    with scope:
        return scope, _again(saved)


def _opened(folder: Path, models: dict[str, nn.Module] | None) -> SavedStep:
    try:
        return SavedStep(folder, models)
    except CannotRebuild:
        raise
    except Exception as error:
        first = next(iter(str(error).splitlines()), "")
        raise CannotRebuild(f"{folder} can't be rebuilt: {type(error).__name__}: {first}") from error


def _again(saved: SavedStep) -> Again:
    return saved.run(statements_of(saved.data["recipe"]))


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


BOUNDARIES.add(_again.__code__)


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
    for name, tensor in named:
        if can_be_bad(tensor) and is_bad(tensor) and not scope.knows(tensor):
            scope.name_tensors(CONSTANT if is_mask(tensor) else BATCH, [(name, tensor)])


def _batch_size(saved: SavedStep) -> int | None:
    first = next((t for _, a, k in saved.calls for t in tensors_in((a, k)) if t.dim()), None)
    return int(first.shape[0]) if first is not None else None


def make_model(spec: str) -> nn.Module:
    """The model that `train.py:Net(32, deep=True)` or `package.models:make()` refers to."""
    place, _, call = spec.rpartition(":")
    if not place or not call:
        raise CannotRebuild(f"{spec!r} is not a model; write file.py:Class(…) or module:function()")
    try:
        node = ast.parse(call, mode="eval").body
    except SyntaxError as error:
        raise CannotRebuild(f"{call!r} is not a Python expression") from error
    name = node.func if isinstance(node, ast.Call) else node
    if not isinstance(name, ast.Name):
        raise CannotRebuild(f"{call!r} is neither a class nor a function")
    maker = _maker(place, name.id)
    try:
        args = [ast.literal_eval(a) for a in node.args] if isinstance(node, ast.Call) else []
        kwargs = (
            {k.arg or "": ast.literal_eval(k.value) for k in node.keywords}
            if isinstance(node, ast.Call)
            else {}
        )
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
        import importlib

        try:
            found = getattr(importlib.import_module(place), name, None)
        except ImportError as error:
            raise CannotRebuild(f"no such module: {place}") from error
    if not callable(found):
        raise CannotRebuild(f"there is no {name} in {place}")
    return found
