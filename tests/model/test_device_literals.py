from __future__ import annotations

import pytest
import torch
from networks import GPT, LeNet, ResNet
from torch import Tensor, nn

import clew
from clew.model.mishaps import ForwardError


def device_notes(model: nn.Module, *inputs: object) -> list[str]:
    return [n for n in clew.summary(model, list(inputs)).notes if "on a GPU" in n]


def test_a_tensor_made_on_the_cpu_is_named_with_its_line() -> None:
    (note,) = device_notes(GPT(layers=1), (2, 5))
    assert "arange (networks.py:" in note
    assert "device=x.device" in note


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
    assert device_notes(Masked(literal=False), (3, 4)) == []
    assert len(device_notes(Masked(literal=True), (3, 4))) == 1


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
def test_networks_that_run_anywhere_get_no_note(model: nn.Module, shape: tuple[int, ...]) -> None:
    assert device_notes(model, shape) == []


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
