from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import clew
from clew.hooks.collect_loop.parameter_inventory import units_alike
from clew.store.read.run_reader import open_run


def test_constant_rows_are_alike_and_random_ones_are_not() -> None:
    assert units_alike(torch.full((5, 3), 0.1)) is True
    assert units_alike(torch.zeros(4, 2, 3, 3)) is True
    assert units_alike(torch.randn(5, 3)) is False


def test_rounding_does_not_make_units_differ_and_a_percent_does() -> None:
    rows = torch.ones(6, 3)
    rows[3] += 1e-5
    assert units_alike(rows) is True
    rows[3] += 0.01
    assert units_alike(rows) is False


def test_where_there_is_nothing_to_compare_nothing_is_said() -> None:
    assert units_alike(torch.ones(1, 3)) is None
    assert units_alike(torch.ones(3)) is None
    assert units_alike(torch.ones(3, 3, device="meta")) is None


def test_a_head_that_starts_at_zero_parts_in_the_first_steps(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    nn.init.zeros_(model[2].weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        for _ in range(5):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.randn(9, 4)), torch.arange(9) % 3).backward()
            optimizer.step()
    (fact,) = [f.data for f in open_run(session.path).data.facts if f.kind == "parameters"]
    assert {row["name"]: row["alike"] for row in fact["items"] if row["ndim"] == 2} == {
        "0.weight": False,
        "2.weight": False,
    }
