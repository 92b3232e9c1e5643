"""Finds the expression that failed, even inside a statement that spans many lines."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from types import CodeType, FrameType

LONGEST = 160  # characters of an expression that is shown on one line

Position = tuple[int, int, int, int]  # line, column, and where it ends


@dataclass(frozen=True)
class FailingSpot:
    """A line of the user's that was running, and what of it."""

    frame: FrameType
    line: int
    code: str
    statement: ast.AST  # as much of it as could be read
    exact: ast.AST | None = None  # the very expression, where Python knows it

    @property
    def raises(self) -> bool:
        """Whether the program itself said that something is wrong."""
        return isinstance(self.statement, (ast.Raise, ast.Assert)) or self.code.startswith(
            ("raise ", "assert ")
        )

    @property
    def file(self) -> str:
        return self.frame.f_code.co_filename

    def expressions(self) -> Iterator[ast.AST]:
        """Those that may have failed."""
        if self.exact is not None:
            yield self.exact
        else:
            yield from ast.walk(self.statement)


def code_at(frame: FrameType, line: int) -> str:
    return linecache.getline(frame.f_code.co_filename, line, frame.f_globals).strip()


def spot(frame: FrameType, line: int, instruction: int) -> FailingSpot:
    """Where a frame of a traceback stood (`tb_lineno`, `tb_lasti`)."""
    code = code_at(frame, line)
    tree = _tree(frame)
    position = _position(frame.f_code, instruction)
    exact = _expression(tree, position) if tree is not None and position is not None else None
    # Without columns the statement around a lambda may hold others, which did not run.
    known = tree is not None and (position is not None or frame.f_code.co_name != "<lambda>")
    statement = _statement(tree, line, position) if tree is not None and known else None
    return FailingSpot(frame, line, _written(exact or statement, code), statement or _parsed(code), exact)


def _tree(frame: FrameType) -> ast.AST | None:
    try:
        return ast.parse("".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # not Python, or of another version
        return None


def _position(code: CodeType, instruction: int) -> Position | None:
    """From Python 3.11 on every instruction knows where it stands."""
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
    """The simple statement that was running; of one with a body no more than the line is wanted."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or hasattr(node, "body") or hasattr(node, "cases"):
            continue
        begins = node.lineno, node.col_offset
        ends = node.end_lineno or node.lineno, node.end_col_offset or 0
        if begins <= position[:2] < ends if position is not None else begins[0] <= line <= ends[0]:
            return node
    return None


def _written(node: ast.AST | None, code: str) -> str:
    """The line as it is, unless what failed goes over several."""
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
