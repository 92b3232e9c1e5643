"""Steps that are only noted are written as others are."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

import clew
from clew.api.open_run import open_run
from clew.hooks.steps import light_recorder
from clew.hooks.steps.sampling_budget import SamplingBudget
from clew.hooks.steps.watcher import Watcher
from clew.store.write.log_writer import LogWriter

STEPS = 80


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.encoder(x))


def train(model: Net, encode_alone: bool = False) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        if encode_alone and step < 3:
            with torch.no_grad():
                model.encoder(torch.randn(8, 4))
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()


def test_a_part_that_also_ran_alone_is_no_forward_of_its_own_inside_the_whole(tmp_path):
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        train(Net(), encode_alone=True)
    run = open_run(session.path)
    patterns = {fact.data["pattern"] for fact in run.data.facts if fact.kind == "pattern"}
    assert patterns, "nothing was recorded"
    assert all(pattern.count("f") == 1 for pattern in patterns), patterns


def test_every_step_has_its_row_in_every_table_and_in_order(tmp_path):
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        train(Net())
    data = open_run(session.path).data
    for signal in ("loss", "grad.norm", "lr", "step.time", "batch.size", "memory.rss"):
        ((_, steps, values),) = data.series(signal)
        assert list(steps) == list(range(STEPS)), signal
        assert len(values) == STEPS
    ((_, _, sizes),) = data.series("batch.size")
    assert set(sizes) == {8.0}


def test_the_parts_of_a_step_add_up_and_steps_follow_one_another(tmp_path):
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        train(Net())
    data = open_run(session.path).data

    def values(signal):
        ((_, _, found),) = data.series(signal)
        return found

    parts = sum(values(f"time.{part}") for part in ("data", "forward", "backward", "optimizer", "clew"))
    total, rest = values("step.time"), values("time.rest")
    assert (values("time.forward") > 0).all()
    assert (values("time.backward") > 0).all()
    assert (rest >= 0).all()
    assert np.allclose(rest, np.maximum(total - parts, 0.0), atol=1e-9)
    assert np.allclose(np.diff(values("wall")), total[1:], atol=1e-9)


def test_what_has_waited_is_written_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(light_recorder, "WAIT", 0.0)
    nudges = []
    monkeypatch.setattr(LogWriter, "nudge", lambda self: nudges.append(1))
    with clew.attach(run_root=tmp_path, quiet=True):
        train(Net())
    assert len(nudges) > STEPS / 4  # of the light steps among them


def test_all_is_counted_soon_after_anything_new_and_ever_more_rarely(tmp_path):
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        watcher = session.watcher
    watcher._inventory_due = 7
    due = [step for step in range(70) if watcher.next_inventory(step) == step]
    assert due == [4, 7, 8, 16, 32, 64]
    assert all(watcher.next_inventory(step) == min(d for d in due if d >= step) for step in range(65))


def test_all_is_counted_also_on_steps_that_are_only_noted(tmp_path, monkeypatch):
    """In one writing that begins with such a step: 16, as the first light one is written alone."""
    monkeypatch.setattr(light_recorder, "WAIT", 3600.0)
    monkeypatch.setattr(SamplingBudget, "next_wanted", lambda self, step: step if step < 15 else sys.maxsize)
    counted = []
    original = Watcher._take_inventory

    def take(self) -> None:
        counted.append(self.clock.step)
        original(self)

    monkeypatch.setattr(Watcher, "_take_inventory", take)
    with clew.attach(run_root=tmp_path, quiet=True):
        train(Net())
    assert counted == [3, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("wait", [0.0, 3600.0])
def test_notes_wait_for_a_given_time_and_no_longer(tmp_path, monkeypatch, wait):
    """A slow step must not wait for many others before it is in the log: the process may be killed."""
    monkeypatch.setattr(light_recorder, "WAIT", wait)
    written = []
    original = light_recorder.LightRecorder.write

    def write(self) -> None:
        written.append(self.steps)
        original(self)

    monkeypatch.setattr(light_recorder.LightRecorder, "write", write)
    with clew.attach(run_root=tmp_path, quiet=True):
        train(Net())
    assert (max(written) <= 1) is (wait == 0.0)


class Two(nn.Module):
    """A model that takes two arguments, beside one that takes one."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x, scale):
        return self.layer(x) * scale


def test_a_backward_ends_what_is_held_of_the_forwards_before_it(tmp_path):
    """Two updates in a step, as of a GAN: what is run again after an alarm is the newer half alone."""
    first, second = Two(), Net()
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.01) for model in (first, second)]
    held = []
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        replay_inputs = session.watcher.replay_inputs
        for _ in range(STEPS):
            first(torch.randn(8, 4), torch.ones(1)).square().mean().backward()
            optimizers[0].step()
            loss = second(torch.randn(8, 4)).square().mean()
            held.append([type(call[0]).__name__ for call in replay_inputs.calls])
            loss.backward()
            optimizers[1].step()
            for optimizer in optimizers:
                optimizer.zero_grad()
    assert held == [["Net"]] * STEPS
