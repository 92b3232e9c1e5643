"""The tensors named on a line of the user's code, and which of them don't match."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clew.labs.network.shape_errors.call_expectations import RULES, Operand, elementwise, matmul
from clew.labs.network.shape_errors.failing_expression import FailingSpot
from clew.labs.network.shape_errors.mismatch import Mismatch
from clew.labs.network.tensor_info import dtype_name

MOST_LISTED = 6  # tensors of a list that are shown


def tensors_at(spot: FailingSpot) -> dict[str, Tensor]:
    """Variables and attributes of what failed that are tensors, in order; nothing is evaluated."""
    found = _named_tensors(spot.frame, spot.exact) if spot.exact is not None else {}
    return found or _named_tensors(spot.frame, spot.statement)


def _named_tensors(frame: FrameType, within: ast.AST) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for node in ast.walk(within):
        if isinstance(node, (ast.Name, ast.Attribute)):
            for operand in _operands(frame, node)[:MOST_LISTED]:
                if isinstance(operand.value, Tensor):
                    found.setdefault(operand.name, operand.value)
    return found


def judge(spot: FailingSpot, error: BaseException) -> Mismatch | None:
    """Operands that don't fit each other, where the line is simple enough to know them."""
    for node in spot.expressions():
        found = _judge_expression(spot.frame, node)
        if found is not None:
            return found
    return _odd_one_out(tensors_at(spot), error)


def argument_names(spot: FailingSpot | None, default: tuple[str, str]) -> tuple[str, str]:
    """What the user calls the first two arguments of the call that failed."""
    call = spot.exact if spot is not None else None
    if not isinstance(call, ast.Call) or len(call.args) < 2:
        return default
    plain = [isinstance(a, (ast.Name, ast.Attribute)) for a in call.args[:2]]
    names = [ast.unparse(a) if p else d for a, p, d in zip(call.args, plain, default, strict=False)]
    return names[0], names[1]


def _judge_expression(frame: FrameType, node: ast.AST) -> Mismatch | None:
    pair: list[ast.AST] = []
    if isinstance(node, ast.BinOp):
        pair = [node.left, node.right]
    elif isinstance(node, ast.AugAssign):
        pair = [node.target, node.value]
    elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
        pair = [node.left, node.comparators[0]]
    if pair:
        operands = [operand for part in pair for operand in _operands(frame, part)]
        multiplied = isinstance(getattr(node, "op", None), ast.MatMult)
        return (matmul if multiplied else elementwise)(operands, {}) if len(operands) == 2 else None
    return _judge_call(frame, node) if isinstance(node, ast.Call) else None


def _judge_call(frame: FrameType, call: ast.Call) -> Mismatch | None:
    name, arguments = _function(frame, call)
    if name not in RULES or any(isinstance(a, ast.Starred) for a in arguments):
        return None
    operands = [operand for a in arguments for operand in _operands(frame, a)]
    keywords = {k.arg: _value(frame, k.value) for k in call.keywords if k.arg is not None}
    return RULES[name](operands, keywords)


def _function(frame: FrameType, call: ast.Call) -> tuple[str, list[ast.expr]]:
    """The function of torch's that is called, and on what; a method is called on its tensor first."""
    if isinstance(call.func, ast.Attribute) and isinstance(_look_up(frame, call.func.value), Tensor):
        return call.func.attr, [call.func.value, *call.args]
    called = _look_up(frame, call.func)
    name = getattr(called, "__name__", None)
    if not isinstance(name, str) or not any(getattr(home, name, None) is called for home in (torch, F)):
        return "", []
    return name, call.args


def _operands(frame: FrameType, node: ast.AST) -> list[Operand]:
    """One, or those of a list, each by the name that it has on the line."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [operand for part in node.elts for operand in _operands(frame, part)]
    value = _value(frame, node)
    name = ast.unparse(node)
    if type(value) in (list, tuple) and value and all(isinstance(v, Tensor) for v in value):
        return [Operand(f"{name}[{n}]", v) for n, v in enumerate(value)]
    return [Operand(name, value)]


def _value(frame: FrameType, node: ast.AST) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(frame, node.operand)
        return -value if isinstance(value, (int, float)) else None
    return _look_up(frame, node)


def _look_up(frame: FrameType, node: ast.AST) -> Any:
    """The value of a name or of plain attributes; no property runs and nothing is called."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        owner = _look_up(frame, node.value)
        if isinstance(owner, nn.Module):
            places = (owner.__dict__, owner._parameters, owner._buffers, owner._modules)
            return next((p[node.attr] for p in places if node.attr in p), None)
        return getattr(owner, "__dict__", {}).get(node.attr)
    return None


def _odd_one_out(tensors: dict[str, Tensor], error: BaseException) -> Mismatch | None:
    """Devices or types that are not all the same, if that is what torch complains of."""
    text = str(error)
    devices = {name: str(t.device) for name, t in tensors.items() if t.dim()}
    if "device" in text and len(set(devices.values())) > 1:
        given = ", ".join(f"{name} on {device}" for name, device in devices.items())
        return Mismatch(
            "device", "all on the same device", given, "move them with .to(device) before this line"
        )
    dtypes = {name: dtype_name(t.dtype) for name, t in tensors.items()}
    if "dtype" in text and len(set(dtypes.values())) > 1:
        given = ", ".join(f"{name} {dtype}" for name, dtype in dtypes.items())
        return Mismatch("dtype", "the same dtype", given, "convert one of them with .to(…)")
    return None
