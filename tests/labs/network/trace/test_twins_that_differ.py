"""Blocks that look alike but differ: each must be traced as it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

import clew

COUNT = 0
TICKS: list[int] = []


def tick() -> int:
    TICKS.append(1)
    return len(TICKS)


def remembering(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    calls: list[int] = []

    @functools.wraps(forward)
    def wrapped(self: Any, x: Tensor) -> Tensor:
        calls.append(1)
        x = forward(self, x)
        return x.tanh() if len(calls) % 2 else x.relu()

    return wrapped


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.number = 0

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        return x.tanh() if self.number % 2 else x.relu()


class CountsGlobally(Part):
    def forward(self, x: Tensor) -> Tensor:
        global COUNT
        COUNT += 1
        return self.linear(x).tanh() if COUNT % 2 else self.linear(x).relu()


class CallsWhatCounts(Part):
    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).tanh() if tick() % 2 else self.linear(x).relu()


class Decorated(Part):
    @remembering
    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)


class HasProperty(Part):
    @property
    def odd(self) -> bool:
        return tick() % 2 == 1

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).tanh() if self.odd else self.linear(x).relu()


class DefaultList(Part):
    def forward(self, x: Tensor, calls: list[int] = []) -> Tensor:  # noqa: B006 - as people write it
        calls.append(1)
        return self.linear(x).tanh() if len(calls) % 2 else self.linear(x).relu()


class Caches(Part):
    def forward(self, x: Tensor, cache: dict[str, Tensor]) -> Tensor:
        cache["k"] = self.linear(x)
        return x + 1


class Replaces(Part):
    def forward(self, x: Tensor, slots: list[Tensor]) -> Tensor:
        slots[0] = self.linear(x)
        return x + 1


class Labels(Part):
    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        y.depth = getattr(x, "depth", 0) + 1  # type: ignore[attr-defined]
        return y.tanh() if y.depth % 2 else y  # type: ignore[attr-defined]


class Wide(Part):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.out(F.gelu(self.linear(x)))


class Attends(Part):
    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x).view(2, 2, 5, 4)
        return x + F.scaled_dot_product_attention(y, y, y).reshape(x.shape)


class Normed(Part):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.linear(x))


class Stack(nn.Module):
    def __init__(self, block: type[Part], run: Callable[[list[Any], Tensor], Tensor]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(block() for _ in range(6))
        self.run = run

    def forward(self, x: Tensor) -> Tensor:
        global COUNT
        COUNT = 0
        TICKS.clear()
        return self.run(list(self.blocks), x)


def plainly(blocks: list[Any], x: Tensor) -> Tensor:
    for block in blocks:
        x = block(x)
    return x


def numbering(blocks: list[Any], x: Tensor) -> Tensor:
    for number, block in enumerate(blocks):
        block.number = number
        x = block(x)
    return x


def switching(blocks: list[Any], x: Tensor) -> Tensor:
    for number, block in enumerate(blocks):
        block.requires_grad_(number % 2 == 0)
        x = block(x)
    return x


def with_caches(blocks: list[Any], x: Tensor) -> Tensor:
    caches: list[dict[str, Tensor]] = [{} for _ in blocks]
    for block, cache in zip(blocks, caches, strict=True):
        x = block(x, cache)
    return x + torch.stack([cache["k"] for cache in caches]).sum(0)


def with_slots(blocks: list[Any], x: Tensor) -> Tensor:
    total = torch.zeros(())
    for block in blocks:
        slots = [x]
        x = block(x, slots)
        total = total + slots[0].sum()
    return total


def checkpointing_some(blocks: list[Any], x: Tensor) -> Tensor:
    for number, block in enumerate(blocks):
        x = checkpoint(block, x, use_reentrant=False) if number % 2 else block(x)
    return x


def other_kernels(blocks: list[Any], x: Tensor) -> Tensor:
    for number, block in enumerate(blocks):
        with sdpa_kernel(SDPBackend.MATH if number % 2 else SDPBackend.FLASH_ATTENTION):
            x = block(x)
    return x


def twice_cast(blocks: list[Any], x: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return plainly(blocks, plainly(blocks, x))


def three_times(blocks: list[Any], x: Tensor) -> Tensor:
    return plainly(blocks, plainly(blocks, plainly(blocks, x)))


CASES: dict[str, tuple[type[Part], Callable[[list[Any], Tensor], Tensor]]] = {
    "counts globally": (CountsGlobally, plainly),
    "calls what counts": (CallsWhatCounts, plainly),
    "decorated": (Decorated, plainly),
    "has a property": (HasProperty, plainly),
    "a list as default": (DefaultList, plainly),
    "is given a number": (Part, numbering),
    "is frozen and freed": (Part, switching),
    "fills a cache": (Caches, with_caches),
    "fills a slot": (Replaces, with_slots),
    "labels its output": (Labels, plainly),
    "some checkpointed": (Wide, checkpointing_some),
    "other kernels": (Attends, other_kernels),
    "cast once": (Wide, twice_cast),
    "normed three times": (Normed, three_times),
}


def told(found: Any) -> list[Any]:
    return [(op.type, op.module, op.sources, op.feeds_result, op.line) for op in found]


@pytest.mark.parametrize("name", CASES)
def test_what_is_noted_is_what_runs(name: str) -> None:
    model = Stack(*CASES[name])
    x = torch.randn(2, 5, 8) if name == "other kernels" else torch.randn(5, 8)
    assert told(clew.visit(model, x)) == told(clew.visit(model, x, compute=True))


@pytest.mark.parametrize("name", ["some checkpointed", "cast once", "normed three times"])
def test_what_is_kept_is_what_a_forward_keeps(name: str) -> None:
    model, x = Stack(*CASES[name]), torch.randn(5, 8)
    assert (
        clew.summary(model, x).memory.activations == clew.summary(model, x, compute=True).memory.activations
    )


@pytest.mark.parametrize("held", [torch.ones(3), np.ones(3), torch.ones(()), {"a": torch.ones(2)}])
def test_a_block_may_hold_tensors_and_arrays(held: Any) -> None:
    model = Stack(Part, plainly)
    for block in model.blocks:
        block.held = held
    assert len(clew.summary(model, torch.randn(5, 8)).rows) == 13
