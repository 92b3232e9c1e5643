from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, batches, diabetes, digits, judged, mlp, tried, wine
from torch import Tensor, nn

from clew.checks.opt.over_regularised import OverRegularised as Check
from clew.labs.experiments.learning.regularisation_off import RegularisationOff
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.finding import Severity


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_learns_with_its_regularisation(name: str) -> None:
    assert judged(Check(), tried(RegularisationOff(), HEALTHY[name]())) == []


def dropping(share: float) -> Subject:
    torch.manual_seed(0)
    layers = [nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(share)]
    layers += [nn.Linear(64, 64), nn.ReLU(), nn.Dropout(share), nn.Linear(64, 10)]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    return subject_of(model, F.cross_entropy, batches(*digits()), optimizer)


def decaying(decay: float) -> Subject:
    torch.manual_seed(0)
    model = mlp(10, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=decay)
    return subject_of(model, F.mse_loss, batches(*diabetes()), optimizer)


def test_dropout_of_nearly_all_is_a_warning_at_the_layer() -> None:
    (found,) = judged(Check(), tried(RegularisationOff(), dropping(0.98)))
    assert (found.severity, found.site.module) == (Severity.WARNING, "3")
    assert "dropout of 98%" in found.message


def test_dropout_of_half_is_usual() -> None:
    assert judged(Check(), tried(RegularisationOff(), dropping(0.5))) == []


def test_weight_decay_that_wins_is_a_warning() -> None:
    (found,) = judged(Check(), tried(RegularisationOff(), decaying(2.0)))
    assert "weight decay 2" in found.message
    assert judged(Check(), tried(RegularisationOff(), decaying(1e-3))) == []


class Functional(nn.Module):
    """Dropout by a function, and weight decay beside it that does no harm."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(13, 64), nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.two(F.dropout(torch.relu(self.one(x)), 0.99, self.training))


def test_dropout_by_a_function_is_switched_off_too() -> None:
    torch.manual_seed(0)
    model = Functional()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    result = tried(
        RegularisationOff(), subject_of(model, F.cross_entropy, batches(*wine(), size=16), optimizer)
    )
    assert result.data.dropouts == (("", pytest.approx(0.99)),)
    assert min(result.data.gains["off"]) > max(result.data.gains["on"])


def test_a_program_without_regularisation_has_nothing_to_switch_off() -> None:
    result = tried(RegularisationOff(), HEALTHY["wine"]())
    assert result.data.gains == {}
    assert judged(Check(), result) == []
