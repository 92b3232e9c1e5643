from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, batches, digits, judged, mlp, tried
from torch import nn

from clew.checks.act.poor_initialisation import PoorInitialisation as Check
from clew.labs.experiments.learning.redrawn_weights import RedrawnWeights
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.finding import Severity


@pytest.mark.parametrize("name", HEALTHY)
def test_the_weights_of_a_healthy_program_are_left_alone(name: str) -> None:
    assert judged(Check(), tried(RedrawnWeights(), HEALTHY[name]())) == []


def drawn(init: Callable[[torch.Tensor], object] | None) -> Subject:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), *mlp(64, 10, 48))
    for module in model:
        if isinstance(module, nn.Linear) and init is not None:
            init(module.weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return subject_of(model, F.cross_entropy, batches(*digits()), optimizer)


@pytest.mark.parametrize(
    "init", [lambda w: nn.init.normal_(w, std=1.0), lambda w: nn.init.normal_(w, std=1e-4)]
)
def test_weights_far_out_of_scale_are_a_warning_at_a_layer(init: Callable[[torch.Tensor], object]) -> None:
    result = tried(RedrawnWeights(), drawn(init))
    (found,) = judged(Check(), result)
    assert found.severity is Severity.WARNING
    assert found.site.module in {"1", "3", "5"}
    assert "default initial weights" in found.message
    assert max(result.data.fresh_ends) < min(result.data.ends)


def test_constant_weights_are_said_to_be_alike() -> None:
    (found,) = judged(Check(), tried(RedrawnWeights(), drawn(lambda w: nn.init.constant_(w, 0.05))))
    assert "the same for every unit" in found.message


def test_the_usual_draws_are_not_even_tried() -> None:
    for init in (None, nn.init.xavier_uniform_, nn.init.kaiming_normal_, nn.init.orthogonal_):
        result = tried(RedrawnWeights(), drawn(init))
        assert result.data.ends == ()
        assert judged(Check(), result) == []


def test_a_head_that_begins_at_zero_is_fine() -> None:
    subject = drawn(None)
    with torch.no_grad():
        subject.model[5].weight.zero_()  # type: ignore[index]
    assert judged(Check(), tried(RedrawnWeights(), subject)) == []
