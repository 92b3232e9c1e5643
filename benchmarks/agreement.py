"""Clew's module times against hand-made measurements of the same steps.

In one of Clew's windows, a hand-written `record_function` wraps every module's forward and is read back
from torch's own events. Torch has nothing like it for backwards: there the time from a module's backward
pre-hook to its backward hook counts.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch
from torch import nn

import clew
from benchmarks.workloads import Workload
from clew.records.step_costs import Profile

HAND = "by hand: "
LEAST = 0.02  # share of the step from which a module is compared: shorter ones are all overhead
SHORTEST = 1e-4  # seconds, likewise: the hooks of the ranges by hand run inside Clew's


@dataclass
class ByHand:
    """Seconds by module, call by call."""

    forwards: dict[str, list[float]] = field(default_factory=dict)
    backwards: dict[str, list[float]] = field(default_factory=dict)
    _began: dict[str, float] = field(default_factory=dict)
    _ranges: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def around(self, model: nn.Module) -> Iterator[None]:
        handles = []
        for path, module in model.named_modules():
            handles += [
                module.register_forward_pre_hook(self._opening(path)),
                module.register_forward_hook(self._closing(path)),
                module.register_full_backward_pre_hook(self._starting(path)),
                module.register_full_backward_hook(self._ending(path)),
            ]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of hooks on a first layer, which are not used
                yield
        finally:
            for handle in handles:
                handle.remove()

    def _opening(self, path: str) -> Any:
        def hook(*_: Any) -> None:
            self._ranges[path] = torch.profiler.record_function(HAND + path)
            self._ranges[path].__enter__()

        return hook

    def _closing(self, path: str) -> Any:
        return lambda *_: self._ranges.pop(path).__exit__(None, None, None)

    def _starting(self, path: str) -> Any:
        def hook(*_: Any) -> None:
            self._began[path] = perf_counter()

        return hook

    def _ending(self, path: str) -> Any:
        def hook(_: nn.Module, inputs: Sequence[Any], __: Any) -> None:
            if any(grad is not None for grad in inputs):  # else it was called before its work was done
                self.backwards.setdefault(path, []).append(perf_counter() - self._began[path])

        return hook

    def read(self, events: Sequence[Any]) -> None:
        """The ranges, from torch's events."""
        for event in events:
            if event.name.startswith(HAND):
                seconds = event.time_range.elapsed_us() / 1e6
                self.forwards.setdefault(event.name.removeprefix(HAND), []).append(seconds)


@dataclass(frozen=True)
class Agreement:
    """How far Clew's numbers are from the hand-made ones, as shares of the latter."""

    forward: dict[str, float]  # by module
    backward: dict[str, float]
    parts: float  # sum of the shares of a step's parts
    left: float  # share of the step that no part accounts for

    def to_json(self) -> dict[str, Any]:
        return {
            "forward": _summary(self.forward),
            "backward": _summary(self.backward),
            "parts": self.parts,
            "left": self.left,
        }


def _summary(values: Mapping[str, float]) -> dict[str, Any]:
    if not values:
        return {"modules": 0, "median": 0.0, "worst": 0.0, "where": ""}
    where = max(values, key=lambda path: abs(values[path]))
    middle = statistics.median(map(abs, values.values()))
    return {"modules": len(values), "median": middle, "worst": values[where], "where": where}


def measure_agreement(work: Workload, steps: int, windows: int) -> Agreement:
    """The median of several windows of this many steps each, module by module."""
    for _ in range(3):
        work.step()
    found = [_window(work, steps) for _ in range(windows)]
    return Agreement(
        _middle([one.forward for one in found]),
        _middle([one.backward for one in found]),
        statistics.median(one.parts for one in found),
        statistics.median(one.left for one in found),
    )


def _window(work: Workload, steps: int) -> Agreement:
    hand = ByHand()
    with hand.around(work.model), clew.profile(steps=steps, python=False, quiet=True) as block:
        for _ in range(steps + 1):
            work.step()
    assert block._recorder is not None
    detail = block._recorder.seen.in_detail[0]
    hand.read(detail.profiler.events())
    return compared(block.profile, hand, detail.steps)


def compared(profile: Profile, hand: ByHand, steps: Sequence[int]) -> Agreement:
    """The calls in the steps that Clew measured; every module is called once per step."""
    step = max(profile.step_median, sum(part.median for part in profile.parts))
    forward: dict[str, float] = {}
    backward: dict[str, float] = {}
    for module in profile.modules:
        for own, calls, found in (
            (module.forward, hand.forwards, forward),
            (module.backward, hand.backwards, backward),
        ):
            taken = list(calls.get(module.module, ()))[: len(steps)]
            if len(taken) == len(steps) and statistics.fmean(taken) >= max(LEAST * step, SHORTEST):
                found[module.module] = own / statistics.fmean(taken) - 1.0
    left = profile.unattributed / profile.step_median if profile.step_median else 0.0
    return Agreement(forward, backward, sum(part.share for part in profile.parts), left)


def _middle(windows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    paths = dict.fromkeys(path for window in windows for path in window)
    return {path: statistics.median(w[path] for w in windows if path in w) for path in paths}
