"""Layers that break the rules for layers, and layers that keep them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, judged, tried
from torch import Tensor, nn

from clew.checks.exp.custom_layer_broken import CustomLayerBroken as Check
from clew.labs.experiments.network.module_contract import ModuleContract
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of


class Scale(nn.Module):
    """Scales features; `kept` says where the factors are."""

    def __init__(self, kept: str) -> None:
        super().__init__()
        if kept == "parameter":
            self.factors = nn.Parameter(torch.ones(16))
        elif kept == "trained":
            self.factors = torch.ones(16).requires_grad_()
        elif kept == "list":
            self.factors = [nn.Parameter(torch.ones(16))]
        else:
            self.factors = torch.ones(16)

    def forward(self, x: Tensor) -> Tensor:
        factors = self.factors[0] if isinstance(self.factors, list) else self.factors
        return x * factors


class Centre(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean = torch.zeros(16)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x - self.mean


class Forgetful(nn.Module):
    """Saves something else than it has."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return {name: value.round() for name, value in super().state_dict(*args, **kwargs).items()}

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x)
        return out


class Written(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        out = torch.tanh(x)
        torch.tensor([], dtype=out.dtype).set_(out.untyped_storage()).mul_(3.0)
        return out


class Mixing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.softmax(x, 0)


class Recurrent(nn.Module):
    """Keeps a state of the samples from call to call, and draws its start."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.state = nn.GRUCell(16, 16), torch.zeros(0)

    def forward(self, x: Tensor) -> Tensor:
        self.state = self.cell(x, torch.zeros_like(x)).detach()
        out: Tensor = self.cell(x, self.state)
        return F.dropout(out, 0.2, self.training)


def program(layer: nn.Module) -> Subject:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), layer, nn.ReLU(), nn.Linear(16, 1))
    return subject_of(model, F.mse_loss, (torch.randn(32, 6), torch.randn(32, 1)))


BROKEN: dict[str, tuple[Callable[[], nn.Module], str, str]] = {
    "trained": (lambda: Scale("trained"), "error", "no optimizer gets it"),
    "list": (lambda: Scale("list"), "error", "no optimizer gets it"),
    "constant": (lambda: Scale("constant"), "advice", "plain tensor"),
    "state": (Centre, "warning", "checkpoints do not contain it"),
    "state dict": (Forgetful, "warning", "state_dict"),
    "gradient": (Written, "error", "does not match its forward"),
    "leak": (Mixing, "error", "mixes the samples"),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_broken_layer_is_named_with_its_forward(name: str) -> None:
    make, severity, says = BROKEN[name]
    layer = make()
    (finding,) = judged(Check(), tried(ModuleContract(), program(layer)))
    assert finding.severity.value == severity
    assert says in finding.message
    assert type(layer).__name__ in finding.message
    assert finding.site.module == "1"
    assert finding.site.line == type(layer).forward.__code__.co_firstlineno


class Padded(nn.Module):
    """Reads embeddings, of which that of padding has no gradient by design."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 16, padding_idx=0)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.table((x[:, 0] > 0).long())
        return out


@pytest.mark.parametrize("make", [lambda: Scale("parameter"), Recurrent, Padded])
def test_a_layer_that_holds_passes(make: Callable[[], nn.Module]) -> None:
    result = tried(ModuleContract(), program(make()))
    assert result.data.tried == ("1",)
    assert result.data.faults == ()


@pytest.mark.parametrize("name", ["tagger", "vae", "two_towers", "gpt"])
def test_healthy_programs_pass(name: str) -> None:
    result = tried(ModuleContract(), HEALTHY[name]())
    assert judged(Check(), result) == [], result.data


@pytest.mark.parametrize("name", ["cnn", "segmentation"])
def test_a_network_of_torchs_own_layers_is_not_judged(name: str) -> None:
    with pytest.raises(CannotJudge, match="no custom layer"):
        tried(ModuleContract(), HEALTHY[name]())


def test_nothing_is_left_behind() -> None:
    layer = Centre()
    subject = program(layer)
    mean, values = layer.mean, layer.mean.clone()
    first = tried(ModuleContract(), subject).data
    assert layer.mean is mean
    assert torch.equal(mean, values)
    assert tried(ModuleContract(), subject).data == first
