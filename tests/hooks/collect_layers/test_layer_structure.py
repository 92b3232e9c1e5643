"""How layers are connected according to the graph, against models whose structure is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import clew
from clew.store.read.run_reader import open_run


class Net(nn.Module):
    """Layers given by name, and a forward written in the test."""

    def __init__(self, forward: Callable[[Any, Tensor], Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.run = forward
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)


def structure(
    model: nn.Module, folder: Path, shape: tuple[int, ...] = (8, 6), steps: int = 3
) -> dict[str, Any]:
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with clew.attach(run_root=folder, quiet=True) as session:
        for _ in range(steps):
            optimizer.zero_grad()
            output = model(torch.randn(*shape)).flatten(1)
            F.mse_loss(output, torch.zeros_like(output)).backward()
            optimizer.step()
    assert session.probes()
    (fact,) = [f.data for f in open_run(session.path).data.facts if f.kind == "structure"]
    return dict(fact)


def pairs(model: nn.Module, folder: Path, shape: tuple[int, ...] = (8, 6)) -> list[tuple[str, str]]:
    return [(row["first"], row["then"]) for row in structure(model, folder, shape)["pairs"]]


def test_two_layers_with_nothing_between_are_a_pair_with_their_widths(tmp_path: Path) -> None:
    (pair,) = structure(nn.Sequential(nn.Linear(6, 7), nn.Linear(7, 3)), tmp_path)["pairs"]
    assert (pair["first"], pair["then"], pair["widths"], pair["through"]) == ("0", "1", [6, 7, 3], [])


def test_a_function_called_between_them_separates_them(tmp_path: Path) -> None:
    for n, function in enumerate((F.relu, F.gelu, torch.tanh, lambda x: x * (x > 0), lambda x: F.relu_(x))):
        model = Net(lambda m, x, f=function: m.b(f(m.a(x))), a=nn.Linear(6, 7), b=nn.Linear(7, 3))
        assert pairs(model, tmp_path / str(n)) == []


def test_an_activation_in_place_separates_them(tmp_path: Path) -> None:
    assert pairs(nn.Sequential(nn.Linear(6, 7), nn.ReLU(inplace=True), nn.Linear(7, 3)), tmp_path) == []


def test_dropout_reshaping_and_batch_normalisation_do_not_separate(tmp_path: Path) -> None:
    def forward(m: Any, x: Tensor) -> Tensor:
        x = m.drop(m.a(x)).view(2, 4, 7).transpose(0, 1).reshape(8, 7)
        return m.c(F.dropout(m.norm(m.b(x)), 0.2))

    model = Net(forward, a=nn.Linear(6, 7), drop=nn.Dropout(0.1), b=nn.Linear(7, 7), norm=nn.BatchNorm1d(7))
    model.c = nn.Linear(7, 3)
    found = structure(model, tmp_path)
    assert [(p["first"], p["then"], p["through"]) for p in found["pairs"]] == [
        ("a", "b", ["drop"]),
        ("b", "c", ["dropout", "norm"]),
    ]
    assert [(d["path"], d["p"], d["norm"]) for d in found["dropouts"]] == [
        ("drop", 0.1, None),
        ("dropout", 0.2, None),
    ]


def test_an_output_that_is_used_twice_is_no_pair(tmp_path: Path) -> None:
    residual = Net(lambda m, x: (h := m.a(x)) + m.b(h), a=nn.Linear(6, 6), b=nn.Linear(6, 6))
    heads = Net(
        lambda m, x: m.b(h := m.a(x)) + m.c(h), a=nn.Linear(6, 6), b=nn.Linear(6, 2), c=nn.Linear(6, 2)
    )
    assert pairs(residual, tmp_path / "residual") == []
    assert pairs(heads, tmp_path / "heads") == []


def test_a_layer_normalisation_separates(tmp_path: Path) -> None:
    assert pairs(nn.Sequential(nn.Linear(6, 7), nn.LayerNorm(7), nn.Linear(7, 3)), tmp_path) == []


def test_convolutions_tell_their_kernels_and_groups(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3, groups=4), nn.Flatten(), nn.Linear(16, 2))
    found = structure(model, tmp_path, (8, 1, 6, 6))["pairs"]
    assert [(p["kernels"], p["grouped"]) for p in found] == [([[3, 3], [3, 3]], True), ([[3, 3], []], True)]


def test_a_bias_before_a_batch_normalisation_is_seen_and_none_before_a_relu(tmp_path: Path) -> None:
    model = nn.Sequential(
        nn.Linear(6, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Linear(7, 3, bias=False), nn.BatchNorm1d(3)
    )
    assert structure(model, tmp_path)["biases"] == [{"layer": "0", "norm": "1"}]


def test_dropout_before_a_normalisation_and_before_the_loss_is_seen(tmp_path: Path) -> None:
    model = nn.Sequential(
        nn.Linear(6, 7), nn.ReLU(), nn.Dropout(0.3), nn.BatchNorm1d(7), nn.Linear(7, 3), nn.Dropout(0.4)
    )
    found = structure(model, tmp_path)["dropouts"]
    assert [(d["path"], d["norm"], d["loss"]) for d in found] == [("2", "3", False), ("5", None, True)]


def test_an_activation_that_feeds_a_layer_is_told_from_a_gate(tmp_path: Path) -> None:
    feeding = Net(lambda m, x: m.b(torch.sigmoid(m.a(x))), a=nn.Linear(6, 7), b=nn.Linear(7, 3))
    gate = Net(lambda m, x: m.b(x * torch.sigmoid(m.a(x))), a=nn.Linear(6, 6), b=nn.Linear(6, 3))
    assert structure(feeding, tmp_path / "a")["squashing"] == [
        {"op": "sigmoid", "modules": ["a"], "into": "b"}
    ]
    assert structure(gate, tmp_path / "b")["squashing"] == []
    module = structure(nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 3)), tmp_path / "c")
    assert module["squashing"] == [{"op": "tanh", "modules": ["1", "0"], "into": "2"}]


def test_no_graph_is_held_after_the_step(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(6, 7), nn.Dropout(0.5), nn.Linear(7, 3))
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        model(torch.randn(8, 6)).square().mean().backward()
        optimizer.step()
        watcher = session.watcher
        assert watcher is not None
        assert (watcher.structure.flow, watcher.structure._waiting) == (None, [])
