"""Peak memory of one training step on a snapshot: of its tensors, and of the process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clew.labs.profiler.attempts.trainee import StepWay, Trainee
from clew.labs.profiler.torch_trace.kineto_window import activities
from clew.labs.profiler.torch_trace.trace_ranges import profiler_is_on
from clew.labs.snapshot.step_batch import StepBatch

LIMIT, USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


@dataclass(frozen=True)
class StepPeak:
    """Bytes at the height of a step."""

    tensors: int = 0  # all of them
    activations: int = 0  # of them, what goes with the size of the batch and is gone after the step
    process: int = 0


def memory_of_step(trainee: Trainee, way: StepWay, batch: StepBatch) -> StepPeak:
    """One step to make gradients and optimizer state, then one that is looked at."""
    optimizers = trainee.start(way)
    trainee.step(batch, way, optimizers)
    settled = _bytes([*_kept(trainee, optimizers), *batch.tensors()])
    if any(t.is_cuda for t in trainee.subject.parameters()):
        return _on_device(trainee, way, batch, optimizers)
    if profiler_is_on():  # the program's own: its numbers are not to be disturbed
        return StepPeak(settled, 0, _process())
    process = _after_forward(trainee, batch)
    with torch.profiler.profile(activities=activities(), profile_memory=True) as profiler:
        trainee.step(batch, way, optimizers)
    above = _height(profiler)
    return StepPeak(settled + above, above, process)


def _on_device(trainee: Trainee, way: StepWay, batch: StepBatch, optimizers: Any) -> StepPeak:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    trainee.step(batch, way, optimizers)
    peak = torch.cuda.max_memory_allocated()
    return StepPeak(peak, peak - before, _process())


def _after_forward(trainee: Trainee, batch: StepBatch) -> int:
    """Of the process while the activations wait for the backward."""
    loss = trainee.snapshot.loss(batch)
    held = _process()
    loss.backward()  # and not just dropped: a graph of many nodes is freed as in training
    return held


def _height(profiler: Any) -> int:
    """The most that was allocated above what was there at first."""
    results = profiler.profiler.kineto_results
    found = [(e.start_ns(), e.nbytes()) for e in results.events() if e.name() == "[memory]"]
    now = most = 0
    for _, number in sorted(found, key=lambda pair: pair[0]):
        now += number
        most = max(most, now)
    return most


def _kept(trainee: Trainee, optimizers: Iterable[Any]) -> Iterable[Tensor]:
    for module in trainee.subject.models.values():
        yield from module.parameters()
        yield from module.buffers()
    for parameter in trainee.subject.parameters():
        yield parameter
        if parameter.grad is not None:
            yield parameter.grad
    for optimizer in optimizers:
        for state in optimizer.state.values():
            yield from (value for value in state.values() if isinstance(value, Tensor))


def _bytes(tensors: Iterable[Tensor]) -> int:
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    return sum(storages.values())


def _process() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)


def available() -> float:
    """Bytes that a step may still take, by the machine and by the limit of a container."""
    import psutil

    free = float(psutil.virtual_memory().available)
    try:
        return min(free, float(LIMIT.read_text()) - float(USED.read_text()))
    except (OSError, ValueError):  # no such limit
        return free
