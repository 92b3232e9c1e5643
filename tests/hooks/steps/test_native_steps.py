"""Steps that the library notes are recorded as those that Python notes, whatever comes between them."""

import gc
import re
import sys
import weakref
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
import torch
from light_step_programs import (
    NEVER_USUAL,
    PROGRAMS,
    STEPS,
    X,
    network,
    sgd,
    simple,
    with_a_loader,
    with_an_optimizer_of_its_own,
)
from torch import nn

import clew
from clew.api.open_run import open_run
from clew.hooks.entry.guard import Guard
from clew.hooks.steps import light_recorder, native_steps
from clew.hooks.steps.native_steps import NativeSteps
from clew.hooks.steps.sampling_budget import SamplingBudget
from clew.hooks.steps.step_clock import OF_CLOCK, STEP_SIGNALS, Pattern, StepClock, StepColumn
from clew.measure import kernel
from clew.measure.deferred_values import Late

needs_the_library = pytest.mark.skipif(
    native_steps.natives() is None, reason="built without a C compiler: there are no such steps"
)


@pytest.fixture(autouse=True)
def no_optimizers_of_other_tests():
    """A program that has one which never steps is looked at differently."""
    gc.collect()


def sample_only_the_first_steps(monkeypatch):
    monkeypatch.setattr(SamplingBudget, "next_wanted", lambda self, step: step if step < 6 else sys.maxsize)


def recorded(program, folder, monkeypatch, by_the_library, wait=3600.0):
    """All that is recorded of a program, but for times; and how many rows came from the library."""
    gc.collect()
    torch.manual_seed(3)
    rows = []
    original = light_recorder.write_rows

    def write(watcher, root, state, line, found):
        rows.append(len(found))
        original(watcher, root, state, line, found)

    with monkeypatch.context() as patch:
        if not by_the_library:
            patch.setattr(native_steps, "natives", lambda: None)
        patch.setattr(light_recorder, "write_rows", write)
        patch.setattr(light_recorder, "WAIT", wait)
        patch.setattr(light_recorder, "WORTH", 2)
        patch.setattr(light_recorder, "AGAIN", 0.0)
        patch.setattr(
            SamplingBudget, "next_wanted", lambda self, step: step if step < 6 else -(-step // 20) * 20
        )
        with clew.attach(run_root=folder, quiet=True) as session:
            program()
    data = open_run(session.path).data
    assert not [event for event in data.events if event.kind == "incident"]
    patterns = {fact.data["id"]: fact.data["pattern"] for fact in data.facts if fact.kind == "pattern"}
    series = {}
    for name in data.signal_names():
        for site, steps, values in data.series(name):
            if name == "sample.sliced":  # depends on where memory happens to lie
                continue
            if name == "events.pattern":
                values = [patterns[value] for value in values]
            elif name.startswith(("time.", "memory.")) or name in ("wall", "step.time"):
                values = (np.asarray(values) >= 0).tolist()
            else:
                values = list(values)
            series[name, site] = (list(steps), values)
    # Numbered anew; depend on when it is looked at; and git answers too late where the processors are busy.
    left_out = ("pattern", "parameters", "optimizer_use", "git")
    facts = sorted((fact.kind, fact.step) for fact in data.facts if fact.kind not in left_out)
    return series, facts, sum(rows)


def test_the_columns_of_a_step_are_the_same_in_python_and_in_c():
    source = (Path(kernel.__file__).parent / "steps.c").read_text()
    (listed,) = re.findall(r"^enum \{ (NOW,.*) \};", source, re.MULTILINE)
    assert listed.split(", ") == [*StepColumn.__members__, "COLUMNS"]
    assert [column.value for column in StepColumn] == list(range(len(StepColumn)))


def test_a_steps_row_has_a_column_for_each_of_its_signals():
    written = []

    class Log:
        def site(self, site):
            return 0

        def table(self, names, sites, dtype="f8"):
            return names

        def rows(self, table, steps, values):
            written.append((table, values))

    clock = StepClock(Log(), Pattern(lambda *_: None), Guard(lambda *_: None), Late())
    noted = {column: 2.0**-column for column in StepColumn if column < OF_CLOCK}
    noted[StepColumn.NOW] = perf_counter() + 100.0
    clock.write(0, list(noted.values()), 7.0)
    ((table, values),) = written
    assert table == STEP_SIGNALS
    row = dict(zip(table, values[0].tolist(), strict=True))
    times = ("data", "forward", "backward", "optimizer")
    assert [row[f"time.{name}"] for name in times] == [2.0**-k for k in (2, 3, 4, 5)]
    assert (row["time.clew"], row["batch.size"], row["events.pattern"]) == (2.0**-1, 2.0**-6, 2.0**-7)
    assert row["memory.rss"] == 7.0
    assert row["step.time"] == pytest.approx(row["wall"])
    assert row["time.rest"] == pytest.approx(row["step.time"] - sum(2.0**-k for k in range(1, 6)))


@needs_the_library
@pytest.mark.parametrize("wait", [3600.0, 0.0])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_is_recorded_does_not_depend_on_who_notes_it(program, wait, tmp_path, monkeypatch):
    ours, our_facts, rows = recorded(program, tmp_path / "c", monkeypatch, True, wait)
    pythons, facts, none = recorded(program, tmp_path / "python", monkeypatch, False)
    assert none == 0
    assert ours.keys() == pythons.keys()
    for key, found in pythons.items():
        assert repr(ours[key]) == repr(found), key  # as text: NaN is NaN
    assert our_facts == facts
    assert rows > 10 or wait or program in NEVER_USUAL, "hardly a step was noted by the library"


@needs_the_library
@pytest.mark.parametrize(("program", "share"), [(simple, 0.7), (with_a_loader, 0.1)])  # epochs of three steps
def test_usual_steps_of_a_usual_program_are_noted_by_the_library(program, share, tmp_path, monkeypatch):
    _, _, rows = recorded(program, tmp_path, monkeypatch, True)
    assert rows >= share * STEPS


@pytest.mark.parametrize("by_the_library", [True, False])
def test_a_step_that_calls_the_one_of_its_class_is_one_step(tmp_path, monkeypatch, by_the_library):
    series, _, _ = recorded(with_an_optimizer_of_its_own, tmp_path, monkeypatch, by_the_library)
    for (name, _), (steps, _) in series.items():
        if name in ("loss", "grad.norm", "step.time"):
            assert steps == list(range(STEPS))


@needs_the_library
def test_no_batch_is_held_beyond_its_step(tmp_path):
    model = network()
    optimizer = sgd(model)
    usual_ones = 0
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        for _ in range(STEPS):
            x = X + 0.0
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            seen = weakref.ref(x)
            del x
            if session.watcher.machine.light.native.steps:
                usual_ones += 1
                assert seen() is None
    assert usual_ones > 20


@needs_the_library
def test_what_the_model_was_given_is_known_in_the_middle_of_a_usual_step(tmp_path, monkeypatch):
    model = network()
    optimizer = sgd(model)
    sample_only_the_first_steps(monkeypatch)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        simple(model=model, optimizer=optimizer)
        watcher = session.watcher
        assert watcher.machine.light.native.active
        x = X.clone()
        loss = model(x).sum().detach().requires_grad_()  # which the change of its input does not hurt
        x.add_(1)
        watcher.machine.light.settle()
        assert [(call[0], call[1][0]) for call in watcher.replay_inputs.calls] == [(model, x)]
        assert watcher.replay_inputs.changed() == [x]
        assert watcher.reported_step == STEPS
        loss.backward()
        assert watcher.replay_inputs.loss == pytest.approx(loss.item())
        optimizer.step()
    assert session.step == STEPS + 1


@needs_the_library
def test_an_interrupt_inside_a_usual_step_leaves_nothing_behind(tmp_path, monkeypatch):
    class Net(nn.Module):
        interrupted = False

        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, x):
            if self.interrupted:
                raise KeyboardInterrupt
            return self.layer(x)

    model = Net()
    optimizer = sgd(model)
    sample_only_the_first_steps(monkeypatch)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        simple(model=model, optimizer=optimizer)
        watcher = session.watcher
        assert watcher.machine.light.native.active
        model.interrupted = True
        with pytest.raises(KeyboardInterrupt):
            model(X)
        model.interrupted = False
        simple(model=model, optimizer=optimizer)
        assert not watcher.machine.light._inside
        assert not watcher.machine.in_backward
    ((_, steps, _),) = open_run(session.path).data.series("loss")
    assert list(steps) == list(range(2 * STEPS))


@needs_the_library
def test_references_are_counted_as_before(tmp_path):
    """The library borrows and gives back: what it touches at each step must not pile up."""
    model = network()
    optimizer = sgd(model)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        simple(model=model, optimizer=optimizer)
        things = [model, optimizer, X, None, True, False, float, torch.Tensor, session.watcher.replay_inputs]
        things += [optimizer.param_groups, simple.__code__, torch.Tensor.backward.__code__]
        before = [sys.getrefcount(thing) for thing in things]
        for _ in range(10):
            simple(model=model, optimizer=optimizer)
        after = [sys.getrefcount(thing) for thing in things]
    for thing, old, new in zip(things, before, after, strict=True):
        assert new - old < STEPS, thing


@needs_the_library
def test_a_loss_that_is_no_number_is_traced_out_of_a_usual_step(tmp_path):
    model = network()

    def hook(step, model, optimizer):
        if step == 70:
            with torch.no_grad():
                model[0].bias[0] = float("nan")

    with clew.attach(run_root=tmp_path, quiet=True) as session:
        simple(hook, model)
    (finding,) = [f for f in session.verdict.findings if f.check == "non-finite"]
    assert finding.step == 70
    assert "0.bias" in finding.message


@needs_the_library
def test_the_library_writes_no_row_that_it_has_no_room_for(tmp_path, monkeypatch):
    begin, room, untouched = NativeSteps.begin, 3, -7.0

    def begun(self, *given):
        begin(self, *given)
        self._rows[:] = untouched
        self._steps.most, self._steps.room = 10**6, room  # nobody asks for the rows in time

    monkeypatch.setattr(NativeSteps, "begin", begun)
    sample_only_the_first_steps(monkeypatch)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        simple()
        rows = session.watcher.machine.light.native._rows
        assert (rows[:room] != untouched).all()
        assert (rows[room:] == untouched).all()
    for name in ("loss", "grad.norm", "step.time"):
        ((_, steps, _),) = open_run(session.path).data.series(name)
        assert list(steps) == list(range(STEPS))
