"""A little training loop under one window of torch's profiler, read back."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from clew.hooks.collect_layers.trained_models import ModelBook
from clew.labs.profiler.torch_trace.kineto_window import Courtesy, KinetoWindow, TraceDetail
from clew.labs.profiler.window_contents import WindowReading, read
from clew.records.step_costs import ModuleCost, OpCost


def record(step: Callable[[], object], steps: int = 3, book: ModelBook | None = None) -> TraceDetail:
    """So many steps in a window, after one outside it."""
    models = book or ModelBook()
    step()
    window = KinetoWindow(models, models.root_of, Courtesy())
    window.start(1)
    for number in range(steps):
        step()
        window.mark(number + 2)
    detail = window.stop()
    assert detail is not None
    return detail


def looked_at(step: Callable[[], object], steps: int = 3) -> WindowReading:
    return read([record(step, steps)])


def trainer(model: nn.Module, *inputs: Tensor) -> Callable[[], None]:
    """The plainest step there is."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        model(*inputs).square().mean().backward()
        optimizer.step()

    return step


def module(reading: WindowReading, name: str) -> ModuleCost:
    return next(cost for cost in reading.modules if cost.module == name)


def ops(reading: WindowReading, name: str) -> list[OpCost]:
    return [op for op in reading.ops if op.module == name]


def op(reading: WindowReading, module_name: str, name: str) -> OpCost:
    return next(found for found in ops(reading, module_name) if found.op == name)
