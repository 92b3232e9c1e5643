"""One step under torch's profiler with its memory, and the tensors that are alive before and after it.

window = MemoryWindow(watcher.models, watcher.optimizers, find, program)
window.start()            # between two steps
found = window.stop()     # between the next two: a TensorMemory, or None: see `window.note`
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from clew.hooks.collect_layers.trained_models import ModelBook, Root, unwrap
from clew.hooks.collect_loop.optimizers import OptimizerBook
from clew.labs.profiler.memory.tensor_memory import LiveTensors, TensorMemory, read_trace, split
from clew.labs.profiler.profile_windows import Skipped
from clew.labs.profiler.torch_trace.kineto_window import (
    OCCUPIED,
    ProgramProfiler,
    QuietAllocator,
    TorchProfilerWindow,
)

MOST_OBJECTS = 5_000_000  # objects of the garbage collector that are searched


class MemoryWindow(TorchProfilerWindow):
    """Records the memory of one step."""

    refused = displaced = OCCUPIED.format("its memory is")
    too_long = "the memory of a step was not recorded: the step was too long (an evaluation?)"
    unclosed = "the memory of a step could not be recorded"

    def __init__(
        self,
        models: ModelBook,
        optimizers: OptimizerBook,
        find: Callable[[nn.Module], Root | None],
        program: ProgramProfiler,
    ) -> None:
        super().__init__(models, find, program)
        self._models = models
        self._optimizers = optimizers
        self._before = LiveTensors()
        self._quiet = QuietAllocator()

    def start(self) -> None:
        """Begin with the next step; raises `Skipped` if that is not possible."""
        if not self._quiet.possible and not torch.cuda.is_available():
            raise Skipped("tensor memory was not recorded: this version of torch would print warnings")
        self._before = live_tensors(self._models, self._optimizers)
        self._quiet.begin()
        try:
            self._open(profile_memory=True)
        except BaseException:
            self._quiet.end()
            raise

    def stop(self) -> TensorMemory | None:
        """The step has ended: return what was recorded."""
        whole = not self.closed
        self._close()
        if not whole or self._torch_profiler.profiler is None:
            return None
        after = live_tensors(self._models, self._optimizers)
        results = self._torch_profiler.profiler.kineto_results
        self._torch_profiler = None
        tree = results.experimental_event_tree() if results is not None else []
        return split(read_trace(tree, self._before.device), self._before, after, self._scopes.table)

    def _close(self) -> None:
        try:
            super()._close()
        finally:
            self._quiet.end()


# -- what is alive --


def live_tensors(models: ModelBook, optimizers: OptimizerBook) -> LiveTensors:
    """Parameters, gradients, optimizer state, and all other tensors that are alive now."""
    with torch._C.DisableTorchFunction():  # a subclass of Tensor may do anything here
        found = LiveTensors(_device(models))
        for root, path, tensor in _parameters(models):
            found.add(tensor, "parameters", root, path)
            if tensor.grad is not None:
                found.add(tensor.grad, "gradients", root, path)
        for state in optimizers.states:
            optimizer = state.optimizer()
            if optimizer is not None:
                _add_state(found, optimizer, models)
        for tensor in _collected_tensors():
            found.add(tensor, "other")
    return found


def _collected_tensors() -> list[Tensor]:
    """Every tensor known to the garbage collector; reads no attribute of any object."""
    objects = gc.get_objects()
    if len(objects) > MOST_OBJECTS:
        return []
    kinds: dict[type, bool] = {}
    found = []
    for one in objects:
        kind = type(one)
        is_tensor = kinds.get(kind)
        if is_tensor is None:
            is_tensor = kinds[kind] = Tensor in kind.__mro__
        if is_tensor:
            found.append(one)
    return found


def _parameters(models: ModelBook) -> Iterator[tuple[str, str, Tensor]]:
    """Parameters and buffers, with their root and module."""
    for root in models.roots:
        outer = root.module()
        if outer is None:
            continue
        for path, module in unwrap(outer).named_modules():
            for tensor in (*module._parameters.values(), *module._buffers.values()):
                if tensor is not None:
                    yield root.name, path, tensor


def _device(models: ModelBook) -> str:
    return next((tensor.device.type for *_, tensor in _parameters(models)), "cpu")


def _add_state(found: LiveTensors, optimizer: Optimizer, models: ModelBook) -> None:
    for parameter, state in list(optimizer.state.items()):
        named = models.name_of(parameter) if isinstance(parameter, Tensor) else None
        root, module = (named.root or "", named.module or "") if named is not None else ("", "")
        for value in list(state.values()) if isinstance(state, dict) else ():
            if isinstance(value, Tensor):
                found.add(value, "optimizer state", root, module)
