"""Captures a subject from a running program: its first steps, their data and how the loss is computed.

An observer of the watcher. Before the first update it keeps the state of models and optimizers,
finds a way to recompute the loss, and verifies that the result is the same; then it
collects the batches of the steps that follow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._pytree import tree_structure

from clew.hooks.collect_layers.trained_models import Root, unwrap
from clew.hooks.steps.step_machine import distributed
from clew.labs.snapshot.snapshot import Autocast
from clew.labs.snapshot.step_batch import INPUT, TARGET, StepBatch
from clew.labs.snapshot.step_snapshot import TrainingState
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import failure
from clew.labs.snapshot.users_step.side_effects import CannotRerun
from clew.labs.snapshot.users_step.step_function import (
    StepEvents,
    StepFunction,
    UnknownStep,
    calling_frame,
    candidates,
)
from clew.labs.snapshot.users_step.tensor_roles import RoleFlow, sample_dims
from clew.measure.nested_tensors import map_tensors, tensors_in
from clew.measure.rng import Rng
from clew.records.site import Line

if TYPE_CHECKING:
    from clew.hooks.steps.watcher import Watcher

BATCHES = 16  # that are collected
MOST_BYTES = 512 * 2**20  # of batches
MOST_SECONDS = 20.0  # of collecting, once there are enough batches
ENOUGH = 2  # batches
MOST_FORWARDS = 64  # of models in one step
SAME = 1e-4  # relative difference up to which two losses are equal: other kernels round differently
SEVERAL = "training is spread over several processes"
IN_TURN = "{number} losses alternate ({places})"
HINT = "pass the step itself: clew.examine(model, step=lambda batch: loss, batch_or_loader=loader)"


@dataclass
class CopiedBatch:
    """The data of one step: Clew's own tensors in the program's containers."""

    values: dict[str, Any]
    tensors: list[Tensor]  # the program's own, to recognise them
    versions: list[int]


@dataclass
class Capture:
    """Called by the watcher at every forward, loss and backward."""

    watcher: Watcher
    wanted: int = BATCHES
    finished: bool = False
    lines: dict[Line, int] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._events = StepEvents()
        self._models: dict[str, nn.Module] = {}
        self._initial: TrainingState | None = None
        self._optimizers: list[Optimizer] = []
        self._step: StepFunction | None = None  # that recomputes the loss
        self._reader: StepFunction | None = None  # that knows where the data is
        self._refused = ""
        self._autocast = Autocast()
        self._roles: tuple[str, ...] = ()
        self._structure: Any = None  # of the containers of a batch
        self._taken: list[CopiedBatch] = []
        self._bytes = 0
        self._began = 0.0
        self._loader: Any = None
        self._release_loaders = self.watcher.feeding.keep_loaders()

    # -- events --

    def forward(self, root: Root, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """A model returned."""
        if self.finished:
            return
        self._models.setdefault(root.name, unwrap(module))
        if len(self._events.forwards) >= MOST_FORWARDS:
            self._events.clear()  # an evaluation with gradients, not part of a step
        self._events.forwards.append((module, args, kwargs, output))
        self._keep_frame()

    def loss(self, kind: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """A torch loss function returned."""
        if not self.finished:
            self._events.losses.append((kind, function, args, kwargs, result))
            self._keep_frame()

    def backward(self, loss: Tensor, where: Line) -> None:
        """`backward()` is about to run: the step still exists."""
        if self.finished or not loss.requires_grad:  # else backward() will fail
            return
        if self._initial is None:
            self._begin(loss, where)
        else:
            self._go_on(loss, where)
        self.lines[where] = self.lines.get(where, 0) + 1
        self._events.clear()
        full = len(self._taken) >= self.wanted or self._bytes > MOST_BYTES
        slow = perf_counter() - self._began > MOST_SECONDS and sum(self.lines.values()) >= ENOUGH
        self.finished = full or slow or len(self.losses) >= self.wanted

    def _keep_frame(self) -> None:
        frame = calling_frame()
        if frame is not None:
            self._events.frames[frame.f_code] = frame
            if frame.f_code not in self._events.earlier:
                self._events.earlier[frame.f_code] = dict(frame.f_locals)

    # -- the first step --

    def _begin(self, loss: Tensor, where: Line) -> None:
        self._began = perf_counter()
        watcher = self.watcher
        watcher.optimizers.find_existing()
        self._optimizers = [o for ref in watcher.optimizers.created if (o := ref()) is not None]
        self._initial = TrainingState.take(list(self._models.values()), self._optimizers)
        self.losses.append(self._value(loss))
        self._loader = self._loader_of_step()
        if distributed():
            self._refused = SEVERAL
        else:
            with watcher.machine.unwatched():
                self._find_step(loss, where)
        if self._step is None:
            self._collect_only()

    def _collect_only(self) -> None:
        """Without a step: collect the inputs of models and loss functions."""
        self._reader = reader = UnknownStep()
        values = reader.read(self._events)
        if values is not None:
            self._roles, self._structure = reader.roles, tree_structure(values)
            self._taken.append(self._copied(values))

    def _find_step(self, loss: Tensor, where: Line) -> None:
        optimised = frozenset(
            id(p) for o in self._optimizers for group in o.param_groups for p in group["params"]
        )
        reasons: list[str] = []
        for step in candidates(loss, where, self._events, optimised):
            reason = str(step) if isinstance(step, CannotRerun) else self._use(step)
            if not reason:
                return
            reasons.append(reason)
        self._refused = reasons[0] if reasons else "the code that computes the loss was not found"

    def _use(self, step: StepFunction) -> str:
        """Run it once more; returns why it is of no use, or an empty string."""
        values = step.read(self._events)
        if values is None:
            return "its inputs were not found"
        bare = self._bare(values)
        if bare:
            return f"{bare} is trained, but belongs to no module or optimizer"
        taken = self._copied(values)
        enabled, dtype = self.watcher.holding.autocast
        reason = ""
        for autocast in (Autocast(), Autocast("cpu", True, dtype)) if enabled else (Autocast(),):
            reason = self._run_again(step, taken, autocast)
            if not reason:
                self._step = self._reader = step
                self._autocast = autocast
                self._taken.append(taken)
                return ""
        return reason

    def _run_again(self, step: StepFunction, taken: CopiedBatch, autocast: Autocast) -> str:
        """On the current state; must give the loss that the program has just computed."""
        flow = RoleFlow(tensors_in(taken.values))
        subject = Subject(self._models, optimizers=self._optimizers, autocast=autocast)
        try:
            with subject.snapshot():
                Rng(*self.watcher.holding.rng).put()
                with flow.watching(self._models):
                    again = step.run(taken.values)
                value = _number(again)
        except Exception as error:  # noqa: BLE001 - the user's code may fail in any way the second time
            return failure(error)
        if value is None:
            return "its result is not a scalar with gradients"
        if not _same(value, self.losses[-1]):
            return f"run again, it gives {value:.6g} instead of {self.losses[-1]:.6g}"
        self._roles, self._structure = flow.roles(), tree_structure(taken.values)
        return ""

    def _bare(self, values: dict[str, Any]) -> str | None:
        """A leaf with gradients that no optimizer has and no model was given: it can't be restored."""
        given = {id(t) for _, args, kwargs, _ in self._events.forwards for t in tensors_in((args, kwargs))}
        for name, value in values.items():
            if any(t.requires_grad and id(t) not in given for t in tensors_in(value)):
                return name
        return None

    # -- the steps after it --

    def _go_on(self, loss: Tensor, where: Line) -> None:
        if where not in self.lines:
            return  # a different loss: the subject reports it
        self.losses.append(self._value(loss))
        if self._loader is None:
            self._loader = self._loader_of_step()
        values = self._reader.read(self._events) if self._reader is not None else None
        if values is not None and self._taken:
            self._take(values)

    def _take(self, values: dict[str, Any]) -> None:
        tensors = tensors_in(values)
        first = self._taken[0]
        if tree_structure(values) != self._structure or len(tensors) != len(first.tensors):
            return
        last = self._taken[-1]
        unchanged = all(a is b for a, b in zip(tensors, last.tensors, strict=True))
        if tensors and unchanged and [t._version for t in tensors] == last.versions:
            return  # the whole dataset in every step, or a closure that is called again
        self._taken.append(self._copied(values))
        if len(self._taken) == ENOUGH and self._step is not None:
            self._confirm(self._step)

    def _confirm(self, step: StepFunction) -> None:
        """A second batch: an input that changes from step to step and was missed would show now."""
        with self.watcher.machine.unwatched():
            reason = self._run_again(step, self._taken[-1], self._autocast)
        if reason:
            self._step, self._refused = None, reason

    def _copied(self, values: dict[str, Any]) -> CopiedBatch:
        originals = tensors_in(values)
        self._bytes += sum(t.numel() * t.element_size() for t in originals)
        versions = [t._version if not t.is_inference() else 0 for t in originals]
        return CopiedBatch(map_tensors(values, _copy), originals, versions)

    def _value(self, loss: Tensor) -> float:
        unscaled = self.watcher.before_scaling(loss)
        return float(unscaled.detach()) if unscaled.numel() == 1 else math.nan

    def _loader_of_step(self) -> Any:
        feeding = self.watcher.feeding
        number = feeding.loader
        known = feeding.objects.get(number) if number is not None else None
        return known() if known is not None else None

    # -- results --

    @property
    def began(self) -> bool:
        """Whether a training step was seen."""
        return self._initial is not None

    def release(self) -> None:
        """Capture no more, and keep no loader alive."""
        self.finished = True
        self._events.clear()
        self._release_loaders()

    def subject(self) -> Subject:
        """The subject for experiments."""
        self.release()
        stepped = [o for s in self.watcher.optimizers.states if (o := s.optimizer()) is not None]
        optimizers = [o for o in self._optimizers if not stepped or any(o is s for s in stepped)]
        found = Subject(
            models=dict(self._models),
            optimizers=optimizers,
            initial=self._initial,
            autocast=self._autocast,
            clip=self.watcher.clip_norm,
            loader=self._loader,
            dataset=getattr(self._loader, "dataset", None),
            line=next(iter(self.lines), (None, None)),
            losses=self.losses,
        )
        self._add_step(found)
        if self._loader is None:
            found.reasons["loader"] = "the data does not come from a torch DataLoader"
        return found

    def _add_step(self, found: Subject) -> None:
        if len(self.lines) > 1:
            places = " and ".join(f"line {line}" for _, line in list(self.lines)[:3])
            reason = IN_TURN.format(number=_counted(len(self.lines)), places=places)
            found.reasons.update(step=reason, batches=reason)
            found.hints.update(step=HINT, batches=HINT)
            return
        step = self._step
        if step is None:
            found.reasons["step"] = f"the loss can't be computed again: {self._refused}"
            found.hints["step"] = HINT
        else:
            found.step = lambda batch: step.run(batch.values)
            found.source = step.source
        if self._taken:
            found.batches = self._batches()

    def _one_by_one(self, values: dict[str, Any], dims: Sequence[int | None]) -> bool:
        """Whether samples come in a list, as images of different sizes do: then no tensor is a batch."""
        lists = [value for value in values.values() if isinstance(value, list)]
        listed = any(sum(isinstance(part, Tensor) for part in value) > 1 for value in lists)
        targets = [n for n, role in enumerate(self._roles) if role == TARGET]
        return listed and bool(targets) and all(dims[n] is None for n in targets)

    def _batches(self) -> list[StepBatch]:
        first = self._taken[0]
        several = len(self._taken) > 1
        constant = [
            several and all(t.tensors[n] is first.tensors[n] for t in self._taken)
            for n in range(len(first.tensors))
        ]
        own = [tensors_in(taken.values) for taken in self._taken]
        size = getattr(self._loader, "batch_size", None)
        dims = sample_dims(own, self._roles, self._models.values(), size, constant)
        if self._one_by_one(first.values, dims):
            dims = (None,) * len(dims)
        return [
            StepBatch(taken.values, self._roles, dims, _size(tensors, dims, self._roles))
            for taken, tensors in zip(self._taken, own, strict=True)
        ]


def _same(one: float, other: float) -> bool:
    """Equal losses, up to rounding; both may be non-finite."""
    if not math.isfinite(one) or not math.isfinite(other):
        return not math.isfinite(one) and not math.isfinite(other)
    return abs(one - other) <= SAME * max(abs(one), abs(other), 1e-8)


def _number(loss: Any) -> float | None:
    if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
        return None
    return float(loss.detach())


def _size(tensors: Sequence[Tensor], dims: Sequence[int | None], roles: Sequence[str]) -> int:
    found = [
        (role != INPUT, role != TARGET, int(tensor.shape[dim]))
        for tensor, dim, role in zip(tensors, dims, roles, strict=True)
        if dim is not None
    ]
    return min(found)[-1] if found else 0


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _counted(number: int) -> str:
    return {2: "two", 3: "three"}.get(number, str(number))
