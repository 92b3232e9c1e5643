"""The recorder is replaced at the boundary of a step, and nowhere else."""

import gc
import sys

import pytest
import torch
from torch import nn

import clew
from clew.api.open_run import open_run
from clew.hooks.steps.full_recorder import FullRecorder
from clew.hooks.steps.light_recorder import LightRecorder
from clew.hooks.steps.native_steps import METHODS
from clew.hooks.steps.recorder import SILENT, Recorder
from clew.hooks.steps.sampling_budget import SamplingBudget
from clew.session.activities.first_steps import observe

SAMPLED = 6
STEPS = 20


@pytest.fixture(autouse=True)
def only_the_first_steps_are_sampled(monkeypatch):
    gc.collect()  # a program with an optimizer that never steps, of another test, is looked at differently
    wanted = [*range(SAMPLED), sys.maxsize]
    monkeypatch.setattr(SamplingBudget, "next_wanted", lambda self, step: wanted[min(step, SAMPLED)])


def parts():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def train_step(model, optimizer):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()


def test_sampled_steps_are_the_full_recorders_and_light_steps_the_light_ones(tmp_path):
    model, optimizer = parts()
    seen = []
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        machine = session.watcher.machine
        for _ in range(STEPS):
            optimizer.zero_grad()
            before = machine.recorder
            loss = model(torch.randn(8, 4)).square().mean()
            loss.backward()
            assert machine.recorder is before, "exchanged in the middle of a step"
            optimizer.step()
            seen.append(before)
    assert seen == [machine.full] * SAMPLED + [machine.light] * (STEPS - SAMPLED)
    assert machine.recorder is SILENT


def test_what_clew_runs_itself_is_not_recorded(tmp_path):
    model, optimizer = parts()
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        machine = session.watcher.machine
        for _ in range(STEPS):
            train_step(model, optimizer)
        before = (machine.recorder, machine.thread)
        with machine.unwatched():
            assert machine.recorder is SILENT
            train_step(model, optimizer)
        assert (machine.recorder, machine.thread) == before
        train_step(model, optimizer)
    ((_, steps, _),) = open_run(session.path).data.series("loss")
    assert list(steps) == list(range(STEPS + 1))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_compiling_to_torchscript_inside_looks_away_all_the_same(tmp_path):
    """TorchScript makes the seams come off and back on: also while they look away."""
    model, optimizer = parts()
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        machine = session.watcher.machine
        for _ in range(STEPS):
            train_step(model, optimizer)
        with machine.unwatched():
            torch.jit.trace(model, torch.randn(8, 4))
            assert machine.recorder is SILENT
            train_step(model, optimizer)
        train_step(model, optimizer)
    ((_, steps, _),) = open_run(session.path).data.series("loss")
    assert list(steps) == list(range(STEPS + 1))


def test_a_recorder_that_raises_is_replaced_by_the_full_one_and_that_by_silence(tmp_path):
    model, optimizer = parts()
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        machine = session.watcher.machine
        for _ in range(STEPS):
            train_step(model, optimizer)
        assert machine.recorder is machine.light
        assert machine.failed(machine.light, RuntimeError("planted")) is machine.full
        for _ in range(STEPS):
            train_step(model, optimizer)
        assert machine.recorder is machine.full, "the light recorder is not trusted again"
        assert machine.failed(machine.full, RuntimeError("planted")) is SILENT


@pytest.mark.parametrize("event", ["loss_entered", "loss_called", "loss_raised"])
def test_a_recorder_that_raises_in_a_loss_is_replaced_and_the_loss_is_what_it_was(
    event, tmp_path, monkeypatch
):
    def broken(*_):
        raise RuntimeError("planted")

    model, optimizer = parts()
    inputs, labels = torch.randn(8, 4), torch.randint(0, 1, (8,))
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        machine = session.watcher.machine
        for _ in range(STEPS):
            train_step(model, optimizer)
        assert machine.recorder is machine.light
        monkeypatch.setattr(machine.light, event, broken)
        with torch.no_grad():
            loss = nn.functional.cross_entropy(model(inputs), labels)
            with pytest.raises(ValueError, match="batch_size"):
                nn.functional.cross_entropy(model(inputs), labels[:3])
            assert loss == nn.functional.cross_entropy(model(inputs), labels)
        assert machine.recorder is machine.full
    assert [f.data["probe"] for f in open_run(session.path).data.facts if f.kind == "incident"] == ["light"]


def test_an_observer_leaves_when_it_has_finished_and_others_stay(tmp_path):
    class Counter:
        def __init__(self, wanted):
            self.wanted, self.losses = wanted, 0

        @property
        def finished(self):
            return self.losses >= self.wanted

        def forward(self, *_):
            pass

        loss = forward

        def backward(self, loss, where):
            self.losses += 1

    model, optimizer = parts()
    short, long = Counter(2), Counter(1000)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        watcher = session.watcher
        for counter in (short, long):
            observe(watcher, session.guard, "capture", counter)
        for _ in range(4):
            train_step(model, optimizer)
        assert (short.losses, long.losses) == (2, 4)
        assert len(watcher.observers) == 1


EVENTS = {name for name in vars(Recorder) if not name.startswith("_")}


def test_the_library_stands_in_front_of_events_that_every_recorder_has():
    assert set(METHODS) < EVENTS


@pytest.mark.parametrize("recorder", [FullRecorder, LightRecorder])
def test_every_recorder_handles_every_event(recorder):
    assert vars(recorder).keys() >= EVENTS
