"""The tensors that a line of the user's code names, and what is wrong between them."""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any

from torch import Tensor, nn

from clew.model.expectations import Mismatch, shape_text
from clew.model.tensors import dtype_name

_ELEMENTWISE = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)


def tensors_on_line(frame: FrameType, code: str) -> dict[str, Tensor]:
    """Variables and attributes of the line that are tensors, in order; nothing is evaluated."""
    found: dict[str, Tensor] = {}
    for node in ast.walk(_parsed(code)):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            value = _look_up(frame, node)
            if isinstance(value, Tensor):
                found.setdefault(ast.unparse(node), value)
    return found


def judge_line(frame: FrameType, code: str, error: BaseException) -> Mismatch | None:
    """Operands that don't fit each other, where the line is simple enough to know them."""
    for node in ast.walk(_parsed(code)):
        if isinstance(node, ast.BinOp):
            left, right = _look_up(frame, node.left), _look_up(frame, node.right)
            if isinstance(left, Tensor) and isinstance(right, Tensor):
                names = ast.unparse(node.left), ast.unparse(node.right)
                found = _pair(names, left, right, isinstance(node.op, ast.MatMult))
                if found is not None:
                    return found
    return _odd_one_out(tensors_on_line(frame, code), error)


def _parsed(code: str) -> ast.AST:
    for attempt in (code, f"{code}\n    pass", code.removeprefix("return ")):
        try:
            return ast.parse(attempt)
        except SyntaxError:
            continue
    return ast.Module([], [])


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


def _pair(names: tuple[str, str], left: Tensor, right: Tensor, matmul: bool) -> Mismatch | None:
    given = f"{names[0]} {shape_text(left)}, {names[1]} {shape_text(right)}"
    if left.device != right.device and left.dim() and right.dim():
        return Mismatch(
            "device",
            "both on the same device",
            f"{names[0]} on {left.device}, {names[1]} on {right.device}",
            f"move one of them: {names[1]} = {names[1]}.to({names[0]}.device)",
        )
    if matmul and left.dim() and right.dim():
        inner = right.shape[-2] if right.dim() > 1 else right.shape[0]
        if left.shape[-1] != inner:
            fix = "the sizes that meet must be equal"
            if right.dim() > 1 and left.shape[-1] == right.shape[-1]:
                fix = f"transpose the second: {names[1]}.transpose(-2, -1)"
            return Mismatch("shape", f"… × {left.shape[-1]} @ {left.shape[-1]} × …", given, fix)
        return None
    for back, (a, b) in enumerate(zip(reversed(left.shape), reversed(right.shape), strict=False), 1):
        if a != b and 1 not in (a, b):
            return Mismatch(
                "shape",
                "sizes that are equal, or 1, counted from the last dimension",
                given,
                f"they differ in dimension -{back}: {a} against {b}",
            )
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
