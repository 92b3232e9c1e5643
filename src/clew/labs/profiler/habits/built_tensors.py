"""Calls of `torch.tensor` on lists during a profile: the time they take, and the time they need to take."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.compiler import is_compiling

from clew.hooks.entry.guard import Guard
from clew.hooks.entry.patches import Patches
from clew.hooks.entry.user_line import USER, kind_of
from clew.hooks.steps.watcher import Watcher
from clew.records.facts.profile_facts import BuiltTensorsFact

FUNCTIONS = ("tensor", "as_tensor")
SMALL = 64  # elements up to which a list is as good as anything
MOST_LINES = 64  # that are told apart
DEEPEST = 4  # lists inside lists


@dataclass
class BuildingLine:
    """All calls from one line of the program."""

    calls: int = 0
    seconds: float = 0.0
    elements: int = 0  # of the largest
    faster: float = 0.0  # seconds that the largest would take from one array
    slowest: float = 0.0  # and took


class BuiltTensors:
    """Times every call that is given a list, and once for each line the same from an array."""

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self._watcher = watcher
        self._lines: dict[tuple[str, int, str, str], BuildingLine] = {}
        self._note = guard.inner("observing", self._noted)

    def watch(self, patches: Patches) -> None:
        for name in FUNCTIONS:
            patches.wrap(torch, name, self._wrapping(name))

    def _wrapping(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        watcher, note = self._watcher, self._note

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if is_compiling() or not args or not isinstance(args[0], (list, tuple)):
                    return original(*args, **kwargs)
                began = perf_counter()
                result = original(*args, **kwargs)
                seconds = perf_counter() - began
                if threading.get_ident() == watcher.thread:
                    caller = sys._getframe(1)
                    note(name, args[0], result, seconds, caller.f_code.co_filename, caller.f_lineno)
                return result

            return wrapper

        return wrap

    def _noted(self, name: str, given: Any, result: Tensor, seconds: float, file: str, number: int) -> None:
        kind = made_of(given)
        if kind is None or result.numel() < SMALL or kind_of(file) != USER:
            return
        key = (file, number, kind, name)
        if key not in self._lines and len(self._lines) >= MOST_LINES:
            return
        line = self._lines.setdefault(key, BuildingLine())
        line.calls += 1
        line.seconds += seconds
        if result.numel() > line.elements:
            line.elements, line.slowest = result.numel(), seconds
            line.faster = min(_from_array(given, result) for _ in range(2))

    def facts(self, steps: int) -> list[BuiltTensorsFact]:
        """Per step; the line that costs most first."""
        ordered = sorted(self._lines.items(), key=lambda item: -item[1].seconds)
        return [
            BuiltTensorsFact(
                file=file,
                line=number,
                of=kind,
                function=name,
                calls=line.calls / steps,
                seconds=line.seconds / steps,
                needed=line.seconds / steps * min(line.faster / max(line.slowest, 1e-9), 1.0),
                elements=line.elements,
            )
            for (file, number, kind, name), line in ordered
        ]


def made_of(given: Any) -> str | None:
    """`arrays` or `numbers`, looking at the first ones; None for anything else."""
    for _ in range(DEEPEST):
        if not given:
            return None
        first = given[0]
        if isinstance(first, np.ndarray) and first.ndim:
            return "arrays"
        if isinstance(first, (int, float, np.number)):
            return "numbers"
        if not isinstance(first, (list, tuple)):
            return None
        given = first
    return None


def _from_array(given: Any, result: Tensor) -> float:
    """Seconds for the same from one array: stacked first, or kept as a tensor."""
    began = perf_counter()
    if made_of(given) == "arrays":
        torch.from_numpy(np.asarray(given)).to(result.dtype)
    else:
        result.detach().clone()
    return perf_counter() - began
