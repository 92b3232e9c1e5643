"""Where the tensors of a replayed step come from: the user's names for them, and what computed them."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from torch import Tensor

from clew.labs.snapshot.nonfinite_values import NonFiniteStep, is_bad
from clew.labs.snapshot.users_step.loss_origin import user_frames, where_made
from clew.labs.snapshot.users_step.loss_recipe import Recipe
from clew.labs.snapshot.users_step.program_slice import Slicer
from clew.labs.snapshot.users_step.side_effects import CannotRerun
from clew.measure.nested_tensors import named_tensors, tensors_in

# They move or concatenate values; a value that is not finite after them was not finite before.
_WORDS = """to cuda cpu float double half bfloat16 long int type view reshape squeeze unsqueeze permute
transpose t flatten contiguous clone detach pin_memory requires_grad_ expand repeat numpy tensor as_tensor
from_numpy stack cat concat pad pad_sequence next iter enumerate zip list tuple dict getattr"""
_MOVES = set(_WORDS.split())
MOST_FRAMES = 4  # functions whose variables may name a tensor
MOST_PARTS = 64  # items of a list or dictionary that are searched
_ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.AugAssign)


def named_inputs(nonfinite: NonFiniteStep, made: Recipe | None) -> list[tuple[str, Tensor]]:
    """The tensors that enter the replayed part: by the user's variable, or by argument."""
    given = [t for call in nonfinite.calls for t in tensors_in((call.args, call.kwargs))]
    named = [(name_of(t, nonfinite), t) for t in given if t.grad_fn is None]
    others = _variables(nonfinite)
    if made is not None:
        others += variable_tensors(made.namespace)
    return named + [(n, t) for n, t in others if t.grad_fn is None and not t.requires_grad]


def name_of(tensor: Tensor, nonfinite: NonFiniteStep) -> str:
    """The user's name for it, or for the tensor it was cut from; else its position in the arguments."""
    variables = _variables(nonfinite)
    same = [name for name, other in variables if other is tensor]
    same += [name for name, other in variables if other is tensor._base]
    for call in nonfinite.calls:
        given = enumerate(tensors_in((call.args, call.kwargs)))
        same += [f"input[{number}]" for number, other in given if other is tensor]
    return same[0] if same else "a tensor"


def _variables(nonfinite: NonFiniteStep) -> list[tuple[str, Tensor]]:
    """The variables of the function that calls `backward()`, then of its callers."""
    frames = itertools.islice(user_frames(nonfinite.frame), MOST_FRAMES)
    return [pair for frame in frames for pair in variable_tensors(frame.f_locals)]


def variable_tensors(values: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """The tensors among a function's variables, and in their lists and dictionaries: `batch['x']`."""
    for name, value in list(values.items()):
        if isinstance(value, (Tensor, dict, list, tuple)):
            yield from named_tensors(name, value, write=_as_code, depth=2, most=MOST_PARTS)


def _as_code(container: Any, key: Any) -> str:
    """How the program itself may write it."""
    return f"[{key!r}]" if isinstance(container, (dict, list)) or type(key) is int else f".{key}"


def computed_by(name: str, frame: FrameType | None, line: int | None, made: Recipe | None) -> ast.stmt | None:
    """The statement that computed a variable from finite ones, if it was not replayed."""
    variable = re.match(r"\w+", name)
    if frame is None or line is None or variable is None:
        return None
    if made is not None:
        statements: Sequence[ast.stmt] = made.skipped
        scope = made.namespace
    else:
        try:
            found = where_made(frame, line)
        except CannotRerun:
            return None
        statements, scope = found.before.statements, found.place.scope
    sets = [s for s in statements if variable.group() in Slicer().sets(s)]
    return sets[-1] if sets and _computes(sets[-1], variable.group(), scope) else None


def _computes(statement: ast.stmt, name: str, scope: Mapping[str, Any]) -> bool:
    """Whether it does more than move values that were already bad."""
    operands = {
        node.id: scope[node.id]
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and _holds_tensors(scope.get(node.id))
    }
    if any(other != name and any(map(is_bad, tensors_in(value))) for other, value in operands.items()):
        return False
    return bool(operands) and any(_is_operation(node) for node in ast.walk(statement))


def _holds_tensors(value: Any) -> bool:
    return isinstance(value, (Tensor, dict, list, tuple)) and bool(tensors_in(value))


def _is_operation(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] not in _MOVES
    return isinstance(node, _ARITHMETIC)
