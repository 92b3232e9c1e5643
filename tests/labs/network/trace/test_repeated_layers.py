"""What is copied for an identical layer must equal what would have been recorded if it had run."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from networks import GPT, VAE, LeNet, ResNet, UNet
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from clew.labs.network.trace import traced_forward
from clew.labs.network.trace.op_tracer import ForwardTrace
from clew.labs.network.trace.repeated_layers import Repeats

COLLECTED: list[Tensor] = []


class Chain(nn.Module):
    """Blocks of one kind, one after the other."""

    def __init__(self, *blocks: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Part(nn.Module):
    """What all blocks below have."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)


class Plain(Part):
    def forward(self, x: Tensor) -> Tensor:
        return x + self.linear(x).tanh()


class Normed(Part):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.linear(x)), inplace=True)


class WritesItsInput(Part):
    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x.mul_(2))


class CountsItself(Part):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.linear(x)


class Remembers(Part):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.shape)
        return self.linear(x)


class Collects(Part):
    def forward(self, x: Tensor) -> Tensor:
        COLLECTED.append(x)
        return self.linear(x)


class CollectsInside(Part):
    def forward(self, x: Tensor) -> Tensor:
        return sum(self.linear(COLLECTED.append(y) or y) for y in (x, x))  # type: ignore[func-returns-value]


class CountsInItsClass(Part):
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        CountsInItsClass.calls += 1
        return self.linear(x) if CountsInItsClass.calls % 2 else x.relu()


class RemembersInItsClass(Part):
    seen: list[Any] = []  # noqa: RUF012 - shared by all, as people write it

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.shape)
        return self.linear(x) if len(self.seen) % 2 else x.relu()


class Numbered(Part):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        return x.tanh() if self.number % 2 else x.relu()


class Drops(Part):
    def forward(self, x: Tensor) -> Tensor:
        return x if random.random() < 0.5 else self.linear(x)


class Passes(Part):
    def forward(self, x: Tensor) -> Tensor:
        self.linear(x)
        return x


class Slices(Part):
    def forward(self, x: Tensor) -> Tensor:
        self.linear(x)
        return x[:, :]


class Checkpointed(Part):
    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.linear, x, use_reentrant=False)


class Cast(Part):
    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return self.linear(x).float()


class Many(Part):
    def forward(self, x: Tensor, mask: Tensor, more: dict[str, Tensor]) -> tuple[Tensor, dict[str, Any]]:
        y = self.linear(x) * mask
        return y, {"kept": more["kept"], "sum": y.sum(), "none": None}


class ManyChain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Many() for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        mask, kept, total = torch.ones(1, 8).tril(), x * 2, 0
        for block in self.blocks:
            x, extra = block(x, mask, more={"kept": kept})
            x += 1  # in place on what came out
            total = total + extra["sum"] + extra["kept"].sum()
        return total


class TwoLines(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = self.one(x.clone().requires_grad_())
        return self.two(x)


class Tied(nn.Module):
    """The same weights in all blocks, the same block at all places."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block
        self.others = nn.ModuleList(Plain() for _ in range(2))
        self.others[1].linear.weight = self.others[0].linear.weight

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(5):
            x = self.block(x)
        for other in self.others:
            x = other(x)
        return x


class Cells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.ModuleList([nn.LSTMCell(8, 8), nn.LSTMCell(8, 8)])
        self.step = Plain()

    def forward(self, x: Tensor) -> Tensor:
        h, c = x, x * 0
        for _ in range(6):
            for cell in self.cell:
                h, c = cell(self.step(h), (h, c))
        return h


class Nested(nn.Module):
    """Stages of blocks: what is repeated holds what is repeated."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.Sequential(*(nn.Sequential(*(Normed() for _ in range(3))) for _ in range(3)))

    def forward(self, x: Tensor) -> Tensor:
        return self.stages(x)


def vector() -> Tensor:
    return torch.randn(3, 8)


def transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 5, enable_nested_tensor=False)


REPEATING: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "plain": (lambda: Chain(*(Plain() for _ in range(5))), vector),
    "normed": (lambda: Chain(*(Normed() for _ in range(5))), vector),
    "frozen": (lambda: Chain(*(Plain().requires_grad_(False) for _ in range(5))), vector),
    "evaluated": (lambda: Chain(*(Normed() for _ in range(5))).eval(), vector),
    "passes": (lambda: Chain(*(Passes() for _ in range(5))), vector),
    "checkpointed": (lambda: Chain(*(Checkpointed() for _ in range(5))), vector),
    "cast": (lambda: Chain(*(Cast() for _ in range(5))), vector),
    "numbered": (lambda: Chain(*(Numbered(n // 2) for n in range(6))), vector),
    "many": (ManyChain, vector),
    "tied": (lambda: Tied(Plain()), vector),
    "tied, normed": (lambda: Tied(Normed()), vector),
    "resnet": (ResNet, lambda: torch.randn(2, 3, 16, 16)),
    "cells": (Cells, vector),
    "nested": (Nested, vector),
    "two lines": (TwoLines, lambda: torch.randn(2, 3, 8)),
    "transformer": (transformer, lambda: torch.randn(2, 3, 8)),
    "gpt": (GPT, lambda: torch.randint(0, 10, (2, 8))),
}
RUNNING: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "writes its input": (lambda: Chain(*(WritesItsInput() for _ in range(4))), vector),
    "counts itself": (lambda: Chain(*(CountsItself() for _ in range(4))), vector),
    "remembers": (lambda: Chain(*(Remembers() for _ in range(4))), vector),
    "collects": (lambda: Chain(*(Collects() for _ in range(4))), vector),
    "collects inside": (lambda: Chain(*(CollectsInside() for _ in range(4))), vector),
    "counts in its class": (lambda: Chain(*(CountsInItsClass() for _ in range(4))), vector),
    "remembers in its class": (lambda: Chain(*(RemembersInItsClass() for _ in range(4))), vector),
    "drops": (lambda: Chain(*(Drops() for _ in range(9))), vector),
    "slices": (lambda: Chain(*(Slices() for _ in range(4))), vector),
    "lenet": (LeNet, lambda: torch.randn(2, 1, 28, 28)),
    "unet": (UNet, lambda: torch.randn(2, 3, 16, 16)),
    "vae": (VAE, lambda: torch.rand(2, 16)),
}


def traced(model: nn.Module, x: Tensor) -> ForwardTrace:
    random.seed(0)
    trace = traced_forward.without_computing(model, (x,), {})
    if trace.error is not None:
        raise trace.error
    return trace


def told(trace: ForwardTrace) -> Any:
    """All that is known of ops and calls, in plain values."""
    ops = [
        {**vars(op), "call": None if op.call is None else op.call.index, "function": str(op.function)}
        for op in trace.ops
    ]
    calls = [
        {**vars(c), "module": id(c.module), "parent": None if c.parent is None else c.parent.index}
        for c in trace.calls
    ]
    return ops, calls, trace.makers, trace.outputs, trace.saved


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[nn.Module]:
    """The modules that were noted again."""
    found: list[nn.Module] = []
    note = Repeats._again

    def noted(self: Repeats, seen: Any, module: nn.Module, *others: Any) -> Any:
        found.append(module)
        return note(self, seen, module, *others)

    monkeypatch.setattr(Repeats, "_again", noted)
    return found


@pytest.mark.parametrize("name", [*REPEATING, *RUNNING])
def test_a_trace_is_the_same_with_and_without(
    name: str, again: list[nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, data = {**REPEATING, **RUNNING}[name]
    model, x = make(), data()
    with_twins = told(traced(model, x))
    assert bool(again) == (name in REPEATING)
    monkeypatch.setattr(traced_forward, "Repeats", lambda *_: None)
    without = told(traced(model, x))
    assert with_twins == without
    assert not any("forward" in vars(m) for m in model.modules())


def test_most_layers_of_a_deep_network_are_noted_again(again: list[nn.Module]) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    traced(nn.TransformerEncoder(layer, 24, enable_nested_tensor=False), torch.randn(2, 3, 8))
    assert (
        len([m for m in again if isinstance(m, nn.TransformerEncoderLayer)]) == 22
    )  # the input has no gradient


def test_a_hook_on_one_block_still_runs(again: list[nn.Module]) -> None:
    model, seen = Chain(*(Plain() for _ in range(5))), []
    model.blocks[3].linear.register_forward_hook(lambda *_: seen.append(1))
    traced(model, vector())
    assert seen == [1]
    assert model.blocks[3] not in again
    assert model.blocks[4] in again


def test_another_shape_or_mode_is_traced_anew(again: list[nn.Module]) -> None:
    model = Chain(*(nn.Sequential(nn.Dropout(), nn.Linear(8, 8)) for _ in range(4)))
    model.blocks[2].eval()
    trace = traced(model, vector())
    dropped = {op.call.path for op in trace.ops if op.call is not None and "bernoulli" in str(op.function)}
    assert dropped == {"blocks.0.0", "blocks.1.0", "blocks.3.0"}
    assert again == [model.blocks[3]]
