"""Installs and removes all of Clew's hooks and wrappers on torch.

Each seam reports the events of a step to the recorder that is in charge (`step_machine`), or tells a
collector of something else under a guard, and comes off again without a trace. The seams themselves are in
files of this package called `…_seam`.
"""

from __future__ import annotations

from clew.hooks.entry.guard import Guard
from clew.hooks.seams.checkpoint_seam import watch_checkpoints
from clew.hooks.seams.compiler_seam import watch_compilers
from clew.hooks.seams.loader_seam import watch_data
from clew.hooks.seams.loss_backward_seam import watch_backward, watch_losses
from clew.hooks.seams.module_seam import ModuleSeams
from clew.hooks.seams.optimizer_seam import watch_optimizers
from clew.hooks.seams.probes import Probes
from clew.hooks.seams.sample_indices import Indices, watch_indices
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
        self._watcher.clock.restart()
        self._modules = ModuleSeams(self._probes)
        self._watcher.machine.attach(self._modules)
        watch_losses(self._probes)
        watch_backward(self._probes)
        watch_optimizers(self._probes)
        watch_data(self._probes)
        watch_indices(self._probes, self.indices)
        watch_checkpoints(self._probes)
        watch_compilers(self._probes, self.remove, self.install)

    def remove(self) -> None:
        """Detach: restores torch to its original state."""
        if self._modules is None:
            return
        self._watcher.machine.detach()
        if self._watcher.feeding.evaluations.running:
            self._watcher.feeding.end_of_section()
        self._modules.remove()
        self._modules = None
        self._probes.remove()
