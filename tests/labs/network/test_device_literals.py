from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from networks import GPT, LeNet, ResNet
from torch import Tensor, nn

import clew
from clew.labs.network.shape_errors.shape_error import ForwardError
from clew.records.finding import Finding


def literals(model: nn.Module, *inputs: object) -> list[Finding]:
    return [f for f in clew.summary(model, list(inputs)).findings if f.check == "device-literal"]


def test_a_tensor_made_on_the_cpu_is_named_with_its_line() -> None:
    (found,) = literals(GPT(layers=1), (2, 5))
    assert "arange creates its tensor on the CPU" in found.message
    assert "device=x.device" in found.fix
    assert (found.site.file or "").endswith("networks.py")


class Masked(nn.Module):
    def __init__(self, literal: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.literal = literal
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        where = "cpu" if self.literal else x.device
        mask = torch.tril(torch.ones(x.shape[0], 4, device=where)).bool()
        return self.layer(x).masked_fill(mask, 0.0) * self.scale


def test_a_device_that_follows_the_input_is_fine() -> None:
    assert literals(Masked(literal=False), (3, 4)) == []
    assert len(literals(Masked(literal=True), (3, 4))) == 1


class Net(nn.Module):
    """A layer, a plain tensor, a buffer, and a forward written in the test."""

    def __init__(self, forward: Callable[[Any, Tensor], Tensor], layer: nn.Module | None = None) -> None:
        super().__init__()
        self.layer = layer or nn.Linear(4, 4)
        self.run = forward
        self.plain = torch.ones(4)
        self.several = [torch.zeros(1, 4)]
        self.register_buffer("constant", torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)


BOUND: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "tensor": lambda m, x: m.layer(x) + torch.tensor([1.0, 2.0, 3.0, 4.0]),
    "from_numpy": lambda m, x: m.layer(x) + torch.from_numpy(np.ones(4, dtype="float32")),
    "as_tensor": lambda m, x: m.layer(x) * torch.as_tensor(np.ones(4, dtype="float32")),
    "where": lambda m, x: torch.where(m.layer(x) > 0, x, torch.zeros(1)),
    "over views and casts": lambda m, x: m.layer(x) + torch.arange(8).view(2, 4)[1].float(),
    "as an index of an embedding": lambda m, x: nn.functional.embedding(torch.arange(3), m.layer(x)),
    "joined": lambda m, x: torch.cat([m.layer(x), torch.zeros(1, 4)]),
    "held": lambda m, x: m.layer(x) + m.plain,
    "held in a list": lambda m, x: m.layer(x) + m.several[0],
}
FREE: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "device of the input": lambda m, x: m.layer(x) + torch.zeros(4, device=x.device),
    "like the input": lambda m, x: (
        m.layer(x) + torch.zeros_like(x) + x.new_zeros(4) + x.new_tensor([1.0] * 4)
    ),
    "buffer": lambda m, x: m.layer(x) * m.constant,
    "moved": lambda m, x: m.layer(x) + m.plain.to(x.device) + torch.ones(4).to(x),
    "numbers": lambda m, x: m.layer(x) * torch.tensor(2.0) + 1.0,
    "indices": lambda m, x: m.layer(x)[torch.randperm(len(x))][torch.tensor([0, 1])],
    "sizes": lambda m, x: m.layer(x).expand(*torch.tensor([3, 4]).tolist()) * int(m.plain.sum()),
    "python": lambda m, x: m.layer(x) + len(torch.arange(3).tolist()),
    "unused": lambda m, x: (torch.arange(3), m.layer(x))[1],
}


@pytest.mark.parametrize("forward", BOUND.values(), ids=BOUND)
def test_a_tensor_that_stays_on_the_cpu_and_meets_others_is_told(
    forward: Callable[[Any, Tensor], Tensor],
) -> None:
    (found,) = literals(Net(forward), (3, 4))
    assert found.site.file == __file__


@pytest.mark.parametrize("forward", FREE.values(), ids=FREE)
def test_what_follows_the_model_or_meets_nothing_of_it_is_fine(
    forward: Callable[[Any, Tensor], Tensor],
) -> None:
    summary = clew.summary(Net(forward), (3, 4))
    assert [f for f in summary.findings if f.check == "device-literal"] == []
    assert "device-literal" not in {n.check for n in summary.not_judged}


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_first_states_of_a_recurrent_layer_are_seen(kind: Any) -> None:
    def forward(m: Any, x: Tensor) -> Tensor:
        start = torch.zeros(1, x.shape[1], 4)
        return m.layer(x, (start, start) if kind is nn.LSTM else start)[0]

    (found,) = literals(Net(forward, kind(4, 4)), (3, 2, 4))
    assert "zeros creates" in found.message


def test_a_plain_tensor_is_told_with_the_line_that_makes_it_and_how_to_keep_it() -> None:
    (found,) = literals(Net(BOUND["held"]), (3, 4))
    assert 'register_buffer("plain"' in found.fix
    assert "self.plain = torch.ones(4)" in source_line(found)


def source_line(finding: Finding) -> str:
    return linecache.getline(finding.site.file or "", finding.site.line or 0)


class Harmless(nn.Module):
    """Tensors on the CPU that never meet the others, or may."""

    def forward(self, x: Tensor) -> Tensor:
        steps = torch.arange(3).tolist()
        return x[torch.tensor([0, 1])] * torch.tensor(2.0) + len(steps)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (LeNet(), (2, 1, 28, 28)),
        (ResNet(), (2, 3, 8, 8)),
        (nn.LSTM(4, 5), (3, 2, 4)),
        (Harmless(), (4, 3)),
        (nn.TransformerEncoderLayer(8, 2), (3, 2, 8)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_networks_that_run_anywhere_are_not_blamed(model: nn.Module, shape: tuple[int, ...]) -> None:
    assert literals(model, shape) == []


@pytest.mark.parametrize("compute", [None, False, True])
def test_a_device_that_is_not_here_is_an_error_and_no_crash(compute: bool | None) -> None:
    """torch aborts the process when autograd meets a fake tensor on a device that it was not built for."""

    class Moving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x).to("xpu") * 2

    with pytest.raises(ForwardError):
        clew.summary(Moving(), (3, 4), compute=compute)
