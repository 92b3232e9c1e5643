"""Why a forward failed, read from the traceback: frames still hold the modules and the tensors.

Nothing has to be recorded for this while a program runs, so it costs nothing until it is needed.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from clew.attach.frames import HIDDEN, USER, kind_of
from clew.model.expectations import Mismatch, expectation
from clew.model.line_tensors import judge_line, tensors_on_line
from clew.model.tensors import described, tensors_in
from clew.structure import INPUT, Frame, Mishap, TensorInfo

if TYPE_CHECKING:
    from clew.model.tracing import Trace

KINDS = (
    ("device", r"same device|device type|found at least two devices|on cpu, but|Expected.*device"),
    ("index", r"index out of range|out of bounds|Class values must be"),
    (
        "dtype",
        r"dtype|scalar type|expected .*(Long|Float|Double|Half|Int|Byte|Bool)|Input type|result type"
        r"|not implemented for",
    ),
    (
        "shape",
        r"shape|size|dimension|channels|broadcast|must match|same reduction dim|cannot be multiplied"
        r"|Expected .*(2D|3D|4D|5D|[0-9]-?[dD])|expected input|more than 1 value per channel"
        r"|normalized_shape|target tensor expected",
    ),
)
# Failures of another kind whose messages speak of sizes too.
_OTHER = re.compile(
    r"out of memory|inplace operation|version \d|state_dict|allocate|worker|pickle|checkpoint"
)
# Parts of torch in which the user's line says nothing of what failed: loaders, the backward, optimizers.
_ELSEWHERE = re.compile(r"torch[/\\](utils[/\\]data|autograd[/\\](__init__|graph)|optim|distributed)")
_TYPES = (RuntimeError, ValueError, IndexError, TypeError, AssertionError)


class ForwardError(RuntimeError):
    """A forward that failed; `mishap` says where, with what shapes, and what would help."""

    def __init__(self, mishap: Mishap) -> None:
        super().__init__(f"{mishap.suggestion or mishap.error}\n{mishap.text()}")
        self.mishap = mishap


def mismatch(error: BaseException) -> Mishap | None:
    """The explanation of an uncaught exception, if it is a mismatch of shapes, types or devices in torch."""
    if not isinstance(error, _TYPES) or kind_of_error(error) == "other" or not _raised_by_torch(error):
        return None
    mishap = explain(error)
    return mishap if mishap.frames else None


def explain(error: BaseException, model: nn.Module | None = None, trace: Trace | None = None) -> Mishap:
    """The module stack with shapes, what was expected and given, and a suggestion."""
    walked = list(_walk(error.__traceback__))
    calls = [(frame, module) for frame, _, module in walked if module is not None]
    root = model if model is not None else (calls[0][1] if calls else None)
    paths = {id(m): p for p, m in root.named_modules()} if root is not None else {}
    place = _last_line(walked)
    frames = [_frame(frame, module, paths, walked) for frame, module in calls]
    found = _judge(error, calls, place, trace, paths)
    if place is not None and not _is_layer(calls):
        frames += _line_frame(place)
    return Mishap(
        error=f"{type(error).__name__}: {_first_line(error)}",
        frames=tuple(frames),
        kind=found.kind if found is not None else kind_of_error(error),
        expected=found.expected if found is not None else None,
        given=found.given if found is not None else None,
        suggestion=found.suggestion if found is not None else None,
        file=place[0].f_code.co_filename if place is not None else None,
        line=place[1] if place is not None else None,
        code=_code(*place) if place is not None else "",
    )


def kind_of_error(error: BaseException) -> str:
    text = str(error)
    if _OTHER.search(text):
        return "other"
    return next((kind for kind, pattern in KINDS if re.search(pattern, text)), "other")


def _raised_by_torch(error: BaseException) -> bool:
    """Raised inside torch, or in the user's line itself by one of torch's compiled functions."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        if _ELSEWHERE.search(last.tb_frame.f_code.co_filename):
            return False
        last = last.tb_next
    if last is None:
        return False
    if kind_of(last.tb_frame.f_code.co_filename) == HIDDEN:
        return True
    code = _code(last.tb_frame, last.tb_lineno)
    return not code.startswith(("raise ", "assert "))


def _walk(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int, nn.Module | None]]:
    """Frames, their lines, and the module where one is being called."""
    while traceback is not None:
        frame = traceback.tb_frame
        called = None
        if frame.f_code.co_name == "_call_impl":
            owner = frame.f_locals.get("self")
            called = owner if isinstance(owner, nn.Module) else None
        yield frame, traceback.tb_lineno, called
        traceback = traceback.tb_next


def _last_line(walked: list[tuple[FrameType, int, nn.Module | None]]) -> tuple[FrameType, int] | None:
    """The user's own innermost line; a library's, if there is none."""
    for wanted in (USER, HIDDEN + 1):
        for frame, line, _ in reversed(walked):
            if kind_of(frame.f_code.co_filename) == wanted:
                return frame, line
    return None


def _frame(frame: FrameType, module: nn.Module, paths: dict[int, str], walked: Any) -> Frame:
    return Frame(
        module=paths.get(id(module), type(module).__name__),
        kind=type(module).__name__,
        detail=module.extra_repr() if not module._modules else "",
        given=tuple(_given(frame, module)),
        **_place_within(module, walked),
    )


def _given(frame: FrameType, module: nn.Module) -> Iterator[tuple[str, TensorInfo]]:
    code = getattr(module.forward, "__code__", None)
    names = code.co_varnames[1 : code.co_argcount] if code is not None else ()
    for number, value in enumerate(frame.f_locals.get("args", ())):
        name = names[number] if number < len(names) else f"input {number}"
        yield from ((name, described(t)) for t in tensors_in(value))
    for name, value in frame.f_locals.get("kwargs", {}).items():
        yield from ((name, described(t)) for t in tensors_in(value))


def _place_within(module: nn.Module, walked: Any) -> dict[str, Any]:
    """The line of the module's own forward that was running, if it is the user's code."""
    for frame, line, _ in walked:
        own = frame.f_locals.get("self") is module and frame.f_code.co_name != "_call_impl"
        if own and kind_of(frame.f_code.co_filename) != HIDDEN:
            return {"file": frame.f_code.co_filename, "line": line, "code": _code(frame, line)}
    return {}


def _is_layer(calls: list[tuple[FrameType, nn.Module]]) -> bool:
    return bool(calls) and type(calls[-1][1]).__module__.startswith("torch.")


def _judge(error: BaseException, calls: Any, place: Any, trace: Trace | None, paths: Any) -> Mismatch | None:
    if _is_layer(calls) and not isinstance(calls[-1][1], nn.Sequential):
        frame, module = calls[-1]
        return expectation(module, _values(frame), error, _before(calls, trace, paths))
    if place is None:
        return None
    return judge_line(place[0], _code(*place), error)


def _values(frame: FrameType) -> list[Tensor]:
    return list(tensors_in((frame.f_locals.get("args", ()), frame.f_locals.get("kwargs", {}))))


def _before(calls: Any, trace: Trace | None, paths: dict[int, str]) -> str | None:
    """What made the failing layer's input, in the words of the user: `fc1`, or `relu`."""
    if trace is not None:
        maker = _maker(trace, calls[-1][1])
        if maker is not None:
            return maker
    if len(calls) > 1 and isinstance(calls[-2][1], nn.Sequential):
        siblings = list(calls[-2][1])
        number = next((n for n, m in enumerate(siblings) if m is calls[-1][1]), 0)
        if number:
            return paths.get(id(siblings[number - 1]))
    return None


def _maker(trace: Trace, failing: nn.Module) -> str | None:
    """The last layer before this one, through activations and views that keep the last size."""
    failed = next((c for c in reversed(trace.calls) if c.module is failing), None)
    number = failed.reads[0] if failed is not None and failed.reads else INPUT
    while number != INPUT:
        op = trace.ops[number]
        if op.call is not None and not op.call.module._modules:
            return op.call.path
        same = len(op.inputs) == 1 and op.outputs and op.inputs[0].shape == op.outputs[0].shape
        number = max(op.sources, default=INPUT) if same else INPUT
    return None


def _line_frame(place: tuple[FrameType, int]) -> list[Frame]:
    """The tensors that the failing line of the user names."""
    frame, line = place
    code = _code(frame, line)
    tensors = tensors_on_line(frame, code)
    if not tensors:
        return []
    return [
        Frame(
            module=None,
            kind=frame.f_code.co_name,
            detail="",
            given=tuple((name, described(t)) for name, t in tensors.items()),
            file=frame.f_code.co_filename,
            line=line,
            code=code,
        )
    ]


def _code(frame: FrameType, line: int) -> str:
    return linecache.getline(frame.f_code.co_filename, line, frame.f_globals).strip()


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0]
