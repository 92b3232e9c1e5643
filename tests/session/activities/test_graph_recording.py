"""`clew run --graph`: what is written is the model's graph, and the program never notices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from program_process import clew_run, run_warm
from torch import nn

from clew.labs.network.network_graph import graph
from clew.session.run_options import RunOptions
from clew.session.session import Session
from clew.store.read.run_reader import open_run

# Those in which a forward that is run again would show: randomness, buffers, hooks, several models.
PROGRAMS = [
    "activation_checkpointing",
    "ema_distillation",
    "gan",
    "lbfgs_closure",
    "masked_transformer",
    "mixed_precision",
    "random_streams",
    "user_hooks",
    "validation",
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_whose_graph_is_recorded_ends_as_without_clew(name: str, tmp_path: Path) -> None:
    ended = run_warm([*clew_run(tmp_path, "--quiet", "--graph"), f"{name}.py"])
    assert ended == run_warm([f"{name}.py"])
    run = open_run(next(tmp_path.iterdir()))
    facts = [fact.data for fact in run.data.facts if fact.kind == "graph_recorded"]
    assert [fact for fact in run.data.facts if fact.kind == "incident"] == []
    assert any(fact["written"] for fact in facts), facts
    for fact in facts:
        if fact["written"]:
            drawn = json.loads((run.path / fact["path"]).read_text())
            assert (drawn["version"], drawn["root"], len(drawn["nodes"])) == (1, fact["root"], fact["nodes"])


def test_a_failure_while_recording_costs_the_graph_and_nothing_else(tmp_path: Path) -> None:
    expected = run_warm(["plain_loop.py"])
    ended = run_warm([*clew_run(tmp_path, "--graph"), "plain_loop.py"], CLEW_FAULT_INJECTION="graph")
    assert (ended.code, ended.out) == (expected.code, expected.out)
    assert "the graph probe failed and is off for this run; training continues" in ended.err


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(8), nn.Linear(8, 8)
        self.calls = 0

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        self.calls += 1
        return x + scale * torch.relu(self.fc(self.norm(x)))


class Net(nn.Module):
    def __init__(self, fails_on_call: int = 0) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self._fails = fails_on_call
        self._count = [0]

    def forward(self, x: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
        self._count[0] += 1
        if self._count[0] == self._fails:
            raise RuntimeError("only once a step, please")
        for block in self.blocks:
            x = block(x, scale)
        return x


def train(model: nn.Module, folder: Path, steps: int = 4) -> tuple[Any, dict[str, Any]]:
    options = RunOptions(script="train.py", root=folder, graph=True, quiet=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with Session(options) as session:
        session.start()
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.ones(3, 8), scale=0.5).sum().backward()
            optimizer.step()
    run = open_run(session.path)
    return run, {f.kind: f.data for f in run.data.facts}


def test_the_graph_is_the_one_that_the_model_has_when_it_is_shown(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Net()
    run, facts = train(model, tmp_path)
    recorded = json.loads((run.path / "traces" / "graph.json").read_text())
    shown = graph(model, [torch.ones(3, 8), {"scale": 0.5}]).to_json()
    assert recorded["root"] == "model"
    assert [(n["label"], n["path"], n["repeat"]) for n in recorded["nodes"]] == [
        (n["label"], n["path"], n["repeat"]) for n in shown["nodes"]
    ]
    assert len(recorded["edges"]) == len(shown["edges"])
    assert next(n["repeat"] for n in recorded["nodes"] if n["path"] == "blocks.0") == 4
    assert facts["graph_recorded"]["written"] is True
    assert [block.calls for block in model.blocks] == [4, 4, 4, 4]


def test_a_forward_that_fails_a_second_time_is_reported_and_training_goes_on(tmp_path: Path) -> None:
    run, facts = train(Net(fails_on_call=2), tmp_path, steps=1)
    assert facts["graph_recorded"]["written"] is False
    assert "only once a step, please" in facts["graph_recorded"]["reason"]
    assert "incident" not in facts
    assert not (run.path / "traces").exists()
    assert run.data.last_step == 0


def test_without_the_option_nothing_is_run_again(tmp_path: Path) -> None:
    model = Net(fails_on_call=5)
    with Session(RunOptions(script="train.py", root=tmp_path, quiet=True)) as session:
        session.start()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(4):
            model(torch.ones(3, 8)).sum().backward()
            optimizer.step()
    assert not (session.path / "traces").exists()
