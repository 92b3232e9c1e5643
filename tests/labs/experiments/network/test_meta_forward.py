"""Forwards that are tied to a device or a type, and forwards that are not."""

from __future__ import annotations

import linecache

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, judged, tried
from torch import Tensor, nn

from clew.checks.exp.device_literal import DeviceLiteral as Check
from clew.labs.experiments.network.meta_forward import MetaForward
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.subject_from_call import subject_of


class Net(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if self.how == "device":
            h = h + torch.arange(16, dtype=h.dtype)
        if self.how == "type":
            h = h @ torch.eye(16, dtype=torch.float32, device=h.device)
        if self.how == "number":
            h = h * torch.tensor(2.0)
        if self.how == "like":
            h = h + torch.arange(16, dtype=h.dtype, device=h.device) + h.new_ones(16)
        out: Tensor = self.last(h)
        return out


def program(how: str) -> Subject:
    torch.manual_seed(0)
    return subject_of(Net(how), F.mse_loss, (torch.randn(32, 6), torch.randn(32, 1)))


@pytest.mark.parametrize(
    ("how", "line", "says"), [("device", "torch.arange(16", "on a GPU"), ("type", "torch.eye(", "precision")]
)
def test_a_fixed_device_or_type_is_a_hint_on_its_line(how: str, line: str, says: str) -> None:
    (finding,) = judged(Check(), tried(MetaForward(), program(how)))
    assert finding.severity.value == "advice"
    assert says in finding.message
    assert line in linecache.getline(finding.site.file or "", finding.site.line or 0)


@pytest.mark.parametrize("how", ["", "like", "number"])
def test_tensors_made_like_their_inputs_and_single_numbers_pass(how: str) -> None:
    assert judged(Check(), tried(MetaForward(), program(how))) == []


@pytest.mark.parametrize("name", sorted(set(HEALTHY) - {"gpt"}))
def test_healthy_programs_pass(name: str) -> None:
    assert judged(Check(), tried(MetaForward(), HEALTHY[name]())) == []


def test_the_program_is_as_it_was_afterwards() -> None:
    model = Net("type")
    subject = subject_of(model, F.mse_loss, (torch.randn(32, 6), torch.randn(32, 1)))
    weight = model.first.weight
    first = tried(MetaForward(), subject).data
    assert tried(MetaForward(), subject).data == first
    assert model.first.weight is weight
    assert weight.dtype is torch.float32
    assert weight.device.type == "cpu"
