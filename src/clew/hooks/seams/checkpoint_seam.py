"""The seams of checkpoints: saving, loading, and weights that are loaded into modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from clew.hooks.entry.user_line import user_line
from clew.hooks.seams.probes import Probe, Probes


def watch_checkpoints(probes: Probes) -> None:
    watcher = probes.watcher

    def event(kind: str) -> Probe:
        def happened(*_: Any, **__: Any) -> None:
            file, line = user_line()
            watcher.sink.event(kind, watcher.clock.step, {"file": file, "line": line})

        return happened

    def loaded(_: Any, module: nn.Module, *__: Any, **___: Any) -> None:
        watcher.models.note_loaded(module)

    def state_loaded(result: Any, module: nn.Module, *_: Any, **__: Any) -> None:
        watcher.loop.tell(watcher.loop.ties.state_loaded, result, module, watcher.clock.step)

    probes.around(torch, "save", probes.probe("save", event("checkpoint-save")))
    probes.around(torch, "load", probes.probe("load", event("checkpoint-load")))
    probes.around(nn.Module, "load_state_dict", probes.probe("load-state", loaded))
    probes.around(nn.Module, "load_state_dict", probes.probe("load-state", state_loaded))
