"""Does each user-defined module behave as an nn.Module must? Tests each one alone."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clew.hooks.entry.user_line import USER, kind_of
from clew.labs.experiments.base import Experiment, Result
from clew.labs.experiments.tools.float64_step import Float64Mode, in_double
from clew.labs.experiments.tools.gradcheck import (
    WRONG,
    compared,
    drawn,
    free_direction,
    jitter,
    padding_rows,
    source_of,
)
from clew.labs.experiments.tools.op_tape import differ
from clew.labs.experiments.tools.replaced_samples import ReplacedSamples, leak_of, meant
from clew.labs.snapshot.snapshot import hooked
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock, OutOfTime
from clew.labs.snapshot.users_step.model_calls import (
    ModelCall,
    few_samples,
    in_mode,
    model_calls,
    sample_dim,
    samples_known,
)
from clew.measure.nested_tensors import map_tensors, tensors_in
from clew.records.facts.experiment_facts import CodePlace
from clew.records.facts.network_experiment_facts import (
    CustomLayerBrokenFact,
    DerivativeComparison,
    ModuleFault,
)

MOST = 24  # modules tested; the layers of a deep net are similar

SEED = 7
_REGISTERED = ("_parameters", "_buffers", "_modules")
TRAINED, CONSTANT, STATE = "trained", "constant", "state"


@dataclass(frozen=True)
class ModuleContract(Experiment):
    name = "custom-layer-broken"
    question = "do your custom layers behave as nn.Modules should?"
    rank = 32

    tolerance: float = 1e-3  # of gradients, relative; in double precision right ones agree to 1e-6
    rounding: float = 1e-5  # of outputs, relative to their size

    def run(self, subject: Subject, clock: Clock) -> Result:
        batch = few_samples(subject)
        with subject.snapshot(seed=0) as snapshot:
            snapshot.seed(SEED)
            modules = own_modules(snapshot, batch)
        if not modules:
            raise CannotJudge("the model has no custom layer")
        known, found = samples_known(subject, batch), list[ModuleFault]()
        tried: list[str] = []
        for number, own in enumerate(modules):
            try:
                clock.tick(number / len(modules))
            except OutOfTime:
                break
            tried.append(own.path)
            with subject.snapshot(seed=0) as snapshot:
                found += self._faults(own, snapshot, batch.size)
                leak = self._leak(own, snapshot, clock, batch.size) if known and own.path else None
            if leak is not None:
                found.append(ModuleFault("leak", own.kind, own.place(), effect=leak))
        return Result(CustomLayerBrokenFact(tried=tuple(tried), faults=tuple(found)))

    def _faults(self, own: OwnModule, snapshot: StepSnapshot, count: int) -> Iterator[ModuleFault]:
        plain = list(self._plain(own, snapshot, count))
        yield from plain
        if not any(fault.use == STATE for fault in plain) and self._lost(own, snapshot):
            yield ModuleFault("state_dict", own.kind, own.place())
        wrong = self._gradient(own, snapshot)
        if wrong is not None:
            yield wrong

    def _plain(self, own: OwnModule, snapshot: StepSnapshot, count: int) -> Iterator[ModuleFault]:
        """Tensors in plain attributes that affect the output: `.to()` and state_dict miss them."""
        module = own.module
        for name, value in list(vars(module).items()):
            tensors = [] if name in _REGISTERED else _plain_tensors(value)
            if not tensors or any(sample_dim(t, count) is not None for t in tensors):
                continue  # empty, or a memory of the samples themselves
            with in_mode([module], training=False):
                if not _depends(own, snapshot, tensors):
                    continue
            use = TRAINED if any(t.requires_grad for t in tensors) else CONSTANT
            if use == CONSTANT and _moves(own, snapshot, name):
                use = STATE
            shape = tuple(tensors[0].shape)
            yield ModuleFault("plain", own.kind, own.place(), name=name, use=use, shape=shape)

    def _lost(self, own: OwnModule, snapshot: StepSnapshot) -> bool:
        """Whether a copy that loads the state_dict gives another output."""
        try:
            other = copy.deepcopy(own.module)
            with torch.no_grad():
                for tensor in (*other.parameters(), *other.buffers()):
                    if tensor.is_floating_point():
                        tensor.add_(1.0)
            other.load_state_dict(own.module.state_dict())
        except Exception:  # noqa: BLE001 - what can't be copied can't be compared
            return False
        with in_mode([own.module, other], training=False):
            one, two = (_outputs(own.call, snapshot, m) for m in (own.module, other))
        return any(differ(a, b, self.rounding) for a, b in zip(one, two, strict=False))

    def _leak(self, own: OwnModule, snapshot: StepSnapshot, clock: Clock, count: int) -> float | None:
        with in_mode([own.module], training=False):
            repeated = ReplacedSamples(snapshot, own.call, count)
            if not repeated.possible or repeated.square() or not repeated.base or not repeated.steady():
                return None
            leak = leak_of(repeated, clock, self.rounding)
        return None if leak is None or meant(leak) else leak.effect

    def _gradient(self, own: OwnModule, snapshot: StepSnapshot) -> ModuleFault | None:
        """The worst input or parameter, compared with finite differences."""
        try:
            with in_double([own.module]) as mode:
                found = list(_compared(own, snapshot, mode, self.tolerance))
        except (RuntimeError, TypeError, NotImplementedError):
            return None  # not in double precision
        worst = max(found, key=lambda f: f[1].error, default=None)
        if worst is None or worst[1].verdict != WRONG or mode.stops:
            return None
        return ModuleFault("gradient", own.kind, own.place(), of=worst[0], **vars(worst[1]))


def _plain_tensors(value: Any) -> list[Tensor]:
    if isinstance(value, (nn.Module, nn.Parameter)):
        return []
    parts = value.values() if type(value) is dict else value if type(value) in (list, tuple) else [value]
    return [p for p in parts if isinstance(p, Tensor) and p.is_floating_point() and p.is_leaf and p.numel()]


def _outputs(call: ModelCall, snapshot: StepSnapshot, module: nn.Module | None = None) -> list[Tensor]:
    snapshot.seed(SEED)
    result = (module or call.module)(*call.args, **call.kwargs)
    return [t.detach().clone() for t in tensors_in(result) if t.is_floating_point()]


def _depends(own: OwnModule, snapshot: StepSnapshot, tensors: list[Tensor]) -> bool:
    """Whether the output changes with these values, which are restored afterwards."""
    before = _outputs(own.call, snapshot)
    values = [t.detach().clone() for t in tensors]
    try:
        with torch.no_grad():
            for tensor, value in zip(tensors, values, strict=True):
                tensor.detach().copy_(value * 1.5 + 0.5)
        after = _outputs(own.call, snapshot)
    finally:
        with torch.no_grad():
            for tensor, value in zip(tensors, values, strict=True):
                tensor.detach().copy_(value)
    return any(differ(a, b, 1e-6) for a, b in zip(before, after, strict=False))


def _moves(own: OwnModule, snapshot: StepSnapshot, name: str) -> bool:
    """Whether a training forward changes it: then it is learned, though not by the optimizer."""
    before = [t.detach().clone() for t in _plain_tensors(getattr(own.module, name))]
    with in_mode([own.module], training=True):
        _outputs(own.call, snapshot)
    after = _plain_tensors(getattr(own.module, name, None))
    return len(before) != len(after) or any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def _compared(
    own: OwnModule, snapshot: StepSnapshot, mode: Float64Mode, tolerance: float
) -> Iterator[tuple[str, DerivativeComparison]]:
    generator = torch.Generator().manual_seed(SEED)
    module = own.module
    known: dict[int, tuple[Tensor, Tensor]] = {}

    def leaf(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        if id(tensor) not in known:
            known[id(tensor)] = (tensor, tensor.detach().double().clone().requires_grad_())
        return known[id(tensor)][1]

    args, kwargs = map_tensors(own.call.args, leaf), map_tensors(own.call.kwargs, leaf)
    parameters = {n: p for n, p in module.named_parameters() if p.requires_grad and p.numel()}
    jitter([*parameters.values(), *(t for _, t in known.values())], generator)
    weights: list[Tensor] = []
    buffers = [(b, b.detach().clone()) for b in module.buffers()]

    def total() -> Tensor:
        for buffer, value in buffers:
            if not torch.equal(buffer, value):
                buffer.detach().copy_(value)
        snapshot.seed(SEED)
        outputs = [
            t for t in tensors_in(module(*args, **kwargs)) if t.is_floating_point() and t.requires_grad
        ]
        if not weights:
            weights.extend(drawn(o, generator) for o in outputs)
        return sum(((o * w).sum() for o, w in zip(outputs, weights, strict=False)), torch.zeros(()))

    def value() -> float:
        return float(total().detach())

    mode.noting = True
    first = total()
    mode.noting = False
    if not first.requires_grad or float(first.detach()) != value():
        return
    named = [*(("its input", t) for _, t in known.values()), *parameters.items()]
    gradients = torch.autograd.grad(total(), [t for _, t in named], allow_unused=True)
    floor, padding = 1e-5 * abs(float(first.detach())), padding_rows([module])
    for (name, tensor), gradient in zip(named, gradients, strict=True):
        if gradient is not None:
            direction = free_direction(tensor, generator, padding)
            yield name, compared(tensor, gradient, direction, value, tolerance, floor)


@dataclass(frozen=True)
class OwnModule:
    """One of the user's modules, as it was first called."""

    root: str
    path: str
    call: ModelCall

    @property
    def module(self) -> nn.Module:
        return self.call.module

    @property
    def kind(self) -> str:
        return type(self.module).__name__

    def place(self) -> CodePlace:
        """The line of its forward."""
        return CodePlace(None, self.root, self.path, *source_of(type(self.module).forward))


def own_modules(snapshot: StepSnapshot, batch: StepBatch) -> list[OwnModule]:
    """One module of each class, innermost first: a fault inside is not the fault of the module around it."""
    subject = snapshot.subject
    wanted = {
        id(m): (root, path)
        for root, top in subject.models.items()
        for path, m in top.named_modules()
        if _is_users(m)
    }
    found: dict[int, OwnModule] = {}
    handles = [
        m.register_forward_hook(_noting(found, wanted), with_kwargs=True)
        for top in subject.models.values()
        for m in top.modules()
        if id(m) in wanted
    ]
    with hooked(*handles):
        model_calls(snapshot, batch)
    by_kind: dict[type[nn.Module], OwnModule] = {}
    for own in found.values():  # in the order in which their forwards ended
        by_kind.setdefault(type(own.module), own)
    return list(by_kind.values())[:MOST]


def _is_users(module: nn.Module) -> bool:
    try:
        file = inspect.getfile(type(module).forward)
    except (TypeError, OSError):
        return False
    return kind_of(file) == USER


def _noting(found: dict[int, OwnModule], wanted: dict[int, tuple[str, str]]) -> Callable[..., None]:
    def noted(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if id(module) not in found:
            root, path = wanted[id(module)]
            own = map_tensors((args, kwargs), lambda t: t.detach())
            found[id(module)] = OwnModule(root, path, ModelCall(root, module, own[0], own[1], output))

    return noted
