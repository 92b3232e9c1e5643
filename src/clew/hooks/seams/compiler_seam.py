"""The seams of compilers, which must not meet our wrappers: Clew steps out while they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from clew.hooks.seams.probes import Probes


def watch_compilers(probes: Probes, detach: Callable[[], None], attach: Callable[[], None]) -> None:
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
