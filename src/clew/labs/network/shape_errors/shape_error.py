"""Explains why a forward failed, from the traceback: its frames still reference modules and tensors.

Nothing has to be recorded for this while a program runs, so it costs nothing until it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor, nn

from clew.hooks.entry.user_line import HIDDEN, USER, kind_of
from clew.labs.network.shape_errors.call_expectations import message_mismatch
from clew.labs.network.shape_errors.failing_expression import (
    FailingSpot,
    argument_names,
    code_at,
    find_spot,
    judge,
    tensors_at,
)
from clew.labs.network.shape_errors.layer_expectations import embedding, expectation
from clew.labs.network.shape_errors.loss_expectations import LOSSES, loss_mismatch
from clew.labs.network.shape_errors.mismatch import Maker, Mismatch
from clew.labs.network.tensor_info import described
from clew.measure.nested_tensors import tensors_in
from clew.records.network import INPUT, ModuleFrame, ShapeError, TensorInfo

if TYPE_CHECKING:
    from clew.labs.network.trace.op_tracer import ForwardTrace

KINDS = (
    ("device", r"same device|device type|found at least two devices|on cpu, but|(?i:expected.*device)"),
    ("index", r"(?i:index out of range|out of bounds|class values must be)"),
    (
        "dtype",  # dtype names as torch writes them: in lower case they are parts of other words
        r"dtype|scalar type|[Ee]xpected .*(Long|Float|Double|Half|Int|Byte|Bool)|Input type|result type"
        r"|[Ee]xpected floating point|not implemented for",
    ),
    (
        "shape",
        r"(?i:shape|size|dimension|channels|broadcast|must match|same reduction dim|cannot be multiplied"
        r"|expected .*[1-9]-?d\b|[1-9]-?d (tensor|input|target)|must be a (matrix|vector)|matrices expected"
        r"|expected input|more than 1 value per channel|should contain \d+ elements"
        r"|normalized_shape|target tensor expected|was expecting embedding)",
    ),
)
# Failures of another kind whose messages mention sizes too.
_OTHER = re.compile(
    r"out of memory|inplace operation|version \d|state_dict|allocate|worker|pickle|checkpoint"
)
# Parts of torch in which the user's line does not show what failed: loaders, backward, optimizers.
_ELSEWHERE = re.compile(r"torch[/\\](utils[/\\]data|autograd[/\\](__init__|graph)|optim|distributed)")
_TYPES = (RuntimeError, ValueError, IndexError, TypeError, AssertionError)


class ForwardError(RuntimeError):
    """A forward that failed; `shape_error` says where, with what shapes, and what would help."""

    def __init__(self, shape_error: ShapeError) -> None:
        super().__init__(shape_error.suggestion or shape_error.error)
        self.shape_error = shape_error


def explain_mismatch(error: BaseException) -> ShapeError | None:
    """The explanation of an uncaught exception, if it is a mismatch of shapes, dtypes or devices in torch."""
    if not isinstance(error, _TYPES) or kind_of_error(error) == "other" or not _raised_by_torch(error):
        return None
    shape_error = explain(error)
    return shape_error if shape_error.frames else None


class FailedStep(NamedTuple):
    """A frame of the traceback, its position, and the module being called there."""

    frame: FrameType
    line: int
    instruction: int
    module: nn.Module | None

    @property
    def file(self) -> str:
        return self.frame.f_code.co_filename


def explain(
    error: BaseException, model: nn.Module | None = None, trace: ForwardTrace | None = None
) -> ShapeError:
    """The module stack with shapes, what was expected and given, and a suggestion."""
    walked = list(_walk(error.__traceback__))
    calls = [(step.frame, step.module) for step in walked if step.module is not None]
    root = model if model is not None else (calls[0][1] if calls else None)
    paths = {id(m): p for p, m in root.named_modules()} if root is not None else {}
    place = _last_line(walked)
    frames = [_frame(frame, module, paths, walked) for frame, module in calls]
    found = _judge_layer(calls, trace, paths) or _judge_function(walked, place)
    if found is None and not _is_layer(calls):  # inside a layer torch's message is about its own tensors
        found = (judge(place, error) if place is not None else None) or message_mismatch(error)
    if place is not None and not _is_layer(calls):
        frames += _line_frame(place)
    return ShapeError(
        error=f"{type(error).__name__}: {_first_line(error)}",
        frames=tuple(frames),
        kind=found.kind if found is not None else kind_of_error(error),
        expected=found.expected if found is not None else None,
        given=found.given if found is not None else None,
        suggestion=(found.suggestion or None) if found is not None else None,
        file=place.file if place is not None else None,
        line=place.line if place is not None else None,
        code=place.code if place is not None else "",
    )


def kind_of_error(error: BaseException) -> str:
    text = str(error)
    if _OTHER.search(text):
        return "other"
    return next((kind for kind, pattern in KINDS if re.search(pattern, text)), "other")


def _raised_by_torch(error: BaseException) -> bool:
    """Raised inside torch, or on the user's line by one of torch's compiled functions."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        if _ELSEWHERE.search(last.tb_frame.f_code.co_filename):
            return False
        last = last.tb_next
    if last is None:
        return False
    if kind_of(last.tb_frame.f_code.co_filename) == HIDDEN:
        return True
    return not find_spot(last.tb_frame, last.tb_lineno, last.tb_lasti).raises


def _walk(traceback: TracebackType | None) -> Iterator[FailedStep]:
    while traceback is not None:
        frame = traceback.tb_frame
        called = None
        if frame.f_code.co_name == "_call_impl":
            owner = frame.f_locals.get("self")
            called = owner if isinstance(owner, nn.Module) else None
        yield FailedStep(frame, traceback.tb_lineno, traceback.tb_lasti, called)
        traceback = traceback.tb_next


def _last_line(walked: list[FailedStep]) -> FailingSpot | None:
    """The user's innermost line; a library's if there is none."""
    for wanted in (USER, HIDDEN + 1):
        for step in reversed(walked):
            if kind_of(step.file) == wanted:
                return find_spot(step.frame, step.line, step.instruction)
    return None


def _frame(frame: FrameType, module: nn.Module, paths: dict[int, str], walked: Any) -> ModuleFrame:
    return ModuleFrame(
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
    """The running line of the module's own forward, if it is user code."""
    for step in walked:
        own = step.frame.f_locals.get("self") is module and step.frame.f_code.co_name != "_call_impl"
        if own and kind_of(step.file) != HIDDEN:
            return {"file": step.file, "line": step.line, "code": code_at(step.frame, step.line)}
    return {}


def _is_layer(calls: list[tuple[FrameType, nn.Module]]) -> bool:
    return bool(calls) and type(calls[-1][1]).__module__.startswith("torch.")


def _judge_layer(calls: Any, trace: ForwardTrace | None, paths: dict[int, str]) -> Mismatch | None:
    if not _is_layer(calls) or isinstance(calls[-1][1], nn.Sequential):
        return None
    frame, module = calls[-1]
    args, kwargs = frame.f_locals.get("args", ()), frame.f_locals.get("kwargs", {})
    return expectation(module, args, kwargs, _before(calls, trace, paths))


def _judge_function(walked: list[FailedStep], place: FailingSpot | None) -> Mismatch | None:
    """A torch.nn.functional function: its frame still has its arguments."""
    for step in reversed(walked):
        if step.module is not None or kind_of(step.file) == USER:
            return None
        if step.file.replace("\\", "/").endswith("torch/nn/functional.py"):
            return _judge_functional(step.frame.f_code.co_name, step.frame.f_locals, place)
    return None


def _judge_functional(name: str, given: dict[str, Any], place: FailingSpot | None) -> Mismatch | None:
    x, target, weight = given.get("input"), given.get("target"), given.get("weight")
    if name in LOSSES and isinstance(x, Tensor) and isinstance(target, Tensor):
        names = argument_names(place, ("output", "target"))
        return loss_mismatch(name, x, target, names, given.get("ignore_index", -100))
    if name == "embedding" and isinstance(x, Tensor) and isinstance(weight, Tensor):
        return embedding(weight, x)
    return None


def _before(calls: Any, trace: ForwardTrace | None, paths: dict[int, str]) -> Maker | None:
    """What produced the failing layer's input, in the user's words: `fc1`, or `relu`."""
    if trace is not None:
        maker = _maker(trace, calls[-1][1])
        if maker is not None:
            return maker
    if len(calls) > 1 and isinstance(calls[-2][1], nn.Sequential):
        siblings = list(calls[-2][1])
        number = next((n for n, m in enumerate(siblings) if m is calls[-1][1]), 0)
        if number:
            path = paths.get(id(siblings[number - 1]))
            return Maker(path, siblings[number - 1]) if path is not None else None
    return None


def _maker(trace: ForwardTrace, failing: nn.Module) -> Maker | None:
    """The last layer before this one, skipping activations and views that keep the last size."""
    failed = next((c for c in reversed(trace.calls) if c.module is failing), None)
    number = failed.reads[0] if failed is not None and failed.reads else INPUT
    while number != INPUT:
        op = trace.ops[number]
        if op.call is not None and not op.call.module._modules:
            return Maker(op.call.path, op.call.module)
        same = len(op.inputs) == 1 and op.outputs and op.inputs[0].shape == op.outputs[0].shape
        number = max(op.sources, default=INPUT) if same else INPUT
    return None


def _line_frame(place: FailingSpot) -> list[ModuleFrame]:
    """The tensors that the user's failing line names."""
    tensors = tensors_at(place)
    if not tensors:
        return []
    return [
        ModuleFrame(
            module=None,
            kind=place.frame.f_code.co_name,
            detail="",
            given=tuple((name, described(t)) for name, t in tensors.items()),
            file=place.file,
            line=place.line,
            code=place.code,
        )
    ]


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0]
