"""Installs and removes all of Clew's hooks and wrappers on torch.

Each seam reports the events of a step to the recorder that is in charge (`step_machine`), or calls a
collector under a guard, and comes off again without a trace. Most seams are in files called `…_seam`; those
of checkpoints and compilers are below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from clew.hooks.entry.guard import Guard
from clew.hooks.entry.user_line import user_line
from clew.hooks.seams.loader_seam import Indices, watch_data, watch_indices
from clew.hooks.seams.loss_backward_seam import watch_backward, watch_losses
from clew.hooks.seams.module_seam import ModuleSeams
from clew.hooks.seams.optimizer_seam import watch_optimizers
from clew.hooks.seams.probes import Probes
from clew.hooks.steps.watcher import Watcher
from clew.records.events import CheckpointLoadEvent, CheckpointSaveEvent


class Seams:
    """Installs and removes everything that attaches a watcher to torch."""

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self._watcher = watcher
        self._probes = Probes(watcher, guard)
        self._module_seams: ModuleSeams | None = None
        self.indices = Indices()

    def install(self) -> None:
        """Attach; a second call does nothing."""
        if self._module_seams is not None:
            return
        self._watcher.clock.restart()
        self._module_seams = ModuleSeams(self._probes)
        self._watcher.machine.attach(self._module_seams)
        watch_losses(self._probes)
        watch_backward(self._probes)
        watch_optimizers(self._probes)
        watch_data(self._probes)
        watch_indices(self._probes, self.indices)
        watch_checkpoints(self._probes)
        watch_compilers(self._probes, self.remove, self.install)

    def remove(self) -> None:
        """Detach: restores torch to its original state."""
        if self._module_seams is None:
            return
        self._watcher.machine.detach()
        if self._watcher.feeding.evaluations.running:
            self._watcher.feeding.end_of_section()
        self._module_seams.remove()
        self._module_seams = None
        self._probes.remove()


def watch_checkpoints(probes: Probes) -> None:
    """Saving, loading, and weights that are loaded into modules."""
    watcher = probes.watcher

    def saved(*_: Any, **__: Any) -> None:
        CheckpointSaveEvent(*user_line()).write(watcher.sink, watcher.clock.step)

    def read(*_: Any, **__: Any) -> None:
        CheckpointLoadEvent(*user_line()).write(watcher.sink, watcher.clock.step)

    def loaded(_: Any, module: nn.Module, *__: Any, **___: Any) -> None:
        watcher.models.note_loaded(module)

    def state_loaded(result: Any, module: nn.Module, *_: Any, **__: Any) -> None:
        watcher.loop.call(watcher.loop.ties.state_loaded, result, module, watcher.clock.step)

    probes.around(torch, "save", probes.probe("save", saved))
    probes.around(torch, "load", probes.probe("load", read))
    probes.around(nn.Module, "load_state_dict", probes.probe("load-state", loaded))
    probes.around(nn.Module, "load_state_dict", probes.probe("load-state", state_loaded))


def watch_compilers(probes: Probes, detach: Callable[[], None], attach: Callable[[], None]) -> None:
    """Clew steps out while a compiler runs, because it must not meet our wrappers."""
    models = probes.watcher.models

    def compiling(_: Any, module: Any = None, *__: Any, **___: Any) -> None:
        models.compile_used = True

    def compiled_in_place(_: Any, module: nn.Module, *__: Any, **___: Any) -> None:
        models.compile_used = True
        models.root_of(module)  # its calls will not be seen from outside

    probes.around(torch, "compile", probes.probe("compile", compiling))
    probes.around(nn.Module, "compile", probes.probe("compile", compiled_in_place))

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            # TorchScript compiles from source, or records every op: it must not meet us.
            detach()
            try:
                return original(*args, **kwargs)
            finally:
                attach()

        return wrapper

    for name in ("script", "trace", "trace_module"):
        probes.patches.wrap(torch.jit, name, wrap)
