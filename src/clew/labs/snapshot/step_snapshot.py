"""Runs the program's training steps on a snapshot: from the initial state, with cloned optimizers.

`snapshot.py` saves and restores; here the program's own modules are set to their initial state, the
optimizers are cloned, and the user's step is run: once, observed, or as a short training.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.overrides import TorchFunctionMode

from clew.hooks.collect_loop.loss_calls import LOSSES
from clew.labs.snapshot.inplace_writes import same_values
from clew.labs.snapshot.snapshot import hooked, snapshot
from clew.measure.loss_arguments import loss_arguments
from clew.measure.rng import seed_all

if TYPE_CHECKING:
    from clew.labs.snapshot.step_batch import StepBatch
    from clew.labs.snapshot.subject import Subject


@dataclass(frozen=True)
class TrainingState:
    """Values of tensors and of optimizers at one moment."""

    tensors: list[tuple[Tensor, Tensor]]  # a parameter or buffer, and its values
    optimizers: list[tuple[Optimizer, dict[str, Any]]]

    @classmethod
    def take(cls, modules: Sequence[nn.Module], optimizers: Sequence[Optimizer]) -> TrainingState:
        values = [(t, t.detach().clone()) for t in trained_tensors(modules, optimizers)]
        return cls(values, [(o, _optimizer_state(o)) for o in optimizers])

    def put(self) -> None:
        """Write the values back into the same tensors."""
        with torch.no_grad():
            for tensor, value in self.tensors:
                if not same_values(tensor, value):
                    tensor.detach().copy_(value)


def trained_tensors(modules: Sequence[nn.Module], optimizers: Sequence[Optimizer]) -> list[Tensor]:
    """Parameters and buffers of the modules, and what else the optimizers update, each once."""
    found: dict[int, Tensor] = {}
    for module in modules:
        found.update({id(t): t for t in (*module.parameters(), *module.buffers())})
    for optimizer in optimizers:
        found.update({id(p): p for group in optimizer.param_groups for p in group["params"]})
    return list(found.values())


def _optimizer_state(optimizer: Optimizer) -> dict[str, Any]:
    """Deep copies of all but the parameters themselves."""
    memo: dict[int, Any] = {id(p): p for group in optimizer.param_groups for p in group["params"]}
    return {
        "state": copy.deepcopy(dict(optimizer.state), memo),
        "groups": [copy.deepcopy({**g}, memo) for g in optimizer.param_groups],
    }


def cloned_optimizer(optimizer: Optimizer, state: dict[str, Any] | None = None) -> Optimizer:
    """A second optimizer of the same parameters: stepping it leaves the user's optimizer unchanged."""
    state = _optimizer_state(optimizer) if state is None else state
    memo: dict[int, Any] = {id(p): p for group in optimizer.param_groups for p in group["params"]}
    clone: Optimizer = object.__new__(type(optimizer))
    clone.__dict__.update({k: v for k, v in vars(optimizer).items() if k not in _OWN})
    for name in _HOOKS:
        if name in vars(optimizer):
            clone.__dict__[name] = type(vars(optimizer)[name])()
    factory = getattr(optimizer.state, "default_factory", None)
    clone.state = type(optimizer.state)(*([] if factory is None else [factory]))
    clone.state.update(copy.deepcopy(state["state"], dict(memo)))
    clone.param_groups = [copy.deepcopy({**g}, dict(memo)) for g in state["groups"]]
    for group in clone.param_groups:
        if "initial_lr" in group:  # the rate after warm-up, as the user wrote it
            group["lr"] = group["initial_lr"]
    return clone


_OWN = {"state", "param_groups", "step"}  # a scheduler sets a counting `step` on the instance
_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")


@dataclass
class LossCall:
    """One call of a torch loss function inside the step."""

    kind: str
    prediction: Tensor
    target: Tensor | None
    result: Any
    options: dict[str, Any]


@dataclass
class ObservedStep:
    """One observed run of the step."""

    loss: Tensor
    outputs: list[tuple[str, Any]] = field(default_factory=list)  # of the outermost models, in order
    inputs: list[tuple[str, Any, Any]] = field(default_factory=list)  # args and kwargs given to them
    calls: list[LossCall] = field(default_factory=list)


class StepSnapshot:
    """Enter it, try things, leave it: all state is restored."""

    def __init__(self, subject: Subject, seed: int = 0, *, fresh: bool = False) -> None:
        self.subject = subject
        self._seed = seed
        self._fresh = fresh
        self._stack = contextlib.ExitStack()
        self.optimizers: list[Optimizer] = []

    def __enter__(self) -> StepSnapshot:
        subject = self.subject
        modules = list(subject.models.values())
        with contextlib.ExitStack() as stack:
            tensors = trained_tensors(modules, subject.optimizers)
            owners = _owners(subject)
            stack.enter_context(snapshot(owners, tensors=tensors, copy=True, autocast=subject.autocast))
            first = subject.initial or TrainingState([], [])
            first.put()
            for tensor in tensors:
                tensor.grad = None
            states = {id(o): s for o, s in first.optimizers}
            self.optimizers = [cloned_optimizer(o, states.get(id(o))) for o in subject.optimizers]
            self.seed(self._seed)
            if self._fresh:
                redraw(modules)
                self.seed(self._seed)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def seed(self, number: int) -> None:
        """The same random numbers for what follows."""
        seed_all(number)

    @property
    def optimizer(self) -> Optimizer:
        """A clone of the user's only optimizer, past its warm-up."""
        _ = self.subject.optimizer  # raises with the reason if there is not exactly one
        return self.optimizers[0]

    def loss(self, batch: StepBatch) -> Tensor:
        """The user's own loss of this batch, with its graph."""
        self.subject.need_step()
        assert self.subject.step is not None
        return self.subject.step(batch)

    def observe(self, batch: StepBatch) -> ObservedStep:
        """The same, with the models' outputs and the loss functions' arguments."""
        seen = ObservedStep(torch.zeros(()))
        handles = [
            module.register_forward_hook(partial(_note_call, seen, name), with_kwargs=True)
            for name, module in self.subject.models.items()
        ]
        with hooked(*handles), _LossCalls(seen.calls):
            seen.loss = self.loss(batch)
        return seen

    def loss_value(self, *batches: StepBatch) -> float:
        """The mean loss of these batches as a number, from the same random numbers each time."""
        self.seed(0)
        return sum(float(self.loss(batch).detach()) for batch in batches) / len(batches)

    @staticmethod
    def gradients(loss: Tensor, tensors: Sequence[Tensor]) -> list[Tensor | None]:
        """Uses `backward()`, not `autograd.grad`, which reentrant checkpointing does not allow."""
        for tensor in tensors:
            tensor.grad = None
        loss.backward()
        found = [tensor.grad for tensor in tensors]
        for tensor in tensors:
            tensor.grad = None
        return found

    def train(
        self,
        batches: Sequence[StepBatch],
        steps: int,
        *,
        optimizer: Optimizer | None = None,
        on_step: Callable[[int, float], bool | None] | None = None,
    ) -> list[float]:
        """Plain training steps over the batches in turn; `on_step` may end it by returning True."""
        optimizer = optimizer or self.optimizer
        losses: list[float] = []
        for number in range(steps):
            losses.append(self._train_once(optimizer, batches[number % len(batches)]))
            if on_step is not None and on_step(number, losses[-1]):
                break
        return losses

    def _train_once(self, optimizer: Optimizer, batch: StepBatch) -> float:
        def closure() -> Any:
            optimizer.zero_grad()
            loss = self.loss(batch)
            loss.backward()
            if self.subject.clip is not None:
                parameters = [p for group in optimizer.param_groups for p in group["params"]]
                nn.utils.clip_grad_norm_(parameters, self.subject.clip)
            return loss

        if type(optimizer).__name__ == "LBFGS":
            return float(torch.as_tensor(optimizer.step(closure)).detach())
        loss = closure()
        optimizer.step()
        return float(loss.detach())


def redraw(modules: Sequence[nn.Module]) -> list[str]:
    """Redraw the weights of all layers that can reset theirs; returns the names of those that can't."""
    kept: list[str] = []
    for top in modules:
        for name, module in top.named_modules():
            reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
            if callable(reset):
                reset()
            elif next(module.parameters(recurse=False), None) is not None:
                kept.append(name)
    return kept


def _owners(subject: Subject) -> Iterator[Any]:
    seen: set[int] = set()
    for top in (*subject.models.values(), *subject.owners):
        for owner in top.modules() if isinstance(top, nn.Module) else (top,):
            if id(owner) not in seen and hasattr(owner, "__dict__"):
                seen.add(id(owner))
                yield owner


def _note_call(seen: ObservedStep, name: str, _: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
    seen.inputs.append((name, args, kwargs))
    seen.outputs.append((name, output))


class _LossCalls(TorchFunctionMode):
    """Observes calls of torch's loss functions, including those by loss modules."""

    def __init__(self, calls: list[LossCall]) -> None:
        super().__init__()
        self._calls = calls

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name in LOSSES and getattr(func, "__module__", "") == "torch.nn.functional":
            prediction, target, _, options = loss_arguments(args, kwargs)
            if isinstance(prediction, Tensor):
                known = target if isinstance(target, Tensor) else None
                self._calls.append(LossCall(name, prediction, known, result, dict(options)))
        return result
