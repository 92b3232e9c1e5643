"""What is held of a running step: enough to run it again, and nothing that would keep memory alive."""

from __future__ import annotations

import gc
import random
import weakref

import numpy as np
import torch
from torch import nn

import clew
from clew.hooks.steps.replay_inputs import DERIVED, LEARNING, MOST_CALLS, ReplayInputs

MODEL = nn.Linear(2, 2)


def learned(draw) -> ReplayInputs:
    """The inputs kept after the first steps of a program that draws random numbers so."""
    inputs = ReplayInputs()
    for _ in range(LEARNING):
        inputs.before_forward()
        draw()
        inputs.after_forward(MODEL, (), {})
        inputs.before_backward()
        inputs.backward(1.0, (None, None))
        inputs.clear()
    inputs.forward(MODEL, (), {})
    return inputs


def test_only_generators_that_steps_draw_from_are_held():
    assert [state is not None for state in learned(lambda: None).rng] == [False, False, False]
    assert [state is not None for state in learned(lambda: torch.rand(1)).rng] == [True, False, False]
    assert [state is not None for state in learned(np.random.rand).rng] == [False, True, False]
    assert [state is not None for state in learned(random.random).rng] == [False, False, True]


def test_a_new_forward_after_a_backward_starts_anew_and_the_backwards_are_counted():
    inputs = ReplayInputs()
    for number in (1, 2):
        inputs.forward(MODEL, (number,), {})
        inputs.backward(0.5, ("train.py", number))
    assert [args for _, args, _ in inputs.calls] == [(2,)]
    assert (inputs.backwards, inputs.accumulates, inputs.line) == (2, True, ("train.py", 2))
    inputs.clear()
    assert (inputs.calls, inputs.backwards) == ([], 0)


def test_the_only_call_of_a_plain_step_is_one_like_others():
    inputs = ReplayInputs()
    x, y = torch.ones(2, 2), torch.zeros(2, 2)
    inputs.first = (MODEL, (x,), x._version)
    inputs.forward(MODEL, (y,), {})
    x.add_(1.0)
    assert [id(args[0]) for _, args, _ in inputs.calls] == [id(x), id(y)]
    assert [tensor is x for tensor in inputs.changed()] == [True]
    inputs.clear()
    inputs.first = (MODEL, (x,), x._version)
    inputs.clear()
    assert inputs.calls == []
    inputs.first = (MODEL, (x,), x._version)
    inputs.backward(0.5, ("train.py", 1))
    inputs.forward(MODEL, (y,), {})
    assert [args[0] is y for _, args, _ in inputs.calls] == [True]


def test_of_an_evaluation_nothing_is_held():
    inputs = ReplayInputs()
    for _ in range(MOST_CALLS + 3):
        inputs.forward(MODEL, (torch.ones(2, 2),), {})
    assert inputs.calls == []


def test_an_argument_with_a_graph_is_not_held():
    inputs = ReplayInputs()
    x, hidden = torch.ones(2, 2), MODEL(torch.ones(2, 2))
    reference = weakref.ref(hidden)
    inputs.forward(MODEL, (x, hidden), {"state": (x, hidden)})
    assert inputs.calls == [(MODEL, (x, DERIVED), {"state": DERIVED})]
    del hidden
    gc.collect()
    assert reference() is None


def test_a_model_called_more_often_than_is_held_is_still_named(tmp_path):
    def train():
        torch.manual_seed(0)
        cell = nn.RNNCell(3, 3)
        optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
        for _ in range(2):
            x = torch.randn(9, 4, 3)
            h = torch.zeros(4, 3)
            for t in range(9):
                h = cell(x[t], h)
                h = h * (1e20 if t == 6 else 1.0)  # planted
                h = h * (1e20 if t == 6 else 1.0)
            loss = h.pow(2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    with clew.attach(run_root=tmp_path, quiet=True) as session:
        train()
    (found,) = [f.data for f in clew.open_run(session.path).data.facts if f.kind == "culprit"]
    assert (found["op"], found["call"]) == ("mul", [7, 9])
