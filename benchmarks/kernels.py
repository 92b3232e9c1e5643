"""Ways to compute a layer's statistics, on the tensors of one step of the six-layer GPT.

`python -m benchmarks.kernels` reads every activation and gradient of a step with each of them, and
prints the CPU time that this would add to the step. The conclusion is in docs/decisions/001.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.overhead import aligned, machine
from benchmarks.workloads import gpt
from clew.measure import stats_torch
from clew.measure.kernel import compiled_library
from clew.measure.stats import STAT_NAMES

ROUNDS = 15  # medians over so many, in turn with raw steps
Engine = Callable[[list[Tensor]], object]


def main() -> None:
    work = gpt()
    tensors = collect(work.model, work.step)
    engines = available_engines()
    steps: list[float] = []
    taken: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(ROUNDS):
        steps.append(_cpu_time(work.step))
        for name, engine in engines.items():
            taken[name].append(_cpu_time(partial(engine, tensors)))
    step = statistics.median(steps)
    mebibytes = sum(t.numel() * t.element_size() for t in tensors) / 2**20
    about = machine()
    print(f"{about['date']}, {about['cpu']}, torch {about['torch']}.")
    print(f"A step of {step * 1e3:.0f} ms CPU; {len(tensors)} tensors, {mebibytes:.0f} MiB.\n")
    rows = [["statistics by", "CPU ms", "step with ÷ without"]]
    for name, seconds in taken.items():
        added = statistics.median(seconds)
        rows.append([name, f"{added * 1e3:.1f}", f"{1 + added / step:.3f}"])
    print("\n".join(aligned(rows)))


def collect(model: torch.nn.Module, step: Callable[[], None]) -> list[Tensor]:
    """The outputs of the layers, and all gradients, of one step."""
    outputs: list[Tensor] = []

    def keep(module: Any, args: Any, output: Any) -> None:
        outputs.append(output.detach())

    hooks = [m.register_forward_hook(keep) for m in model.modules() if not list(m.children())]
    step()
    for hook in hooks:
        hook.remove()
    return outputs + [p.grad for p in model.parameters() if p.grad is not None]


def _cpu_time(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return time.process_time() - begin


def available_engines() -> dict[str, Engine]:
    """Every way that can run here, the chosen one first."""
    found: dict[str, Engine] = {}
    if compiled_library.load() is not None:
        for name, level in (("C kernel", 2), ("C kernel, plain instructions", 0)):
            found[name] = _compiled(level, hist=False)
            found[f"{name}, with histogram"] = _compiled(level, hist=True)
    found["torch fallback"] = _each(stats_torch.stats_row)
    found["torch fallback, with histogram"] = _each(partial(stats_torch.stats_row, hist=True))
    found["sum, 2-norm, aminmax, count_nonzero"] = _each(_four_ops)
    found["var_mean, aminmax, count_nonzero"] = _each(_var_mean)
    found["mean, std, min, max, norm, isfinite"] = _each(_naive)
    return found


def _compiled(level: int, hist: bool) -> Engine:
    out, bins = np.zeros(len(STAT_NAMES)), np.zeros(32, np.uint8)
    row, address = out.ctypes.data, bins.ctypes.data if hist else None

    def run(tensors: list[Tensor]) -> object:
        chosen = compiled_library.load(
            level=level
        )  # each pass anew: a library has one instruction set at a time
        assert chosen is not None
        for t in tensors:
            chosen.stats(t.data_ptr(), t.numel(), 0, row, address, -np.inf, np.inf)
        return out, bins

    return run


def _each(function: Callable[[Tensor], object]) -> Engine:
    return lambda tensors: [function(t) for t in tensors]


def _four_ops(t: Tensor) -> object:
    return t.sum(), torch.linalg.vector_norm(t), torch.aminmax(t), torch.count_nonzero(t)


def _var_mean(t: Tensor) -> object:
    return torch.var_mean(t), torch.aminmax(t), torch.count_nonzero(t)


def _naive(t: Tensor) -> object:
    return t.mean(), t.std(), t.min(), t.max(), t.norm(), t.isfinite().all()


if __name__ == "__main__":
    main()
