"""A step that went wrong is replayed: the culprit is named, and training continues unchanged."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import torch
from torch import nn

import clew
from clew.labs.replay import replay_alarm

LATE = 45  # a step between samples


def culprits(train, tmp_path, **options):
    """What a run recorded about culprits."""
    with clew.attach(run_root=tmp_path, quiet=True, **options) as session:
        train()
    return [fact for fact in clew.open_run(session.path).data.facts if fact.kind == "culprit"]


def one(train, tmp_path):
    (fact,) = culprits(train, tmp_path)
    assert fact.data["found"], fact.data
    return fact


def network(*, dropout=0.0):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1))


@pytest.mark.parametrize("bad_step", [0, LATE])
def test_a_loss_written_in_the_loop_is_searched_in_backward_too(tmp_path, bad_step):
    def train():
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(LATE + 2):
            x, y = torch.randn(8, 4), torch.randn(8, 1)
            scale = 0.0 if step == bad_step else 1.0
            error = (model(x) - y) * scale
            loss = torch.sqrt(error.pow(2)).mean()  # planted
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    fact = one(train, tmp_path)
    found = fact.data
    assert fact.step == bad_step
    assert (found["phase"], found["op"], found["reproduced"]) == ("backward", "sqrt", True)
    assert "planted" in found["code"]
    assert found["samples"] == list(range(8))


def cosine_loss(a, b, eps):
    lengths = a.pow(2).sum(1).sqrt() * b.pow(2).sum(1).sqrt()
    return (1 - (a * b).sum(1) / (lengths + eps)).mean()


class Trainer:
    """As people write them: the loss is made in a method, the step in another."""

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        self.losses = []

    def compute_loss(self, batch):
        output = self.model(batch["x"])
        return cosine_loss(output, batch["y"], 0.0)

    def fit(self, batches):
        for batch in batches:
            self.optimizer.zero_grad()
            loss = self.compute_loss(batch)
            loss.backward()
            self.losses.append(loss.item())
            self.optimizer.step()


def test_a_trainer_class_with_its_loss_in_a_function_is_followed(tmp_path):
    batches = [{"x": torch.randn(8, 4), "y": torch.randn(8, 3)} for _ in range(10)]
    batches[6]["y"][2] = 0.0
    fact = one(lambda: Trainer(nn.Linear(4, 3)).fit(batches), tmp_path)
    assert (fact.step, fact.data["op"], fact.data["phase"]) == (6, "div", "forward")
    assert "lengths + eps" in fact.data["code"]
    assert fact.data["samples"] == [2]


def test_of_two_models_the_one_with_the_culprit_is_named(tmp_path):
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(3, 4)

        def forward(self, z):
            return torch.exp(self.out(z) * 1e4)

    def train():
        torch.manual_seed(0)
        encoder, decoder = nn.Linear(4, 3), Decoder()
        both = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
        for _ in range(3):
            x = torch.randn(8, 4)
            loss = (decoder(encoder(x)) - x).pow(2).mean()
            both.zero_grad()
            loss.backward()
            both.step()

    found = one(train, tmp_path).data
    assert (found["op"], found["root"], found["module"]) == ("exp", "decoder", "")


@pytest.mark.parametrize("bad_step", [2, LATE])
def test_of_several_micro_batches_the_bad_one_is_named_although_others_follow(tmp_path, bad_step):
    def train():
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(LATE + 1):
            optimizer.zero_grad()
            for part in range(4):
                scale = 0.0 if (step, part) == (bad_step, 1) else 1.0
                output = model(torch.randn(8, 4)) * scale
                loss = output.pow(2).sum().sqrt()
                (loss / 4).backward()
            optimizer.step()

    fact = one(train, tmp_path)
    found = fact.data
    assert fact.step == bad_step
    assert (found["op"], found["phase"], found["micro_batch"][0]) == ("sqrt", "backward", 2)


def test_a_bad_sample_of_the_batch_is_named_by_its_row_and_feature(tmp_path):
    def train():
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(8):
            images = torch.randn(8, 4)
            if step == 5:
                images[3, 2] = math.nan
            loss = model(images).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    fact = one(train, tmp_path)
    found = fact.data
    assert (fact.step, found["phase"], found["op"], found["samples"]) == (5, "batch", "images", [3])
    assert "images in sample 3, feature 2" in found["why"]


def test_bad_targets_are_named_too(tmp_path):
    def train():
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            x, y = torch.randn(8, 4), torch.randn(8, 1)
            y[5] = math.inf
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    found = one(train, tmp_path).data
    assert (found["phase"], found["op"], found["samples"]) == ("batch", "y", [5])


def test_a_parameter_broken_by_the_last_update_is_the_updates_fault(tmp_path):
    def train():
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), eps=0.0)
        for _ in range(4):
            loss = model(torch.zeros(8, 4)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    fact = one(train, tmp_path)
    assert (fact.step, fact.data["phase"], fact.data["op"]) == (1, "parameter", "0.weight")
    assert "the last update" in fact.data["why"]


@pytest.mark.parametrize("bad_step", [1, LATE])
def test_dropout_falls_as_it_did(tmp_path, bad_step):
    def train():
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        for step in range(LATE + 1):
            hidden = model(torch.randn(8, 4))  # drawn in the same statement
            loss = torch.log(hidden.abs() + (step != bad_step)).mean()
            optimizer.zero_grad()
            loss.backward()
            dropped.append((hidden == 0).sum().item())
            optimizer.step()

    dropped = []
    found = one(train, tmp_path).data
    assert (found["op"], found["reproduced"]) == ("log", True)
    assert found["bad_count"] == dropped[bad_step] > 0


def test_numbers_drawn_from_numpy_and_python_are_drawn_again(tmp_path):
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(4, 1)

        def forward(self, x):
            drawn.append(np.random.rand() + random.random())
            return self.out(x) * drawn[-1]

    def train():
        model = Noisy()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(LATE + 1):
            output = model(torch.randn(8, 4))
            loss = (output if step < LATE else torch.log(output * 0)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    drawn = []
    found = one(train, tmp_path).data
    assert found["op"] == "log"
    assert drawn[LATE] == drawn[LATE + 1]  # the second time is the replay


def test_code_with_effects_of_its_own_is_not_run_again(tmp_path):
    seen = []

    def loss_of(output):
        seen.append(len(seen))
        return torch.log(output * 0).mean()

    def train():
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(2):
            loss = loss_of(model(torch.randn(8, 4)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    facts = culprits(train, tmp_path)
    assert seen == [0, 1]
    assert not facts[0].data["found"]
    assert "finite in the replay" in facts[0].data["reason"]


def test_the_model_alone_is_run_again_where_its_loss_is_not_pure(tmp_path):
    class Overflowing(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(4, 1)

        def forward(self, x):
            return torch.exp(self.out(x).abs() + 100)

    def loss_of(output):
        print(end="")
        return output.mean()

    def train():
        model = Overflowing()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        loss = loss_of(model(torch.randn(8, 4)))
        loss.backward()
        optimizer.step()

    found = one(train, tmp_path).data
    assert (found["op"], found["root"]) == ("exp", "model")
    assert any("only the model was replayed" in note for note in found["notes"])


def test_a_value_that_does_not_come_again_names_nobody(tmp_path):
    calls = []

    class Fickle(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(4, 1)

        def forward(self, x):
            calls.append(1)
            return self.out(x) / (0.0 if len(calls) == 3 else 1.0)

    def train():
        model = Fickle()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            loss = model(torch.randn(8, 4)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    first = culprits(train, tmp_path)[0].data
    assert not first["found"]
    assert "finite" in first["reason"]


class Careful(nn.Module):
    """Everything that a second run could disturb: buffers, attributes, hooks, random numbers, output."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.3)
        self.out = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 1))
        self.register_buffer("seen", torch.zeros(()))
        self.calls = 0
        self.trail = []

    def forward(self, x):
        self.calls += 1
        self.trail.append(float(x.detach().sum()))
        self.seen += 1
        if self.calls == 3:
            print("third call")
        return self.out(self.drop(self.norm(x)) + np.random.rand())


def careful_training():
    """Skips what is not finite, as a careful user does; returns all that training has left behind."""
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)
    model = Careful()
    hooked = []
    model.norm.register_forward_hook(lambda *_: hooked.append(1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(LATE + 8):
        output = model(torch.randn(8, 4))
        loss = torch.sqrt(output.pow(2) * (0.0 if step in (3, LATE) else 1.0)).mean()
        if step == LATE + 3:
            loss = torch.log(loss * 0)
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            parameter.grad.nan_to_num_(0.0, 0.0, 0.0)
        optimizer.step()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    versions = [b._version for b in model.buffers()]
    draws = (torch.rand(3).tolist(), np.random.rand(), random.random())
    return state, versions, draws, model.calls, model.trail, len(hooked)


def test_after_a_replay_training_is_bit_identical_to_one_without(tmp_path, capsys):
    plain = careful_training()
    said = capsys.readouterr().out
    facts = culprits(lambda: watched.append(careful_training()), tmp_path) if (watched := []) == [] else []
    assert facts
    assert facts[0].data["op"] == "log"
    (state, *rest), (expected, *others) = watched[0], plain
    assert rest == others
    assert all(torch.equal(state[name], expected[name]) for name in expected)
    assert capsys.readouterr().out == said


def test_a_step_replayed_before_the_optimizer_leaves_no_trace(tmp_path):
    def train():
        torch.manual_seed(2)
        model = Careful()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(6):
            output = model(torch.randn(8, 4))
            loss = torch.sqrt(output.pow(2) * (0.0 if step == 3 else 1.0)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step == 3:
                break
        left.append(
            (
                [b.clone() for b in model.buffers()],
                [b._version for b in model.buffers()],
                [p.grad.isnan().sum().item() for p in model.parameters()],
                (model.calls, len(model.trail), torch.rand(2).tolist()),
            )
        )

    left = []
    np.random.seed(2)
    train()
    np.random.seed(2)
    fact = one(train, tmp_path)
    assert (fact.step, fact.data["op"]) == (3, "sqrt")
    assert all(torch.equal(a, b) for a, b in zip(left[0][0], left[1][0], strict=True))
    assert left[0][1:] == left[1][1:]


def test_a_replay_that_fails_is_an_incident_and_training_goes_on(tmp_path, monkeypatch):
    def broken(held):
        raise RuntimeError("planted in the replay")

    def train():
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(5):
            loss = torch.log(model(torch.randn(8, 4)) * 0).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done.append(1)

    done = []
    monkeypatch.setattr(replay_alarm, "answer", broken)
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        train()
    data = clew.open_run(session.path).data
    assert len(done) == 5
    assert data.last_step == 4
    (incident,) = [f.data for f in data.facts if f.kind == "incident"]
    assert incident["probe"] == "replay"
    assert [f.check for f in session.verdict.findings] == ["non-finite"]


def test_the_finding_leads_with_the_culprit(tmp_path):
    def train():
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(10):
            output = model(torch.randn(8, 4))
            loss = (torch.log(output * 0) if step == 9 else output).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    with clew.attach(run_root=tmp_path, quiet=True) as session:
        train()
    found = next(f for f in session.verdict.findings if f.check == "non-finite")
    assert "step 9: log is infinite: the logarithm of 0 is -infinity" in found.message
    assert found.site.file == __file__
    assert any("torch.log(output * 0)" in e.text for e in found.evidence)
    assert any("all 8 samples of the batch" in e.text for e in found.evidence)
