"""Steps that give different numbers the second time, and steps that do not."""

from __future__ import annotations

import linecache
import random
import time

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, judged, tried
from torch import Tensor, nn

from clew.checks.exp.nondeterministic_step import NondeterministicStep as Check
from clew.labs.experiments.network.repeated_step import RepeatedStep
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.finding import Finding

OWN = np.random.default_rng(3)


class Net(nn.Module):
    def __init__(self, how: str = "") -> None:
        super().__init__()
        self.how = how
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 1)
        self.norm, self.dropout = nn.BatchNorm1d(16), nn.Dropout(0.3)
        self.generator = torch.Generator().manual_seed(1)
        self.mean = torch.zeros(16)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        h = self.dropout(self.norm(self.first(x)).relu())
        if self.how == "unseeded":
            h = h + torch.tensor(np.random.default_rng().normal(size=16), dtype=torch.float32)
        if self.how == "time":
            h = h * (1 + time.perf_counter_ns() % 997)
        if self.how == "generator":
            h = h + torch.randn(16, generator=self.generator)
        if self.how == "global":
            h = h + torch.tensor(OWN.normal(size=16), dtype=torch.float32)
        if self.how == "kept":
            self.mean.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
            h = h - self.mean
        if self.how == "counter":
            self.calls += 1
            h = h * self.calls
        if self.how == "seeded":
            h = h + np.random.rand() + random.random() + torch.rand(16)
        out: Tensor = self.last(h)
        return out


def program(how: str = "") -> Subject:
    torch.manual_seed(0)
    return subject_of(Net(how), F.mse_loss, (torch.randn(32, 6), torch.randn(32, 1)))


def line_of(finding: Finding) -> str:
    return linecache.getline(finding.site.file or "", finding.site.line or 0)


@pytest.mark.parametrize(("how", "line"), [("unseeded", "default_rng()"), ("time", "perf_counter_ns")])
def test_numbers_that_no_seed_reaches_are_a_warning_on_their_line(how: str, line: str) -> None:
    (finding,) = judged(Check(), tried(RepeatedStep(), program(how)))
    assert (finding.severity.value, finding.confidence) == ("warning", "certain")
    assert line in line_of(finding)


def test_without_the_loss_the_model_alone_is_run_twice() -> None:
    subject = program("unseeded")
    subject.step = None
    (finding,) = judged(Check(), tried(RepeatedStep(), subject))
    assert "model's output" in finding.evidence[0].text
    assert "default_rng()" in line_of(finding)


@pytest.mark.parametrize(("how", "name"), [("generator", "generator"), ("global", "OWN")])
def test_a_generator_of_its_own_is_a_hint_that_names_it(how: str, name: str) -> None:
    (finding,) = judged(Check(), tried(RepeatedStep(), program(how)))
    assert finding.severity.value == "advice"
    assert f"({name})" in finding.message


@pytest.mark.parametrize(("how", "line"), [("kept", "self.mean.mul_"), ("counter", "self.calls")])
def test_state_in_attributes_is_a_hint(how: str, line: str) -> None:
    (finding,) = judged(Check(), tried(RepeatedStep(), program(how)))
    assert finding.severity.value == "advice"
    assert "kept in an attribute" in finding.message
    assert line in line_of(finding)


@pytest.mark.parametrize("how", ["", "seeded"])
def test_dropout_batch_normalisation_and_seeded_numbers_pass(how: str) -> None:
    assert tried(RepeatedStep(), program(how)).data.kind == "same"


@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_healthy_programs_pass(name: str) -> None:
    result = tried(RepeatedStep(), HEALTHY[name]())
    assert result.data.kind == "same"
    assert judged(Check(), result) == []


def test_generators_and_plain_tensors_are_as_they_were_afterwards() -> None:
    model = Net("kept")
    subject = subject_of(model, F.mse_loss, (torch.randn(32, 6), torch.randn(32, 1)))
    model.how = "generator"
    state, mean, own = model.generator.get_state(), model.mean.clone(), OWN.bit_generator.state
    tried(RepeatedStep(), subject)
    assert torch.equal(model.generator.get_state(), state)
    model.how = "kept"
    tried(RepeatedStep(), subject)
    assert torch.equal(model.mean, mean)
    model.how = "global"
    tried(RepeatedStep(), subject)
    assert OWN.bit_generator.state == own
