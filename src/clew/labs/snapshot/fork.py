"""A place to try something in: the program's own modules, with everything put back afterwards.

Not a copy of the modules: the user's step reaches them by whatever names and closures it has.
Parameters, buffers, gradients, modes, attributes, optimizer state and random generators are saved,
set to the first state, and restored bit by bit.
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as global_modules
from torch.optim import Optimizer
from torch.optim import optimizer as global_optimizers
from torch.overrides import TorchFunctionMode

from clew.hooks.collect_loop.loss_calls import LOSSES
from clew.labs.snapshot.held_step import Rng
from clew.labs.snapshot.plain_state import PlainState
from clew.labs.snapshot.undisturbed import is_users, undisturbed

if TYPE_CHECKING:
    from types import TracebackType

    from clew.labs.snapshot.step_batch import Batch
    from clew.labs.snapshot.subject import Subject


@dataclass(frozen=True)
class State:
    """Values of tensors and of optimizers at one moment."""

    tensors: list[tuple[Tensor, Tensor]]  # a parameter or buffer, and its values
    optimizers: list[tuple[Optimizer, dict[str, Any]]]

    @classmethod
    def take(cls, modules: Sequence[nn.Module], optimizers: Sequence[Optimizer]) -> State:
        found: dict[int, Tensor] = {}
        for module in modules:
            found.update({id(t): t for t in (*module.parameters(), *module.buffers())})
        for optimizer in optimizers:
            found.update({id(p): p for group in optimizer.param_groups for p in group["params"]})
        values = [(t, t.detach().clone()) for t in found.values()]
        return cls(values, [(o, _optimizer_state(o)) for o in optimizers])

    def put(self) -> None:
        """Write the values back into the same tensors."""
        with torch.no_grad():
            for tensor, value in self.tensors:
                if not _identical(tensor, value):
                    tensor.detach().copy_(value)


def _identical(tensor: Tensor, value: Tensor) -> bool:
    """Bit by bit; what has not changed is not written, which would count as a change of its own."""
    if tensor.shape != value.shape or tensor.dtype != value.dtype:
        return False
    return torch.equal(tensor.detach(), value)


def _optimizer_state(optimizer: Optimizer) -> dict[str, Any]:
    """Deep copies of all but the parameters themselves."""
    known: dict[int, Any] = {id(p): p for group in optimizer.param_groups for p in group["params"]}
    memo = dict(known)
    return {
        "state": copy.deepcopy(dict(optimizer.state), memo),
        "groups": [copy.deepcopy({**g}, memo) for g in optimizer.param_groups],
    }


def cloned_optimizer(optimizer: Optimizer, state: dict[str, Any] | None = None) -> Optimizer:
    """A second optimizer of the same parameters: stepping it leaves the user's own as it is."""
    state = _optimizer_state(optimizer) if state is None else state
    memo: dict[int, Any] = {id(p): p for group in optimizer.param_groups for p in group["params"]}
    clone: Optimizer = object.__new__(type(optimizer))
    clone.__dict__.update({k: v for k, v in vars(optimizer).items() if k not in _OWN})
    for name in _HOOKS:
        if name in vars(optimizer):
            clone.__dict__[name] = type(vars(optimizer)[name])()
    clone.state = type(optimizer.state)(*_factory(optimizer.state))
    clone.state.update(copy.deepcopy(state["state"], dict(memo)))
    clone.param_groups = [copy.deepcopy({**g}, dict(memo)) for g in state["groups"]]
    for group in clone.param_groups:
        if "initial_lr" in group:  # past the warm-up, as the user wrote it
            group["lr"] = group["initial_lr"]
    return clone


_OWN = {"state", "param_groups", "step"}  # a scheduler puts a counting `step` on the instance
_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")


def _factory(state: Any) -> tuple[Any, ...]:
    made = getattr(state, "default_factory", None)
    return () if made is None else (made,)


@dataclass
class LossCall:
    """One call of a torch loss function inside the step."""

    kind: str
    prediction: Tensor
    target: Tensor | None
    result: Any
    options: dict[str, Any]


@dataclass
class Seen:
    """One run of the step, looked into."""

    loss: Tensor
    outputs: list[tuple[str, Any]] = field(default_factory=list)  # of the outermost models, in order
    inputs: list[tuple[str, Any, Any]] = field(default_factory=list)  # args and kwargs given to them
    calls: list[LossCall] = field(default_factory=list)


class Fork:
    """Enter it, try things, leave it: nothing has happened."""

    def __init__(self, subject: Subject, seed: int = 0, *, fresh: bool = False) -> None:
        self._subject = subject
        self._seed = seed
        self._fresh = fresh
        self._stack = contextlib.ExitStack()
        self.optimizers: list[Optimizer] = []

    def __enter__(self) -> Fork:
        subject = self._subject
        modules = list(subject.models.values())
        with contextlib.ExitStack() as stack:
            stack.enter_context(_no_anomaly_mode())
            now = State.take(modules, subject.optimizers)
            stack.callback(_restore, now, _gradients(now), _versions(now))
            owners = list(_owners(subject))
            stack.callback(PlainState.take(owners).put)
            stack.enter_context(undisturbed(owners, Rng.take(), subject.autocast))
            stack.enter_context(_without_users_hooks([tensor for tensor, _ in now.tensors]))
            first = subject.initial or now
            first.put()
            for tensor, _ in now.tensors:
                tensor.grad = None
            states = {id(o): s for o, s in first.optimizers}
            self.optimizers = [cloned_optimizer(o, states.get(id(o))) for o in subject.optimizers]
            self.seed(self._seed)
            if self._fresh:
                redraw(modules)
                self.seed(self._seed)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def seed(self, number: int) -> None:
        """The same random numbers for what follows."""
        torch.default_generator.manual_seed(number)  # torch.manual_seed queues calls for when CUDA starts
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(number)
        random.seed(number)
        import numpy as np

        np.random.seed(number % 2**32)

    @property
    def optimizer(self) -> Optimizer:
        """A clone of the user's one optimizer, past its warm-up."""
        _ = self._subject.optimizer  # says why, if there is not just one
        return self.optimizers[0]

    def loss(self, batch: Batch) -> Tensor:
        """The user's own loss of this batch, with its graph."""
        self._subject.need_step()
        assert self._subject.step is not None
        return self._subject.step(batch)

    def observe(self, batch: Batch) -> Seen:
        """The same, with what the models gave and what the loss functions got."""
        seen = Seen(torch.zeros(()))
        handles = [
            module.register_forward_hook(_noting(seen, name), with_kwargs=True)
            for name, module in self._subject.models.items()
        ]
        try:
            with _LossCalls(seen.calls):
                seen.loss = self.loss(batch)
        finally:
            for handle in handles:
                handle.remove()
        return seen

    @staticmethod
    def gradients(loss: Tensor, tensors: Sequence[Tensor]) -> list[Tensor | None]:
        """By `backward()`, not `autograd.grad`, which reentrant checkpointing does not allow."""
        for tensor in tensors:
            tensor.grad = None
        loss.backward()
        found = [tensor.grad for tensor in tensors]
        for tensor in tensors:
            tensor.grad = None
        return found

    def train(
        self,
        batches: Sequence[Batch],
        steps: int,
        *,
        optimizer: Optimizer | None = None,
        clip: float | None = None,
        on_step: Callable[[int, float], bool | None] | None = None,
    ) -> list[float]:
        """Plain training steps over the batches in turn; `on_step` may end it by returning True."""
        optimizer = optimizer or self.optimizer
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        clip = self._subject.clip if clip is None else clip
        losses: list[float] = []
        for number in range(steps):
            losses.append(self._one(optimizer, batches[number % len(batches)], parameters, clip))
            if on_step is not None and on_step(number, losses[-1]):
                break
        return losses

    def _one(self, optimizer: Optimizer, batch: Batch, parameters: list[Any], clip: float | None) -> float:
        def closure() -> Any:
            optimizer.zero_grad()
            loss = self.loss(batch)
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(parameters, clip)
            return loss

        if type(optimizer).__name__ == "LBFGS":
            return float(torch.as_tensor(optimizer.step(closure)).detach())
        loss = closure()
        optimizer.step()
        return float(loss.detach())


def redraw(modules: Sequence[nn.Module]) -> list[str]:
    """Newly drawn weights for all layers that know how; gives the names of those that do not."""
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


def _gradients(state: State) -> list[tuple[Tensor, Tensor | None]]:
    return [(tensor, tensor.grad) for tensor, _ in state.tensors]


def _versions(state: State) -> list[tuple[Tensor, int, bool]]:
    return [(t, t._version, t.requires_grad) for t, _ in state.tensors if not t.is_inference()]


def _restore(
    state: State, gradients: list[tuple[Tensor, Tensor | None]], versions: list[tuple[Tensor, int, bool]]
) -> None:
    """Values first; then the counters, on which a graph of the user's may depend."""
    state.put()
    for tensor, gradient in gradients:
        tensor.grad = gradient
    for tensor, version, wanted in versions:
        if tensor.requires_grad != wanted:
            tensor.requires_grad_(wanted)
        torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))


_ON_ALL_MODULES = (
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
)
_ON_ALL_OPTIMIZERS = ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")


@contextlib.contextmanager
def _without_users_hooks(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Hooks on tensors, and on all modules or optimizers: they may count, print or collect."""
    registries = [vars(global_modules).get(name) for name in _ON_ALL_MODULES]
    registries += [vars(global_optimizers).get(name) for name in _ON_ALL_OPTIMIZERS]
    for tensor in tensors:
        registries += [tensor._backward_hooks, getattr(tensor, "_post_accumulate_grad_hooks", None)]
    taken = [(hooks, dict(hooks)) for hooks in registries if hooks]
    for hooks, before in taken:
        for key in [k for k, hook in before.items() if is_users(hook)]:
            del hooks[key]
    try:
        yield
    finally:
        for hooks, before in taken:
            if len(hooks) != len(before):
                hooks.clear()
                hooks.update(before)


@contextlib.contextmanager
def _no_anomaly_mode() -> Iterator[None]:
    """Anomaly detection of the user's would print a trace of ours."""
    before, check = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    torch.set_anomaly_enabled(False)
    try:
        yield
    finally:
        torch.set_anomaly_enabled(before, check)


def _noting(seen: Seen, name: str) -> Callable[..., None]:
    def noted(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        seen.inputs.append((name, args, kwargs))
        seen.outputs.append((name, output))

    return noted


class _LossCalls(TorchFunctionMode):
    """Sees calls of torch's loss functions, the modules' too."""

    def __init__(self, calls: list[LossCall]) -> None:
        super().__init__()
        self._calls = calls

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name in LOSSES and getattr(func, "__module__", "") == "torch.nn.functional":
            given = dict(zip(("input", "target"), args, strict=False)) | kwargs
            prediction = given.pop("input", None)
            target = given.pop("target", None)
            if isinstance(prediction, Tensor):
                known = target if isinstance(target, Tensor) else None
                self._calls.append(LossCall(name, prediction, known, result, given))
        return result
