"""Wrappers for schedulers, shared weights and partly loaded checkpoints."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.optim import lr_scheduler

from clew.hooks.seams.probes import Probes

_BASES = ("LRScheduler", "ReduceLROnPlateau", "SequentialLR", "ChainedScheduler")


def watch_loop(probes: Probes) -> None:
    watcher = probes.watcher
    loop = watcher.loop

    def registered(
        _: Any, module: nn.Module, name: str, parameter: Any = None, *__: Any, **more: Any
    ) -> None:
        loop.tell(loop.ties.registered, module, name, more.get("param", parameter))

    def state_loaded(result: Any, module: nn.Module, *_: Any, **__: Any) -> None:
        loop.tell(loop.ties.state_loaded, result, module, watcher.clock.step)

    def scheduler_made(_: Any, scheduler: Any, *__: Any, **___: Any) -> None:
        loop.tell(loop.schedulers.made, scheduler)

    probes.around(nn.Module, "register_parameter", probes.probe("module-made", registered))
    probes.around(nn.Module, "load_state_dict", probes.probe("load-state", state_loaded))
    made = probes.probe("scheduler", scheduler_made)
    for name in _BASES:
        probes.around(getattr(lr_scheduler, name), "__init__", made)
