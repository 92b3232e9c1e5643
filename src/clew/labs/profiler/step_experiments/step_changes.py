"""The changes that are tried: what each one means in the user's code, and how the step runs with it.

A change that makes no sense for a program is not listed at all. One that makes sense and fails when
it is tried says so itself.
"""

from __future__ import annotations

import contextlib
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from clew.labs.profiler.step_experiments.step_runner import StepVariant
from clew.labs.profiler.torch_trace.roofline import available_cores
from clew.labs.snapshot.step_batch import BOTH, INPUT, OTHER, StepBatch
from clew.labs.snapshot.subject import Subject
from clew.records.tried_changes import BFLOAT16, CHANNELS_LAST, FOREACH, FUSED, SET_TO_NONE, THREADS

CONVOLUTIONS = (nn.Conv2d, nn.ConvTranspose2d)


@dataclass(frozen=True)
class StepChange:
    """One thing to change; `variant` builds the step with it."""

    name: str
    setting: str
    variant: Callable[[StepVariant], StepVariant]  # from the program's own
    exact: bool = True  # whether it should compute the same, up to rounding
    rest: dict[str, Any] = field(default_factory=dict)


def changes(subject: Subject, *, threads: bool = True) -> Iterator[StepChange]:
    """The changes that make sense, the cheapest first."""
    if keeps_gradients(subject):
        setting = "optimizer.zero_grad(set_to_none=True)"
        yield StepChange(SET_TO_NONE, setting, lambda own: replace(own, set_to_none=True))
    yield from _of_optimizers(subject)
    if _channels_first(subject):
        setting = "model.to(memory_format=torch.channels_last), and its input"
        yield StepChange(CHANNELS_LAST, setting, _channels_last(list(subject.models.values())))
    if not subject.autocast.enabled and _single_precision(subject):
        device = _device(subject)
        setting = f'with torch.autocast("{device}", dtype=torch.bfloat16):'
        yield StepChange(BFLOAT16, setting, _in_bfloat16(device), exact=False)
    if threads:
        yield from _of_threads(subject)


def own_variant(subject: Subject) -> StepVariant:
    """The program's own variant."""
    return StepVariant(set_to_none=not keeps_gradients(subject))


def keeps_gradients(subject: Subject) -> bool:
    """Whether the training file calls `zero_grad(set_to_none=False)`."""
    file = subject.line[0]
    lines = linecache.getlines(file) if file else []
    return any("zero_grad(" in line and "set_to_none=False" in line.replace(" ", "") for line in lines)


# ---- optimizers ----------------------------------------------------------------------------


def _of_optimizers(subject: Subject) -> Iterator[StepChange]:
    for flag in (FOREACH, FUSED):
        takers = [o for o in subject.optimizers if _would_take(o, flag)]
        if takers and len(takers) == len(subject.optimizers):
            kind = type(takers[0]).__name__
            yield StepChange(flag, f"{kind}(…, {flag}=True)", _with_flag(flag))


def _would_take(optimizer: Optimizer, flag: str) -> bool:
    """Accepts the flag, and neither it nor a faster one is set."""
    groups = optimizer.param_groups
    known = all(flag in group for group in groups)
    fast = any(group.get(name) for group in groups for name in {flag, FUSED})
    return known and not fast and not any(g.get("differentiable") or g.get("capturable") for g in groups)


def _with_flag(flag: str) -> Callable[[StepVariant], StepVariant]:
    def change(optimizer: Optimizer) -> None:
        for group in optimizer.param_groups:
            group[FOREACH] = flag == FOREACH
            if FUSED in group:
                group[FUSED] = flag == FUSED

    return lambda own: replace(own, change=change)


# ---- layout and precision ------------------------------------------------------------------


def _channels_first(subject: Subject) -> bool:
    layers = [m for top in subject.models.values() for m in top.modules() if isinstance(m, CONVOLUTIONS)]
    kernels = [m.weight for m in layers if max(m.kernel_size) > 1 and m.in_channels > 1]
    return any(not w.is_contiguous(memory_format=torch.channels_last) for w in kernels)


def _channels_last(models: list[nn.Module]) -> Callable[[StepVariant], StepVariant]:
    def convert(batch: StepBatch) -> StepBatch:  # in every step, as the program would have to
        return batch.map((INPUT, BOTH, OTHER), _last)

    def change(optimizer: Optimizer) -> None:
        for state in optimizer.state.values():
            state.update({k: _last(v) for k, v in state.items() if isinstance(v, Tensor)})

    return lambda own: replace(own, change=change, around=lambda: _relaid(models), convert=convert)


def _last(tensor: Tensor) -> Tensor:
    if tensor.dim() != 4 or not tensor.is_floating_point():
        return tensor
    return tensor.contiguous(memory_format=torch.channels_last)


@contextlib.contextmanager
def _relaid(models: list[nn.Module]) -> Iterator[None]:
    """The same values in another memory layout; the original memory is restored afterwards."""
    found = {id(t): t for m in models for t in (*m.parameters(), *m.buffers()) if t.dim() == 4}
    original = [(t, t.data) for t in found.values()]
    try:
        for tensor, data in original:
            tensor.data = _last(data)
        yield
    finally:
        for tensor, data in original:
            tensor.data = data


def _single_precision(subject: Subject) -> bool:
    kinds = {p.dtype for p in subject.parameters()}
    return kinds == {torch.float32}


def _device(subject: Subject) -> str:
    return next((p.device.type for p in subject.parameters()), "cpu")


def _in_bfloat16(device: str) -> Callable[[StepVariant], StepVariant]:
    return lambda own: replace(own, within=lambda: torch.autocast(device, torch.bfloat16))


# ---- threads -------------------------------------------------------------------------------


def _of_threads(subject: Subject) -> Iterator[StepChange]:
    if _device(subject) != "cpu":
        return
    cores, now = _physical_cores(), torch.get_num_threads()
    for number in sorted({cores, max(cores // 2, 1)} - {now}, reverse=True):
        rest = {"threads": now, "tried": number, "cores": cores}
        yield StepChange(THREADS, f"torch.set_num_threads({number})", _with_threads(number), rest=rest)


def _physical_cores() -> int:
    """The cores this process may run on, counting hyper-threads once."""
    import psutil

    allowed = available_cores()
    return max(1, min(allowed, psutil.cpu_count(logical=False) or allowed))


def _with_threads(number: int) -> Callable[[StepVariant], StepVariant]:
    return lambda own: replace(own, around=lambda: _threads(number))


@contextlib.contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
