"""Every backward is booked to its own line, also on steps that are only noted."""

import pytest
import torch
from torch import nn

import clew
from clew.api.open_run import open_run

STEPS = 80


def by_method(loss, other) -> None:
    loss.backward()
    other.backward()


def by_function(loss, other) -> None:
    torch.autograd.backward(loss)
    torch.autograd.backward(other)


@pytest.mark.parametrize("backward", [by_method, by_function])
def test_two_backwards_in_one_function_are_two_lines(tmp_path, backward):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with clew.attach(model, optimizer, run_root=tmp_path, quiet=True) as session:
        for _ in range(STEPS):
            optimizer.zero_grad()
            out = model(torch.randn(8, 4))
            backward(out.square().mean(), model(torch.randn(8, 4)).abs().mean())
            optimizer.step()
    series = {site.line: len(steps) for site, steps, _ in open_run(session.path).data.series("loss")}
    first = backward.__code__.co_firstlineno
    assert series == {first + 1: STEPS, first + 2: STEPS}
