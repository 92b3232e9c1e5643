"""Where Clew gets into torch: global hooks, and wrappers around the functions that have none.

Each seam calls one method of the watcher under a guard, and comes off again without a trace.
The seams themselves are in `seam_modules`, `seam_training`, `seam_updates` and `seam_surroundings`.
"""

from __future__ import annotations

import threading

from clew.hooks.entry.guard import Guard
from clew.hooks.entry.probes import Probes
from clew.hooks.seams.loader_seam import watch_checkpoints, watch_compilers, watch_data
from clew.hooks.seams.loss_backward_seam import watch_backward, watch_losses
from clew.hooks.seams.module_seam import ModuleSeams
from clew.hooks.seams.optimizer_seam import watch_optimizers
from clew.hooks.seams.sample_indices import Indices, watch_indices
from clew.hooks.seams.scheduler_seam import watch_loop
from clew.hooks.steps.watcher import Watcher


class Seams:
    """Installs and removes everything that attaches a watcher to torch."""

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self._watcher = watcher
        self._probes = Probes(watcher, guard)
        self._modules: ModuleSeams | None = None
        self.indices = Indices()

    def install(self) -> None:
        """Attach; a second call does nothing."""
        if self._modules is not None:
            return
        self._watcher.thread = threading.get_ident()
        self._watcher.clock.restart()
        self._modules = ModuleSeams(self._probes)
        watch_losses(self._probes)
        watch_backward(self._probes)
        watch_optimizers(self._probes)
        watch_data(self._probes)
        watch_indices(self._probes, self.indices)
        watch_checkpoints(self._probes)
        watch_loop(self._probes)
        watch_compilers(self._probes, self.remove, self.install)

    def remove(self) -> None:
        """Detach: torch is as it was."""
        if self._modules is None:
            return
        try:
            self._watcher.plain.write()
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
            self._probes.plain_failed(error)
        self._watcher.plain.resting = False
        if self._watcher.feeding.evaluations.running:
            self._watcher.feeding.end_of_section()
        self._modules.remove()
        self._modules = None
        self._probes.remove()
        self._watcher.forwards.reset()

    def between_steps(self, step: int) -> None:
        """Prepare for the next step, sampled or not."""
        if self._modules is not None:
            self._modules.between_steps()
