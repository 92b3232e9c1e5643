"""Formats of layers' outputs, against what torch reports for the same forward."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import clew
from clew.hooks.collect_layers.activations import Precision


class Facts:
    def __init__(self) -> None:
        self.sent: list[tuple[str, int, dict[str, Any]]] = []

    def fact(self, kind: str, step: int, data: dict[str, Any]) -> None:
        self.sent.append((kind, step, data))


def test_float32_is_not_worth_a_word_and_others_are_said_once() -> None:
    sink = Facts()
    precision = Precision(sink)  # type: ignore[arg-type]
    for step in range(3):
        precision.seen(("model", "a", None), torch.float32)
        precision.seen(("model", "b", "relu"), torch.float16)
        precision.commit(step)
    item = {"root": "model", "module": "b", "op": "relu", "dtype": "float16"}
    assert sink.sent == [("precision", 0, {"items": [item]})]


def test_a_change_back_to_float32_is_reported() -> None:
    sink = Facts()
    precision = Precision(sink)  # type: ignore[arg-type]
    for step, dtype in enumerate((torch.bfloat16, torch.float32, torch.float32)):
        precision.seen(("model", "a", None), dtype)
        precision.commit(step)
    assert [(step, data["items"][0]["dtype"]) for _, step, data in sink.sent] == [
        (0, "bfloat16"),
        (1, "float32"),
    ]


def test_the_layers_of_an_autocast_forward_have_the_formats_that_a_hook_sees(tmp_path: Any) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        for _ in range(3):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = model(torch.randn(8, 4)).float().pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    seen: dict[str, str] = {}
    for name, module in model.named_children():
        module.register_forward_hook(
            lambda _, __, output, name=name: seen.update({name: str(output.dtype).removeprefix("torch.")})
        )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(torch.randn(8, 4))
    facts = [f.data for f in clew.open_run(session.path).data.facts if f.kind == "precision"]
    told = {item["module"]: item["dtype"] for data in facts for item in data["items"]}
    assert told == {name: dtype for name, dtype in seen.items() if dtype != "float32"}
