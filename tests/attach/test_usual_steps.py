"""Steps that the library notes are recorded as those that Python notes, whatever comes between them."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import clew
from clew.attach import plain, usual
from clew.attach.budget import Sampler
from clew.opening import open_run

STEPS = 90
X, Y = torch.linspace(-1, 1, 64 * 6).reshape(64, 6).sin(), torch.arange(64) % 3

needs_the_library = pytest.mark.skipif(
    usual.natives() is None, reason="built without a C compiler: there are no such steps"
)


@pytest.fixture(autouse=True)
def no_optimizers_of_other_tests():
    """A program that has one which never steps is looked at differently."""
    gc.collect()


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05)


def simple(step_hook=lambda step, model, optimizer: None, model=None, optimizer=None):
    model = model or network()
    optimizer = optimizer or sgd(model)
    for step in range(STEPS):
        step_hook(step, model, optimizer)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(X), Y)
        loss.backward()
        optimizer.step()


def with_a_loader():
    model = network()
    optimizer = sgd(model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.9)
    loader = DataLoader(TensorDataset(X, Y), batch_size=24)
    for _ in range(STEPS // 3):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            scheduler.step()
        model.eval()
        with torch.no_grad():
            F.cross_entropy(model(X), Y)
        model.train()


def with_an_evaluation_that_records_gradients():
    def hook(step, model, optimizer):
        if step % 8 == 5:
            model.eval()
            F.cross_entropy(model(X), Y)
            model.train()

    simple(hook)


def with_a_forward_that_fails():
    def hook(step, model, optimizer):
        if step % 9 == 4:
            with pytest.raises(RuntimeError):
                model(X[:, :2])

    simple(hook)


def with_a_backward_that_fails():
    def hook(step, model, optimizer):
        if step % 9 == 4:
            loss = model(X).mean()
            loss.backward()
            with pytest.raises(RuntimeError, match="second time"):
                loss.backward()

    simple(hook)


def with_a_step_that_fails():
    model = network()
    optimizer = sgd(model)

    def refuse(*_):
        raise ArithmeticError

    def hook(step, model, optimizer):
        if step % 11 == 6:
            model(X).mean().backward()
            handle = optimizer.register_step_pre_hook(refuse)
            with pytest.raises(ArithmeticError):
                optimizer.step()
            handle.remove()

    simple(hook, model, optimizer)


def with_another_line_now_and_then():
    model = network()
    optimizer = sgd(model)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(X), Y)
        if step % 10 == 7:
            torch.autograd.backward(loss)
        elif step % 10 == 9:
            (2 * loss).backward()
        else:
            loss.backward()
        optimizer.step()


def with_arguments_of_another_kind():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, x, scale=1.0):
            return self.layer(x) * scale

    model = Net()
    optimizer = sgd(model)
    weight = torch.ones(6, requires_grad=True)
    for step in range(STEPS):
        optimizer.zero_grad()
        x = X * weight if step % 10 == 3 else X[: 8 + step % 4]
        out = model(x, scale=2.0) if step % 10 == 6 else model(x)
        F.cross_entropy(out, Y[: len(out)]).backward()
        optimizer.step()


def with_accumulation_now_and_then():
    model = network()
    optimizer = sgd(model)
    for step in range(STEPS):
        optimizer.zero_grad()
        for _ in range(2 if step % 12 == 5 else 1):
            F.cross_entropy(model(X), Y).backward()
        optimizer.step()


def with_checkpoints():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.head = nn.Sequential(nn.Linear(6, 8), nn.Tanh()), nn.Linear(8, 3)

        def forward(self, x):
            return self.head(checkpoint(self.inner, x, use_reentrant=False))

    simple(model=Net())


def with_an_update_inside_backward():
    model = network()
    optimizer = sgd(model)
    seen = []
    last = model[0].weight

    def update(parameter):
        seen.append(1)
        if len(seen) % 13 == 7:
            optimizer.step()

    handle = last.register_post_accumulate_grad_hook(update)
    simple(model=model, optimizer=optimizer)
    handle.remove()  # or it would keep the optimizer for ever: torch's reference to it is not seen by gc


def with_another_thread():
    def hook(step, model, optimizer):
        if step % 15 == 8:
            thread = threading.Thread(target=lambda: model(X).sum().backward())
            thread.start()
            thread.join()
            optimizer.zero_grad()

    simple(hook)


def with_a_second_model_later():
    first, second = network(), network()
    optimizer = sgd(first)
    other = torch.optim.Adam(second.parameters(), lr=0.01)
    for step in range(STEPS):
        model, used = (second, other) if step > STEPS // 2 else (first, optimizer)
        used.zero_grad()
        F.cross_entropy(model(X), Y).backward()
        used.step()


def with_changing_rates():
    def hook(step, model, optimizer):
        optimizer.param_groups[0]["lr"] = torch.tensor(0.01) if step % 20 == 9 else 0.05 / (1 + step)
        if step == 60:
            optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2))], "lr": 0.1})

    simple(hook)


def with_many_other_events():
    def hook(step, model, optimizer):
        for _ in range(30 if step % 14 == 3 else 2):
            optimizer.zero_grad()

    simple(hook)


class Own(torch.optim.SGD):
    """Torch calls its hooks for this step and, where a plain SGD has been made, for the one inside."""

    @torch.no_grad()
    def step(self, closure=None):
        return super().step(closure)


def with_an_optimizer_of_its_own():
    sgd(network())
    model = network()
    simple(model=model, optimizer=Own(model.parameters(), lr=0.05))


class Slow(torch.optim.Optimizer):
    """Calls another optimizer, of the same parameters."""

    def __init__(self, params):
        params = list(params)
        super().__init__(params, {"lr": 0.5})
        self.fast = torch.optim.SGD(params, lr=0.05)

    @torch.no_grad()
    def step(self, closure=None):
        return self.fast.step(closure)


def with_an_optimizer_inside_another():
    model = network()
    simple(model=model, optimizer=Slow(model.parameters()))


def with_an_optimizer_inside_another_now_and_then():
    model, other = network(), network()
    fast, second = sgd(model), sgd(other)
    handles = []

    def hook(step, model, optimizer):
        if step % 17 == 9:
            other(X).sum().backward()
            handles.append(fast.register_step_pre_hook(lambda *_: second.step()))
        elif handles:
            handles.pop().remove()

    simple(hook, model, fast)


def with_frozen_parts():
    def hook(step, model, optimizer):
        if step == 50:
            model[0].requires_grad_(False)

    simple(hook)


# Steps of programs that have been seen to accumulate gradients, or to have several optimizers.
NEVER_USUAL = (
    with_a_backward_that_fails,
    with_a_step_that_fails,
    with_accumulation_now_and_then,
    with_an_optimizer_inside_another,
    with_an_optimizer_inside_another_now_and_then,
)
PROGRAMS = [value for name, value in list(globals().items()) if name.startswith("with_")] + [simple]


def recorded(program, folder, monkeypatch, by_the_library, wait=3600.0):
    """All that is recorded of a program, but for times; and how many rows came from the library."""
    gc.collect()
    torch.manual_seed(3)
    rows = []
    original = plain.write_usual

    def write(watcher, root, state, line, found):
        rows.append(len(found))
        original(watcher, root, state, line, found)

    with monkeypatch.context() as patch:
        if not by_the_library:
            patch.setattr(usual, "natives", lambda: None)
        patch.setattr(plain, "write_usual", write)
        patch.setattr(plain, "WAIT", wait)
        patch.setattr(plain, "WORTH", 2)
        patch.setattr(plain, "AGAIN", 0.0)
        patch.setattr(Sampler, "next_wanted", lambda self, step: step if step < 6 else -(-step // 20) * 20)
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
    left_out = ("pattern", "parameters", "optimizer_use")  # numbered anew; depend on when it is looked at
    facts = sorted((fact.kind, fact.step) for fact in data.facts if fact.kind not in left_out)
    return series, facts, sum(rows)


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
    assert rows > 10 or wait or program in NEVER_USUAL, "hardly a step was a usual one"


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
            if session._watcher.plain.usual.steps:
                usual_ones += 1
                assert seen() is None
    assert usual_ones > 20


@needs_the_library
def test_what_the_model_was_given_is_known_in_the_middle_of_a_usual_step(tmp_path, monkeypatch):
    model = network()
    optimizer = sgd(model)
    monkeypatch.setattr(Sampler, "next_wanted", lambda self, step: step if step < 6 else sys.maxsize)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        simple(model=model, optimizer=optimizer)
        watcher = session._watcher
        assert watcher.plain.usual.active
        x = X.clone()
        loss = model(x).sum().detach().requires_grad_()  # which the change of its input does not hurt
        x.add_(1)
        watcher.plain.settle()
        assert [(call[0], call[1][0]) for call in watcher.holding.calls] == [(model, x)]
        assert watcher.holding.changed() == [x]
        assert watcher.spoken_of == STEPS
        loss.backward()
        assert watcher.holding.loss == pytest.approx(loss.item())
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
    monkeypatch.setattr(Sampler, "next_wanted", lambda self, step: step if step < 6 else sys.maxsize)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        simple(model=model, optimizer=optimizer)
        watcher = session._watcher
        assert watcher.plain.usual.active
        model.interrupted = True
        with pytest.raises(KeyboardInterrupt):
            model(X)
        model.interrupted = False
        simple(model=model, optimizer=optimizer)
        assert not watcher.plain.inside
        assert not watcher.in_backward
    ((_, steps, _),) = open_run(session.path).data.series("loss")
    assert list(steps) == list(range(2 * STEPS))


@needs_the_library
def test_references_are_counted_as_before(tmp_path):
    """The library borrows and gives back: what it touches at each step must not pile up."""
    model = network()
    optimizer = sgd(model)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        simple(model=model, optimizer=optimizer)
        things = [model, optimizer, X, None, True, False, float, torch.Tensor, session._watcher.holding]
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
