"""`with clew.profile():` around a plain loop."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn
from torch.optim import optimizer as optimizer_hooks

import clew


def train(steps: int, seed: int = 0) -> list[float]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.5), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(64, 16), torch.randint(0, 2, (64,))
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return [value for p in model.parameters() for value in p.detach().flatten().tolist()]


def test_a_block_gives_a_profile_and_leaves_the_weights_as_they_would_be() -> None:
    call, hooks = vars(nn.Module)["__call__"], len(optimizer_hooks._global_optimizer_post_hooks)
    expected = train(12)
    with clew.profile(steps=4, quiet=True) as p:
        weights = train(12)
    assert weights == expected
    assert vars(nn.Module)["__call__"] is call
    assert len(optimizer_hooks._global_optimizer_post_hooks) == hooks
    assert p.profile.detailed >= 2
    assert {module.module for module in p.profile.modules} >= {"", "0", "1", "2"}
    assert p.profile.step_median > 0
    assert repr(p) == "<profile of 12 steps>"
    assert "<iframe" in p._repr_html_()


def test_a_block_is_printed_at_its_end_unless_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with clew.profile(python=False) as p:
        train(4)
    said = capsys.readouterr().err
    assert "4 steps" in said
    assert "Linear" in said
    again = io.StringIO()
    p.render(again)
    assert "Linear" in again.getvalue()


def test_a_block_without_steps_is_one_step() -> None:
    model = nn.Linear(8, 8)
    with clew.profile(quiet=True, python=False) as p, torch.no_grad():
        model(torch.ones(4, 8))
    assert p.profile.detailed == 1
    assert "Linear" in [module.type for module in p.profile.modules]


def test_an_exception_in_a_block_goes_through_and_nothing_is_left_behind() -> None:
    call = vars(nn.Module)["__call__"]
    block = clew.profile(quiet=True)

    def fails() -> None:
        with block:
            train(3)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fails()
    assert vars(nn.Module)["__call__"] is call
    assert not torch.autograd._profiler_enabled()
    assert block.profile.detailed >= 1
