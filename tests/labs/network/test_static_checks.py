"""What `clew.summary` says of a network before it is trained; faults that are there, and sound networks."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from networks import Experts, Siamese
from sound_networks import SOUND
from torch import Tensor, nn

import clew
from clew.api.summary import CHECKS
from clew.labs.network.trace.traced_forward import forward
from clew.labs.network.traced_structure import structure_fact
from clew.records.finding import Finding, Severity


class Net(nn.Module):
    """Layers given by name, and a forward written in the test."""

    def __init__(self, forward: Callable[[Any, Tensor], Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.run = forward
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)


class Forgetful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.forgotten = nn.Linear(6, 6)
        self.bare = nn.Parameter(torch.ones(6))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.first(x))


def found(model: nn.Module, *inputs: Any, **options: Any) -> dict[str, Finding]:
    return {f.check: f for f in clew.summary(model, list(inputs), **options).findings}


def text_of(finding: Finding) -> str:
    return linecache.getline(finding.site.file or "", finding.site.line or 0).strip()


def constant(model: nn.Sequential, value: float, *places: int) -> nn.Module:
    for place in places:
        nn.init.constant_(model[place].weight, value)  # type: ignore[arg-type]
    return model


def test_two_layers_without_an_activation_between_them_are_reported() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.1), nn.Linear(8, 4))
    assert "between 0 and 2" in found(model, (3, 6))["no-nonlinearity"].message
    assert "no-nonlinearity" not in found(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)), (3, 6))


def test_a_bias_before_a_batch_normalisation_is_reported_with_the_line_of_its_layer() -> None:
    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3)
            self.norm = nn.BatchNorm2d(8)

        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(self.norm(self.conv(x)))

    finding = found(Normed(), (2, 3, 8, 8))["redundant-bias"]
    assert text_of(finding) == "self.conv = nn.Conv2d(3, 8, 3)"


def test_dropout_before_a_batch_normalisation_is_reported_also_as_a_function() -> None:
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.5), nn.BatchNorm1d(8))
    function = Net(lambda m, x: m.b(F.dropout(F.relu(m.a(x)), 0.5)), a=nn.Linear(6, 8), b=nn.BatchNorm1d(8))
    for model in (module, function):
        finding = found(model, (3, 6))["dropout-misplaced"]
        assert "2.0 times" in finding.message
    assert finding.site.file == __file__


def test_zeros_that_let_nothing_through_are_told_and_zeros_at_the_end_are_not() -> None:
    def net() -> nn.Sequential:
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))

    finding = found(constant(net(), 0.0, 0, 2), (3, 6))["poor-initialisation"]
    assert "none of the input reaches 2" in finding.message
    assert found(constant(net(), 0.0, 4), (3, 6)) == {}
    around = Net(
        lambda m, x: m.c(x + m.b(F.relu(m.a(x)))), a=nn.Linear(6, 8), b=nn.Linear(8, 6), c=nn.Linear(6, 2)
    )
    nn.init.zeros_(around.b.weight)
    assert found(around, (3, 6)) == {}


def test_units_that_start_as_copies_are_reported() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
    assert "the same for every unit" in found(constant(model, 0.1, 0), (3, 6))["poor-initialisation"].message
    assert found(constant(nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.ReLU(), nn.Conv2d(4, 2, 1)), 0.1, 0),
                 (2, 4, 6, 6)) == {}  # fmt: skip


def test_weights_that_make_signals_grow_are_told_from_a_forward_with_values() -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    for layer in (model[0], model[2]):
        nn.init.normal_(layer.weight)  # type: ignore[arg-type]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert "too large" in found(model, (9, 64))["poor-initialisation"].message
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_layer_and_a_bare_parameter_that_nothing_reads_are_reported() -> None:
    finding = found(Forgetful(), (3, 6))["unused-parameter"]
    assert finding.severity is Severity.WARNING
    assert (finding.site.module, text_of(finding)) == ("forgotten", "self.forgotten = nn.Linear(6, 6)")
    assert "Forgetful.bare" in finding.message
    assert found(Siamese(), (3, 6), (3, 6))["unused-parameter"].site.module == "unused"


def test_what_a_network_decides_on_values_is_not_taken_for_unused() -> None:
    """All rows are alike, so one expert of two runs."""
    summary = clew.summary(Experts(), torch.ones(4, 8))
    assert not summary.findings
    assert [n.check for n in summary.not_judged if "values" in n.reason] == ["unused-parameter"]


def test_in_evaluation_mode_nothing_is_called_unused() -> None:
    summary = clew.summary(Forgetful().eval(), (3, 6))
    assert not summary.findings
    assert "only in training" in {n.check: n.reason for n in summary.not_judged}["unused-parameter"]


def test_weights_without_values_are_not_judged() -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
    summary = clew.summary(model, (3, 6))
    assert [(n.check, n.reason) for n in summary.not_judged] == [
        ("poor-initialisation", "the weights have no values")
    ]


def test_a_check_is_left_out_where_asked() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 4))
    assert set(found(model, (3, 6))) == {"no-nonlinearity"}
    assert found(model, (3, 6), ignore=["no-nonlinearity"]) == {}
    assert found(model, (3, 6), ignore=["no-nonlinearity@0"]) == {}
    assert set(found(model, (3, 6), ignore=["no-nonlinearity@1"])) == {"no-nonlinearity"}


def test_findings_are_drawn_beneath_the_table_and_stand_in_the_json() -> None:
    summary = clew.summary(nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 4)), (3, 6))
    assert "no-nonlinearity  warning" in str(summary)
    assert "fix: add nn.ReLU() between them" in str(summary)
    (finding,) = summary.to_json()["findings"]
    assert finding == summary.findings[0].to_json()
    assert summary.to_json()["not_judged"] == []


def test_a_forward_that_fails_is_not_judged() -> None:
    summary = clew.summary(nn.Sequential(nn.Linear(6, 8), nn.Linear(7, 4)), (3, 6), keep_going=True)
    assert not summary.findings
    assert {n.check for n in summary.not_judged} == {check.name for check in CHECKS}


@pytest.mark.parametrize("name", SOUND)
def test_sound_networks_are_not_blamed(name: str) -> None:
    torch.manual_seed(0)
    make, inputs = SOUND[name]
    findings = clew.summary(make(), inputs).findings
    assert [(f.check, f.message) for f in findings if f.severity is not Severity.ADVICE] == []
    assert {f.check for f in findings} <= {"unused-parameter"}  # what is used elsewhere is mentioned
    assert bool(findings) == (name in ("gan", "masked"))


ALIKE: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "pair": (lambda: nn.Sequential(nn.Linear(6, 7), nn.Linear(7, 3)), (8, 6)),
    "activation": (lambda: nn.Sequential(nn.Linear(6, 7), nn.ReLU(inplace=True), nn.Linear(7, 3)), (8, 6)),
    "function": (
        lambda: Net(lambda m, x: m.b(F.relu_(m.a(x))), a=nn.Linear(6, 7), b=nn.Linear(7, 3)),
        (8, 6),
    ),
    "dropout": (
        lambda: nn.Sequential(nn.Linear(6, 7), nn.Dropout(0.3), nn.BatchNorm1d(7), nn.Linear(7, 3)),
        (8, 6),
    ),
    "called dropout": (
        lambda: Net(
            lambda m, x: m.c(F.dropout(m.n(m.a(x)), 0.2).view(4, 2, 7).transpose(0, 1).reshape(8, 7)),
            a=nn.Linear(6, 7),
            n=nn.BatchNorm1d(7),
            c=nn.Linear(7, 3),
        ),
        (8, 6),
    ),
    "residual": (
        lambda: Net(lambda m, x: (h := m.a(x)) + m.b(h), a=nn.Linear(6, 6), b=nn.Linear(6, 6)),
        (8, 6),
    ),
    "convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3, groups=4), nn.Flatten(), nn.Linear(16, 2)
        ),
        (8, 1, 6, 6),
    ),
    "blocks": (
        lambda: nn.Sequential(
            *(nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6), nn.Tanh()) for _ in range(3))
        ),
        (8, 6),
    ),
    "squashing": (
        lambda: Net(lambda m, x: m.b(torch.sigmoid(m.a(x))), a=nn.Linear(6, 7), b=nn.Linear(7, 3)),
        (8, 6),
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_a_traced_forward_tells_the_same_structure_as_a_run(name: str, tmp_path: Path) -> None:
    from clew.store.read.run_reader import open_run

    make, shape = ALIKE[name]
    model = make()
    traced = structure_fact(forward(model, (torch.randn(*shape),), {}), "model")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(*shape)).square().mean().backward()
            optimizer.step()
    (fact,) = [f.data for f in open_run(session.path).data.facts if f.kind == "structure"]
    assert {**fact, "root": "model"} == traced.to_json()
