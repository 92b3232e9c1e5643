"""The user's step, from model to loss, as a function that can be run again on other data.

The statements that computed the loss are searched for where `backward()` was called, in the functions
around it, and in the one that called the model. If that fails, a single call of a model and one of
a torch loss function, if they are the whole step, are repeated.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from torch import Tensor, nn

from clew.hooks.collect_layers.trained_models import unwrap
from clew.hooks.entry.user_line import LIBRARY, USER, kind_of
from clew.hooks.steps.replay_inputs import has_graph
from clew.labs.snapshot.step_batch import BOTH, INPUT, TARGET
from clew.labs.snapshot.users_step.loss_origin import ELSEWHERE, frame_of
from clew.labs.snapshot.users_step.loss_recipe import Recipe, recipe, recipe_of
from clew.labs.snapshot.users_step.side_effects import CannotRerun
from clew.labs.snapshot.users_step.step_slots import SlotReading
from clew.measure.loss_arguments import loss_arguments
from clew.measure.nested_tensors import tensors_in
from clew.records.site import Line

MOST_FRAMES = 12  # frames of the user's code that are searched above `backward()`


@dataclass
class StepEvents:
    """What was observed between two backwards."""

    # (module, args, kwargs, output) of models; (kind, function, args, kwargs, result) of loss functions
    forwards: list[tuple[nn.Module, Any, Any, Any]] = field(default_factory=list)
    losses: list[tuple[str, Any, Any, Any, Any]] = field(default_factory=list)
    frames: dict[CodeType, FrameType] = field(default_factory=dict)  # that called a model or a loss
    # its variables when it called the first model: the model's output overwrites some
    earlier: dict[CodeType, dict[str, Any]] = field(default_factory=dict)

    def clear(self) -> None:
        self.forwards.clear()
        self.losses.clear()
        self.frames.clear()
        self.earlier.clear()


class StepFunction:
    """A way to recompute the loss."""

    @property
    def source(self) -> str:
        """The step as text."""
        raise NotImplementedError

    def read(self, events: StepEvents) -> dict[str, Any] | None:
        """The data of the step that has just run; None if it was another step."""
        raise NotImplementedError

    def run(self, values: Mapping[str, Any]) -> Any:
        raise NotImplementedError


@dataclass
class SourceStep(StepFunction):
    """The user's own statements."""

    reading: SlotReading
    frame: Callable[[StepEvents], FrameType | None]

    @property
    def source(self) -> str:
        return self.reading.made.source

    def read(self, events: StepEvents) -> dict[str, Any] | None:
        frame = self.frame(events)
        if frame is None:
            return None
        earlier = events.earlier.get(frame.f_code, {})
        if not self.reading.made.earlier <= set(earlier):
            return None
        return self.reading.read({**frame.f_globals, **frame.f_locals, **earlier})

    def run(self, values: Mapping[str, Any]) -> Any:
        return as_loss(self.reading.run(values))


@dataclass
class RecordedStep(StepFunction):
    """One call of a model, whose output went straight into one loss function."""

    module: nn.Module
    function: Any
    position: int  # of the tensor among the model's outputs
    options: dict[str, Any]
    args: int
    keywords: tuple[str, ...]
    factor: float = 1.0

    @property
    def source(self) -> str:
        name = getattr(self.function, "__name__", "loss")
        return f"{name}({type(unwrap(self.module)).__name__}(input), target)"

    def read(self, events: StepEvents) -> dict[str, Any] | None:
        if len(events.forwards) != 1 or len(events.losses) != 1:
            return None
        _, args, kwargs, _ = events.forwards[0]
        _, _, given, named, _ = events.losses[0]
        values = {f"input[{n}]": value for n, value in enumerate(args)}
        return {**values, **(kwargs or {}), "target": given[1] if len(given) > 1 else named["target"]}

    def run(self, values: Mapping[str, Any]) -> Any:
        args = [values[f"input[{n}]"] for n in range(self.args)]
        output = unwrap(self.module)(*args, **{name: values[name] for name in self.keywords})
        prediction = tensors_in(output)[self.position]
        return self.function(prediction, values["target"], **self.options) * self.factor


@dataclass
class UnknownStep(StepFunction):
    """The loss can't be recomputed, but the inputs of models and loss functions are known."""

    roles: tuple[str, ...] = ()

    def read(self, events: StepEvents) -> dict[str, Any] | None:
        given = [t for _, args, kwargs, _ in events.forwards for t in _data((args, kwargs))]
        wanted = [
            t for _, _, args, kwargs, _ in events.losses for t in _data(loss_arguments(args, kwargs).target)
        ]
        inputs, targets = {id(t): t for t in given}, {id(t): t for t in wanted}
        found = [(INPUT if key not in targets else BOTH, t) for key, t in inputs.items()]
        found += [(TARGET, t) for key, t in targets.items() if key not in inputs]
        self.roles = tuple(role for role, _ in found)
        return {f"{role}[{number}]": t for number, (role, t) in enumerate(found)} or None


def as_loss(value: Any) -> Any:
    """The one number in what a step returns: `{"loss": …}` and (loss, outputs) are common."""
    if isinstance(value, Mapping) and "loss" in value:
        return value["loss"]
    if isinstance(value, (tuple, list)):
        numbers = [v for v in value if isinstance(v, Tensor) and v.numel() == 1 and v.requires_grad]
        return numbers[0] if len(numbers) == 1 else value
    return value


def candidates(
    loss: Tensor, where: Line, events: StepEvents, optimised: frozenset[int]
) -> Iterator[StepFunction | CannotRerun]:
    """Ways to recompute this loss, the best first; and why one is not possible."""
    here = frame_of(where)
    if here is not None and where[1] is not None:
        line = where[1]
        code = here.f_code
        before = events.earlier.get(code)
        yield _from_source(lambda: recipe(here, line, before), optimised, lambda _: _on_stack(code))
    for frame in _user_frames():
        name = _name_of(loss, frame)
        if name is not None and frame is not here:
            yield _from_frame(frame, name, events, optimised)
    for frame in reversed(list(events.frames.values())):
        if frame is not here:
            yield _from_frame(frame, _name_of(loss, frame), events, optimised)
    yield _recorded(loss, events)


def _from_source(
    make: Callable[[], Recipe], optimised: frozenset[int], find: Callable[[StepEvents], FrameType | None]
) -> StepFunction | CannotRerun:
    try:
        return SourceStep(SlotReading(make(), optimised), find)
    except CannotRerun as error:
        return error
    except Exception as error:  # noqa: BLE001 - source that is out of the ordinary is a reason, no failure
        return CannotRerun(f"its source could not be analysed ({type(error).__name__})")


def _from_frame(
    frame: FrameType, name: str | None, events: StepEvents, optimised: frozenset[int]
) -> StepFunction | CannotRerun:
    """From a running function, in which the loss has this name; without a name, from what it returns."""
    code = frame.f_code
    earlier = events.earlier.get(code)
    return _from_source(
        lambda: recipe_of(frame, frame.f_lineno, name, earlier),
        optimised,
        lambda later: _on_stack(code) or later.frames.get(code),
    )


def _on_stack(code: CodeType) -> FrameType | None:
    return next((frame for frame in _user_frames() if frame.f_code is code), None)


def _user_frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    seen = 0
    while frame is not None and seen < MOST_FRAMES:
        if kind_of(frame.f_code.co_filename) in (USER, LIBRARY):
            seen += 1
            yield frame
        frame = frame.f_back


def calling_frame() -> FrameType | None:
    """The innermost of the user's running functions."""
    return next((f for f in _user_frames() if kind_of(f.f_code.co_filename) == USER), None)


def _name_of(loss: Tensor, frame: FrameType) -> str | None:
    return next((name for name, value in list(frame.f_locals.items()) if value is loss), None)


def _recorded(loss: Tensor, events: StepEvents) -> StepFunction | CannotRerun:
    if len(events.forwards) != 1 or len(events.losses) != 1:
        return CannotRerun(ELSEWHERE)
    module, args, kwargs, output = events.forwards[0]
    _, function, given, named, result = events.losses[0]
    prediction, target, more, options = loss_arguments(given, named)
    outputs = tensors_in(output)
    position = next((n for n, t in enumerate(outputs) if t is prediction), None)
    factor = _factor(loss, result)
    if position is None or factor is None or not isinstance(target, Tensor) or more:
        return CannotRerun(ELSEWHERE)
    if has_graph(args) or has_graph((kwargs or {}).values()) or has_graph((target,)):
        return CannotRerun("the model's input was itself computed with gradients")
    return RecordedStep(module, function, position, dict(options), len(args), tuple(kwargs or {}), factor)


def _factor(loss: Tensor, result: Any) -> float | None:
    """Backward was called on the loss function's own result, or on a multiple of it."""
    if loss is result:
        return 1.0
    if not isinstance(result, Tensor) or result.numel() != 1 or loss.grad_fn is None:
        return None
    kind = type(loss.grad_fn).__name__
    inside = [node for node, _ in loss.grad_fn.next_functions if node is not None]
    if kind not in ("DivBackward0", "MulBackward0") or inside != [result.grad_fn]:
        return None
    before = float(result.detach())
    return float(loss.detach()) / before if before else None


def _data(value: Any) -> list[Tensor]:
    return [t for t in tensors_in(value) if t.grad_fn is None and not t.requires_grad]
