"""Examining a model leaves it unchanged."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from networks import VAE, ResNet
from torch import Tensor, nn
from torch.nn.modules import module as hooks

import clew


class Stateful(nn.Module):
    """Changes all that a forward can change."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.norm.eval()
        self.frozen = nn.BatchNorm1d(4)
        self.spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("average", torch.zeros(4))
        self.calls, self.history = 0, list[Any]()

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.last = x
        self.history.append(x.shape)
        self.average.mul_(0.9).add_(x.detach().mean(0))
        with torch.no_grad():
            self.weight[1:3] += 1
        x += random.random() + float(np.random.rand())
        self.train()
        return self.spectral(self.frozen(self.norm(x))) * self.weight + torch.rand(4)


def state(model: nn.Module) -> dict[str, Any]:
    plain = {
        path: {k: v for k, v in module.__dict__.items() if not k.startswith("_") or k in HOOKS}
        for path, module in model.named_modules()
    }
    return {
        "tensors": {name: value.clone() for name, value in model.state_dict().items()},
        "identity": {name: id(value) for name, value in model.state_dict(keep_vars=True).items()},
        "attributes": {p: {k: repr(v) for k, v in d.items()} for p, d in plain.items()},
        "grads": [None if p.grad is None else p.grad.clone() for p in model.parameters()],
        "random": (random.getstate(), torch.get_rng_state(), str(np.random.get_state())),
        "hooks": (len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks),
                  len(hooks._global_forward_hooks_always_called)),
    }  # fmt: skip


HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@pytest.mark.parametrize("make", [Stateful, ResNet, VAE])
@pytest.mark.parametrize("options", [{}, {"compute": True}, {"statistics": True}])
def test_summary_leaves_no_trace(make: type[nn.Module], options: dict[str, Any]) -> None:
    model = make()
    x = {Stateful: torch.randn(5, 4), ResNet: torch.randn(2, 3, 8, 8), VAE: torch.randn(3, 16)}[make]
    kept = x.clone()
    next(model.parameters()).grad = torch.ones_like(next(model.parameters()))
    before = state(model)
    clew.summary(model, x, **options)
    after = state(model)
    for part, value in before.items():
        assert same(value, after[part]), part
    assert torch.equal(x, kept)


def test_a_failing_forward_leaves_no_trace_either() -> None:
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3), nn.Linear(4, 2))
    x = torch.randn(5, 4)
    before = state(model)
    with pytest.raises(RuntimeError):
        clew.summary(model, x)
    assert same(before, state(model))


class Counter:
    def __init__(self) -> None:
        self.calls, self.seen = 0, list[Any]()


class Cached(nn.Module):
    """Keeps things where no buffer is."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.nested: dict[str, list[Any]] = {"kept": []}
        self.keys, self.steps = torch.zeros(8, 4), torch.zeros(1)
        self.array, self.counter = np.zeros(3), Counter()

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        self.nested["kept"].append(x)
        self.keys[: len(x)] = x
        self.steps += 1
        self.array[0] += 1
        self.counter.calls += 1
        self.counter.seen.append(x.shape)
        self.linear.weight.requires_grad_(False)
        return x + self.keys[: len(x)]


@pytest.mark.parametrize("options", [{}, {"compute": True}, {"statistics": True}])
def test_what_is_kept_beside_buffers_is_put_back_too(options: dict[str, Any]) -> None:
    model = Cached()
    clew.summary(model, torch.randn(5, 4), **options)
    assert model.nested == {"kept": []}
    assert (model.keys.requires_grad, model.keys.grad_fn) == (False, None)
    assert (float(model.keys.abs().sum()), float(model.steps)) == (0, 0)
    assert model.array.tolist() == [0, 0, 0]
    assert (model.counter.calls, model.counter.seen) == (0, [])
    assert all(p.requires_grad for p in model.parameters())
