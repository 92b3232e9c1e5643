from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch

from clew.labs.profiler.memory.growth_watch import GrowthWatch
from clew.labs.profiler.torch_trace.module_scopes import Scopes
from clew.labs.profiler.torch_trace.torch_events import OWN


def scopes() -> Scopes:
    models: Any = SimpleNamespace(compile_used=True)
    return Scopes(models, lambda module: None, lambda: None)


def test_the_growth_watch_marks_its_work_only_while_a_window_is_open() -> None:
    open_window = scopes()
    open_window.install()
    try:
        with torch.profiler.profile() as profiler, GrowthWatch.own_work():
            torch.ones(2)
        assert OWN in {event.name for event in profiler.events()}
    finally:
        open_window.remove()
    assert GrowthWatch.own_work is nullcontext
