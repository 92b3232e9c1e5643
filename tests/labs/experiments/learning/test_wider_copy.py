from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, batches, diabetes, digits, judged, mlp, tried
from torch import Tensor, nn

from clew.checks.exp.capacity_too_small import CapacityTooSmall as Check
from clew.labs.experiments.learning.wider_copy import WiderCopy, order_of_layers, widen
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.finding import Severity


@pytest.mark.parametrize("name", ["cnn", "wine", "regression", "tagger", "two_towers", "segmentation"])
def test_a_healthy_program_is_wide_enough(name: str) -> None:
    assert judged(Check(), tried(WiderCopy(), HEALTHY[name]())) == []


def narrow(width: int) -> Subject:
    torch.manual_seed(0)
    layers = [nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return subject_of(model, F.cross_entropy, batches(*digits()), optimizer)


def test_a_bottleneck_of_one_unit_is_a_warning_and_a_wide_network_none() -> None:
    (found,) = judged(Check(), tried(WiderCopy(), narrow(1)))
    assert found.severity is Severity.WARNING
    assert "narrowest has 1 unit" in found.fix
    assert judged(Check(), tried(WiderCopy(), narrow(32))) == []


@pytest.mark.parametrize("name", ["cnn", "wine", "regression", "tagger", "segmentation", "vae"])
def test_a_wider_copy_has_the_same_output_and_goes_with_the_snapshot(name: str) -> None:
    subject = HEALTHY[name]()
    before = {path: id(module) for path, module in subject.model.named_modules()}
    sizes = [p.shape for p in subject.model.parameters()]
    with subject.snapshot() as snapshot:
        seen = snapshot.observe(subject.batch())
        layers = order_of_layers(snapshot, subject.batch())
        widen(subject, layers, 3)
        wider = snapshot.observe(subject.batch())
        assert sum(p.numel() for p in subject.model.parameters()) > 3 * sum(s.numel() for s in sizes)
        assert [c.prediction.shape for c in seen.calls] == [c.prediction.shape for c in wider.calls]
    assert {path: id(module) for path, module in subject.model.named_modules()} == before
    assert [p.shape for p in subject.model.parameters()] == sizes


def test_what_cannot_be_widened_or_has_no_hidden_layer_is_not_judged() -> None:
    with HEALTHY["gpt"]().snapshot() as snapshot, pytest.raises(CannotJudge, match="can't be built"):
        order_of_layers(snapshot, snapshot.subject.batch())
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    model[1].weight.data.zero_()
    subject = subject_of(model, F.cross_entropy, batches(*digits()), torch.optim.Adam(model.parameters()))
    with subject.snapshot() as snapshot, pytest.raises(CannotJudge, match="no hidden layer"):
        order_of_layers(snapshot, subject.batch())


def test_a_loss_without_a_known_floor_is_not_judged() -> None:
    torch.manual_seed(0)
    model = mlp(10, 1)

    def step(pair: tuple[Tensor, Tensor]) -> Tensor:
        return (model(pair[0]) - pair[1]).abs().mean()

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    subject = subject_of(model, None, batches(*diabetes()), optimizer, step=step)
    with pytest.raises(CannotJudge, match="lowest possible loss"):
        tried(WiderCopy(), subject)


def test_the_code_of_an_autoencoder_may_be_narrow() -> None:
    with pytest.raises(CannotJudge, match="input is also the target"):
        tried(WiderCopy(), HEALTHY["vae"]())
