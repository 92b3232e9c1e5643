"""Finds the expression that failed, even inside a statement that spans many lines, and its tensors.

The tensors are those that the expression names; some of them may not match.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from types import CodeType, FrameType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clew.labs.network.shape_errors.call_expectations import RULES, Operand, elementwise, matmul
from clew.labs.network.shape_errors.mismatch import Mismatch
from clew.labs.network.tensor_info import dtype_name

LONGEST = 160  # characters of an expression that is shown on one line
MOST_LISTED = 6  # tensors of a list that are shown

Position = tuple[int, int, int, int]  # line, column, and where it ends


@dataclass(frozen=True)
class FailingSpot:
    """The user's running line, and the expression on it."""

    frame: FrameType
    line: int
    code: str
    statement: ast.AST  # as much of the source as could be read
    exact: ast.AST | None = None  # the exact expression, where Python knows it

    @property
    def raises(self) -> bool:
        """Whether the program itself raised the error."""
        return isinstance(self.statement, (ast.Raise, ast.Assert)) or self.code.startswith(
            ("raise ", "assert ")
        )

    @property
    def file(self) -> str:
        return self.frame.f_code.co_filename

    def expressions(self) -> Iterator[ast.AST]:
        """The expressions that may have failed."""
        if self.exact is not None:
            yield self.exact
        else:
            yield from ast.walk(self.statement)


def code_at(frame: FrameType, line: int) -> str:
    return linecache.getline(frame.f_code.co_filename, line, frame.f_globals).strip()


def find_spot(frame: FrameType, line: int, instruction: int) -> FailingSpot:
    """The position of a frame in a traceback (`tb_lineno`, `tb_lasti`)."""
    code = code_at(frame, line)
    tree = _tree(frame)
    position = _position(frame.f_code, instruction)
    exact = _expression(tree, position) if tree is not None and position is not None else None
    # Without columns, the statement around a lambda may contain other lambdas, which did not run.
    known = tree is not None and (position is not None or frame.f_code.co_name != "<lambda>")
    statement = _statement(tree, line, position) if tree is not None and known else None
    return FailingSpot(frame, line, _written(exact or statement, code), statement or _parsed(code), exact)


def _tree(frame: FrameType) -> ast.AST | None:
    try:
        return ast.parse("".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # not Python, or of another version
        return None


def _position(code: CodeType, instruction: int) -> Position | None:
    """Since Python 3.11 every instruction has a position."""
    if not hasattr(code, "co_positions"):
        return None
    line, end_line, column, end = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    if line is None or end_line is None or column is None or end is None:
        return None
    return line, column, end_line, end


def _expression(tree: ast.AST, position: Position) -> ast.AST | None:
    """The node at a position. A method's call may start at the name of the method there."""
    start, end = position[:2], position[2:]
    found: ast.AST | None = None
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.AugAssign)) and (node.end_lineno, node.end_col_offset) == end:
            begins = node.lineno, node.col_offset
            if begins == start or (begins < start and isinstance(node, ast.Call)):
                found = node  # the walk goes inwards
    return found


def _statement(tree: ast.AST, line: int, position: Position | None) -> ast.stmt | None:
    """The simple statement that was running; for one with a body, only its line."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or hasattr(node, "body") or hasattr(node, "cases"):
            continue
        begins = node.lineno, node.col_offset
        ends = node.end_lineno or node.lineno, node.end_col_offset or 0
        if begins <= position[:2] < ends if position is not None else begins[0] <= line <= ends[0]:
            return node
    return None


def _written(node: ast.AST | None, code: str) -> str:
    """The line itself, unless the failing expression spans several lines."""
    if not isinstance(node, (ast.expr, ast.stmt)) or node.end_lineno == node.lineno:
        return code
    text = ast.unparse(node)
    return text if len(text) <= LONGEST and "\n" not in text else code


def _parsed(code: str) -> ast.AST:
    for attempt in (code, f"{code}\n    pass", code.removeprefix("return ")):
        try:
            return ast.parse(attempt)
        except SyntaxError:
            continue
    return ast.Module([], [])


# -- its tensors --


def tensors_at(spot: FailingSpot) -> dict[str, Tensor]:
    """Variables and attributes in the failing expression that are tensors, in order; nothing is evaluated."""
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
    """Operands that don't match each other, if the line is simple enough to know them."""
    for node in spot.expressions():
        found = _judge_expression(spot.frame, node)
        if found is not None:
            return found
    return _odd_one_out(tensors_at(spot), error)


def argument_names(spot: FailingSpot | None, default: tuple[str, str]) -> tuple[str, str]:
    """The user's names for the first two arguments of the call that failed."""
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
    """The torch function that is called, and its operands; a method's first operand is its tensor."""
    if isinstance(call.func, ast.Attribute) and isinstance(_look_up(frame, call.func.value), Tensor):
        return call.func.attr, [call.func.value, *call.args]
    called = _look_up(frame, call.func)
    name = getattr(called, "__name__", None)
    if not isinstance(name, str) or not any(getattr(home, name, None) is called for home in (torch, F)):
        return "", []
    return name, call.args


def _operands(frame: FrameType, node: ast.AST) -> list[Operand]:
    """One operand, or those of a list, each by its name on the line."""
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
    """Devices or dtypes that are not all the same, if torch complains about that."""
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
