"""A clock that only the planted costs move, and subjects to try things on."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.subject_from_call import subject_of


class Ticks:
    """Time that passes when somebody says so."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def take(self, seconds: float) -> None:
        self.time += seconds


class Counting(Ticks):
    """A second passes whenever somebody looks: all steps take the same."""

    def now(self) -> float:
        self.take(1.0)
        return self.time


def many_parameters(count: int = 8) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(4, 4) for _ in range(count)))


def data(size: int = 8, width: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(size, width, generator=generator), torch.randint(4, (size,), generator=generator)


def classifier(model: nn.Module, batch: Any, optimizer: Any = None, **options: Any) -> Subject:
    return subject_of(model, F.cross_entropy, batch, optimizer, **options)


class Costly(nn.Module):
    """A layer that takes some seconds of a clock, for each sample and for being called."""

    def __init__(self, clock: Ticks, call: float, sample: float = 0.0) -> None:
        super().__init__()
        self.clock, self.call, self.sample = clock, call, sample

    def forward(self, x: Tensor) -> Tensor:
        self.clock.take(self.call + self.sample * len(x))
        return x


def everything(model: nn.Module, *optimizers: torch.optim.Optimizer) -> dict[str, Any]:
    """All that must be the same afterwards, as values that can be compared."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {
        "values": {name: t.detach().clone() for name, t in tensors.items()},
        "places": {name: (t.data_ptr(), t.stride(), t._version) for name, t in tensors.items()},
        "gradients": {n: None if p.grad is None else p.grad.clone() for n, p in model.named_parameters()},
        "modes": [m.training for m in model.modules()],
        "attributes": [sorted(vars(m)) for m in model.modules()],
        "optimizers": [_frozen(o) for o in optimizers],
        "random": torch.get_rng_state(),
        "threads": torch.get_num_threads(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "gradients enabled": torch.is_grad_enabled(),
    }


def _frozen(optimizer: torch.optim.Optimizer) -> list[Any]:
    groups = [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]
    state = [
        {k: v.clone() if isinstance(v, Tensor) else v for k, v in optimizer.state[p].items()}
        for g in optimizer.param_groups
        for p in g["params"]
    ]
    return [groups, state]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(v, other[k]) for k, v in one.items())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
