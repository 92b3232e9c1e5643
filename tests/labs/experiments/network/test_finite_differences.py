"""Gradients that are wrong, gradients that are right, and gradients that are meant to differ."""

from __future__ import annotations

import linecache
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, Fact, Recorded, judged, tried
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from clew.checks.exp.gradient_mismatch import GradientMismatch as Check
from clew.checks.run_view import RunView
from clew.checks.runner import ask
from clew.labs.experiments.base import Result
from clew.labs.experiments.network.finite_differences import FiniteDifferences
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of


class Cube(torch.autograd.Function):
    factor = 3.0

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * Cube.factor * ctx.saved_tensors[0] ** 2


class Flip(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return -gradient


class Steps(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.floor(x * 4) / 4

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


class Net(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 1)
        self.kind = kind
        nn.init.zeros_(self.first.bias)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        if self.kind == "cube":
            h = CUBE(h)
        elif self.kind == "flip":
            h = Flip.apply(h)
        elif self.kind == "steps":
            h = Steps.apply(h)
        elif self.kind == "detach":
            h = h + torch.relu(h).detach()
        elif self.kind == "written":
            h = Hidden.doubled(h)
        elif self.kind == "kinks":
            h = torch.relu(h).abs() + F.dropout(h, 0.5)
        out: Tensor = self.last(h)
        return out


class Hidden:
    """Changes what a graph was made of, behind autograd's back."""

    @staticmethod
    def doubled(h: Tensor) -> Tensor:
        out = torch.tanh(h)
        storage = out.untyped_storage()
        flat = torch.tensor([], dtype=out.dtype).set_(storage)
        flat.mul_(3.0)
        return out


CUBE = Cube.apply  # as people write it, before anything could look


def program(kind: str, zeros: bool = False) -> Subject:
    torch.manual_seed(0)
    x = torch.zeros(32, 6) if zeros else torch.randn(32, 6)
    return subject_of(Net(kind), F.mse_loss, (x, torch.randn(32, 1)))


def reason(result: Result) -> str | None:
    fact = Fact("experiment.gradient-mismatch", result.fact().to_json())
    found, why = ask(Check(), RunView(Recorded(fact)))
    assert found == []
    return why


def test_a_wrong_backward_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cube, "factor", 2.0)
    (finding,) = judged(Check(), tried(FiniteDifferences(), program("cube")))
    assert (finding.severity.value, finding.confidence, finding.site.op) == ("error", "certain", "Cube")
    line = linecache.getline(finding.site.file or "", finding.site.line or 0)
    assert "def backward" in line
    assert "first" in finding.evidence[1].text


def test_a_right_backward_passes() -> None:
    result = tried(FiniteDifferences(), program("cube"))
    assert result.data.functions[0].error < 1e-6
    assert judged(Check(), result) == []


@pytest.mark.parametrize(
    ("kind", "says"),
    [("flip", "is the identity"), ("steps", "step function"), ("detach", "detach")],
)
def test_gradients_that_are_meant_to_differ_are_not_judged(kind: str, says: str) -> None:
    result = tried(FiniteDifferences(), program(kind))
    assert result.data.wrong
    assert says in str(reason(result))


def test_values_changed_behind_autograds_back_are_an_error_at_the_parameter() -> None:
    (finding,) = judged(Check(), tried(FiniteDifferences(), program("written")))
    assert (finding.severity.value, finding.confidence) == ("error", "likely")
    assert finding.site.module == "first"


@pytest.mark.parametrize("zeros", [True, False])
def test_kinks_and_dropout_cause_no_alarm(zeros: bool) -> None:
    result = tried(FiniteDifferences(), program("kinks", zeros))
    assert result.data.wrong == ()
    assert reason(result) is None


def test_a_batch_that_is_predicted_almost_perfectly_causes_no_alarm() -> None:
    """Its loss is a difference of logits in the hundreds, and as small as their rounding errors."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    x = 60 * torch.rand(16, 6)
    with torch.no_grad():
        model[2].bias[0] = 30.0 + float(model(x).max() - model(x)[:, 0].min())
    result = tried(FiniteDifferences(), subject_of(model, F.cross_entropy, (x, torch.zeros(16).long())))
    assert result.data.wrong == ()
    assert reason(result) is None


@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_healthy_programs_pass(name: str) -> None:
    result = tried(FiniteDifferences(), HEALTHY[name]())
    assert result.data.compared["wrong"] == result.data.compared["unsure"] == 0
    assert result.data.compared["same"] > 3
    assert reason(result) is None


def test_a_step_under_autocast_is_compared_in_double_precision() -> None:
    torch.manual_seed(0)
    model = Net("cube")

    def step(batch: Any) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return F.mse_loss(model(batch[0]).float(), batch[1])

    data = (torch.randn(32, 6), torch.randn(32, 1))
    result = tried(FiniteDifferences(), subject_of(model, None, data, step=step))
    assert result.data.compared == {"same": 4, "wrong": 0, "unsure": 0}


def test_a_step_that_draws_unseeded_numbers_is_not_judged() -> None:
    model = Net("plain")
    own = torch.Generator()

    def step(batch: Any) -> Tensor:
        return F.mse_loss(model(batch[0]) + torch.randn(1, generator=own), batch[1])

    subject = subject_of(model, None, (torch.randn(32, 6), torch.randn(32, 1)), step=step)
    with pytest.raises(CannotJudge, match="different numbers"):
        tried(FiniteDifferences(), subject)


def test_nothing_is_left_behind() -> None:
    model = Net("cube")
    subject = subject_of(model, F.mse_loss, (torch.randn(32, 6), torch.randn(32, 1)))
    parameters, values = list(model.parameters()), [p.detach().clone() for p in model.parameters()]
    forward, rng = Cube.__dict__["forward"], torch.get_rng_state()
    first = tried(FiniteDifferences(), subject).data
    assert tried(FiniteDifferences(), subject).data == first
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), values, strict=True))
    assert Cube.__dict__["forward"] is forward
    assert torch.equal(torch.get_rng_state(), rng)
    assert torch.get_default_dtype() is torch.float32


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.first(x))
        return checkpoint(lambda h: self.last(h).sin(), hidden, use_reentrant=True)


def test_reentrant_checkpointing_can_be_judged() -> None:
    torch.manual_seed(0)
    model = Checkpointed()
    data = (torch.randn(16, 6), torch.randn(16, 1))
    subject = subject_of(model, F.mse_loss, data, torch.optim.SGD(model.parameters(), 0.1))
    assert judged(Check(), tried(FiniteDifferences(), subject)) == []
