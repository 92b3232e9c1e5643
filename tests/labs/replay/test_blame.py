"""What is to blame for a NaN: what the program computed, what it was given, or what it had from the start."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import clew

BAD = 3  # the step at which these programs go wrong


def recorded(train, tmp_path):
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        train()
    return session, [fact.data for fact in clew.open_run(session.path).data.facts if fact.kind == "culprit"]


def culprit(train, tmp_path):
    _, (found, *_) = recorded(train, tmp_path)
    assert found["found"], found
    return found


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def samples(count=8 * 6, width=4):
    torch.manual_seed(0)
    x = torch.rand(count, width) + 0.1
    x[8 * BAD + 5] = 0.0
    return x


class Unit(nn.Module):
    def forward(self, x):
        return x / x.norm(dim=1, keepdim=True)  # planted


def test_a_frozen_part_without_gradients_is_searched_too(tmp_path):
    def train():
        x, backbone, head = samples(), nn.Sequential(nn.Linear(4, 4, bias=False), Unit()), nn.Linear(4, 1)
        optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
        for batch in x.split(8):
            with torch.no_grad():
                features = backbone(batch)
            update(optimizer, head(features).pow(2).mean())

    session, (found, *_) = recorded(train, tmp_path)
    assert (found["phase"], found["op"], found["samples"]) == ("forward", "div", [5])
    assert "planted" in found["code"]
    assert [f.check for f in session.verdict.findings] == ["non-finite"]


def test_what_the_loop_does_to_a_batch_is_searched_although_it_overwrites_it(tmp_path):
    def train():
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _, (x, y) in enumerate(DataLoader(TensorDataset(samples(), torch.zeros(48)), 8)):
            x = x.float()
            x = x / x.norm(dim=1, keepdim=True)  # planted
            update(optimizer, F.mse_loss(model(x).squeeze(1), y))

    session, (found, *_) = recorded(train, tmp_path)
    assert (found["phase"], found["op"], found["samples"]) == ("forward", "div", [5])
    assert [f.check for f in session.verdict.findings] == ["non-finite"]


def test_what_the_program_computed_and_is_not_run_again_is_not_called_the_batch(tmp_path):
    seen = []

    def scaled(x):
        seen.append(1)  # an effect: it is not run twice
        return x / x.norm(dim=1, keepdim=True)

    def train():
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for x in samples().split(8):
            ready = scaled(x)
            update(optimizer, model(ready).pow(2).mean())

    session, (found, *_) = recorded(train, tmp_path)
    assert not found["found"]
    assert "ready was already non-finite before the replayed part" in found["reason"]
    assert "scaled(x)" in found["reason"]
    (finding,) = session.verdict.findings
    assert finding.check == "non-finite"
    assert "batch" not in finding.message
    assert len(seen) == 6


def test_a_mask_that_the_program_computes_is_harmless_and_the_operation_after_it_is_not(tmp_path):
    def train():
        model = nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step, x in enumerate(samples().split(8)):
            mask = torch.log((torch.arange(4) < 2).float())
            scores = torch.softmax(model(x) + mask, dim=1)
            weight = x.sum(1) if step == BAD else x.sum(1) + 1
            update(optimizer, (scores[:, 0] * 0 / weight).mean())  # planted

    found = culprit(train, tmp_path)
    assert (found["op"], found["samples"]) == ("div", [5])
    assert "planted" in found["code"]


def test_of_two_operations_that_both_spoil_the_loss_the_first_is_named(tmp_path):
    def train():
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for x in samples().split(8):
            far = torch.log(x.sum(1))  # planted
            near = x.sum(1) / x.sum(1)
            update(optimizer, (model(x).squeeze(1) * (near + far)).mean())

    found = culprit(train, tmp_path)
    assert found["op"] == "log"
    assert any("div" in note for note in found["notes"])


class Trainer:
    def __init__(self, where):
        self.where = where
        self.model = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.calls = 0
        self.terms = []
        self.last = None

    def compute_loss(self, x, step):
        self.calls += 1
        size = self.model(x).pow(2) * (0.0 if step == BAD else 1.0)
        term = torch.sqrt(size) if self.where == "gradient" else torch.log(size + 1e-9 * (step != BAD))
        self.last = term.mean()
        self.terms.append(self.last.item())
        return self.last

    def backward(self, loss):
        loss.backward()

    def fit(self, x):
        for step, batch in enumerate(x.split(8)):
            loss = self.compute_loss(batch, step)
            self.optimizer.zero_grad()
            self.backward(loss)
            self.update()

    def update(self):
        self.optimizer.step()


@pytest.mark.parametrize(("where", "op"), [("loss", "log"), ("gradient", "sqrt")])
def test_a_loss_is_followed_to_the_method_that_made_it_and_the_trainer_is_left_as_it_was(tmp_path, where, op):
    torch.manual_seed(0)
    alone = Trainer(where)
    alone.fit(samples())
    torch.manual_seed(0)
    watched = Trainer(where)
    found = culprit(lambda: watched.fit(samples()), tmp_path)
    assert found["op"] == op
    assert f"torch.{op}(size" in found["code"]
    assert watched.calls == alone.calls == 6
    np.testing.assert_equal(watched.terms, alone.terms)
    np.testing.assert_equal(watched.last.item(), alone.last.item())


class Table(nn.Module):
    def __init__(self, frozen):
        super().__init__()
        values = torch.randn(10, 4)
        values[7] = math.nan
        self.table = nn.Embedding.from_pretrained(values, freeze=frozen)
        self.out = nn.Linear(4, 1)

    def forward(self, words):
        return self.out(self.table(words))


@pytest.mark.parametrize(
    ("frozen", "why"), [(True, "no optimizer updates it"), (False, "non-finite before the first step")]
)
def test_a_parameter_that_never_was_finite_is_not_put_down_to_an_update(tmp_path, frozen, why):
    def train():
        model = Table(frozen)
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01)
        for step in range(BAD + 1):
            update(optimizer, model(torch.tensor([0, 7 if step == BAD else 1])).pow(2).mean())

    session, (found, *_) = recorded(train, tmp_path)
    assert (found["phase"], found["op"], found["by_update"]) == ("parameter", "table.weight", False)
    assert why in found["why"]
    (finding,) = [f for f in session.verdict.findings if f.check == "non-finite"]
    assert "learning rate" not in finding.fix
    assert any("self.table(words)" in e.text for e in finding.evidence)


def test_a_variable_that_shares_its_memory_with_a_parameter_is_not_the_batch(tmp_path):
    def train():
        vectors = torch.randn(10, 4)
        vectors[7] = math.nan
        table, out = nn.Embedding.from_pretrained(vectors), nn.Linear(4, 1)
        model = nn.Sequential(table, out)
        optimizer = torch.optim.SGD(out.parameters(), lr=0.01)
        for step in range(BAD + 1):
            update(optimizer, model(torch.tensor([0, 7 if step == BAD else 1])).pow(2).mean())

    assert culprit(train, tmp_path)["phase"] == "parameter"


@pytest.mark.parametrize("next_is_bad", [True, False])
def test_data_that_was_overwritten_since_names_no_sample(tmp_path, next_is_bad):
    session, (found, *_) = recorded(lambda: prefetching(next_is_bad), tmp_path)
    if next_is_bad:
        assert (found["op"], found["samples"], found["elements"]) == ("div", [], [])
        assert not found["reproduced"]
        assert any("buffer was changed in place" in note for note in found["notes"])
        assert session.verdict.findings[0].confidence == "likely"
    else:
        assert "buffer was changed in place" in found["reason"]


class Copying(nn.Module):
    """Else torch itself would complain of what is written to."""

    def forward(self, x):
        return x.clone()


def prefetching(next_is_bad):
    x = samples()
    if next_is_bad:
        x[8 * (BAD + 1) + 2] = 0.0
    model = nn.Sequential(Copying(), nn.Linear(4, 4, bias=False), Unit(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    buffer = x[:8].clone()
    for step in range(5):
        loss = model(buffer).pow(2).mean()
        buffer.copy_(x[8 * (step + 1) : 8 * (step + 2)])
        update(optimizer, loss)


def test_data_that_was_overwritten_is_no_doubt_where_the_loss_comes_out_the_same(tmp_path):
    def train():
        model = nn.Sequential(Copying(), nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step, x in enumerate(samples().split(8)):
            error = model(x) * (0.0 if step == BAD else 1.0)
            loss = torch.sqrt(error.pow(2)).mean()
            x += 0.0  # written to, with what it held
            update(optimizer, loss)

    found = culprit(train, tmp_path)
    assert (found["op"], found["reproduced"]) == ("sqrt", True)
    assert len(found["samples"]) == 8


def test_numbers_from_a_generator_that_is_not_held_are_said_to_be_the_reason(tmp_path):
    class Rarely(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(4, 1)

        def forward(self, x):
            output = self.out(x)
            rare = x[0, 0] > 50 and np.random.rand() < chance[0]
            return torch.log(output * 0) if rare else output

    def train():
        model = Rarely()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(9):
            x = torch.randn(8, 4) + 100 * (step == 8)
            loss = model(x).sum()
            chance[0] = -1.0 if step == 8 else 2.0  # the second time it falls the other way
            update(optimizer, loss)

    chance = [2.0]
    _, (found, *_) = recorded(train, tmp_path)
    assert not found["found"]
    assert "random numbers of numpy were used, whose state was not saved" in found["reason"]


def test_two_networks_that_take_turns_are_no_micro_batches(tmp_path):
    def train():
        one, two = nn.Linear(4, 1), nn.Linear(4, 1)
        first, second = (torch.optim.SGD(m.parameters(), lr=0.01) for m in (one, two))
        for x in samples().split(8):
            update(first, one(x).pow(2).mean())
            update(second, torch.log(x.sum(1) * two(x).squeeze(1).pow(2)).mean())

    assert culprit(train, tmp_path)["micro_batch"] is None


def test_the_evaluations_of_a_closure_are_no_micro_batches(tmp_path):
    def train():
        model, x = nn.Linear(4, 1), samples()
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
        calls = []

        def closure():
            optimizer.zero_grad()
            calls.append(1)
            output = model(x).pow(2).mean()
            loss = torch.log(output * 0) if len(calls) == 3 else output
            loss.backward()
            return loss

        optimizer.step(closure)

    assert culprit(train, tmp_path)["micro_batch"] is None


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x, scale):
        def block(h):
            return torch.sqrt((self.second(h) * scale).pow(2))

        return checkpoint(block, self.first(x), use_reentrant=True)


def test_a_reentrant_checkpoint_is_run_backward_and_leaves_gradients_and_hooks_alone(tmp_path):
    def train():
        torch.manual_seed(0)
        model = Checkpointed()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(lambda p: fired.append(p.shape))
            parameter.register_hook(lambda g: fired.append(g.shape))
        for step, x in enumerate(samples().split(8)):
            optimizer.zero_grad()
            model(x, 0.0 if step == BAD else 1.0).mean().backward()
            before = [p.grad for p in model.parameters()]
            for gradient in before:
                gradient.nan_to_num_() if step != BAD else None
            optimizer.step()
            assert all(p.grad is g for p, g in zip(model.parameters(), before, strict=True))
        results.append(([p.detach().clone() for p in model.parameters()], len(fired)))

    fired, results = [], []
    train()
    fired.clear()
    found = culprit(train, tmp_path)
    assert (found["phase"], found["op"]) == ("backward", "sqrt")
    (weights, count), (expected, others) = results
    assert all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(weights, expected, strict=True))
    assert count == others


def test_the_reason_names_the_line_as_it_is_in_the_file(tmp_path):
    counted = {"calls": 0}

    def noisy(x):
        counted["calls"] += 1  # this line
        return torch.log(x * 0)

    def train():
        model, x = nn.Linear(4, 1), samples()
        update(torch.optim.SGD(model.parameters(), lr=0.01), noisy(model(x)).mean())

    _, (found, *_) = recorded(train, tmp_path)
    with open(__file__, encoding="utf-8") as source:
        line = next(n for n, text in enumerate(source, 1) if "# this line" in text and "counted" in text)
    assert f"line {line} modifies an existing object" in found["reason"]


def test_random_state_of_python_is_as_it_was_after_several_runs_of_the_step(tmp_path):
    def train():
        random.seed(3)
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for x in samples().split(8):
            far, near = torch.log(x.sum(1)), x.sum(1) / x.sum(1)
            loss = (model(x).squeeze(1) * (near + far)).mean()
            if loss == loss:
                update(optimizer, loss)
            else:
                loss.backward()
        state = [value.clone() for value in model.state_dict().values()]
        left.append((state, torch.rand(2).tolist(), random.random()))

    left = []
    train()
    assert culprit(train, tmp_path)["op"] == "log"
    (alone, *draws), (watched, *others) = left
    assert draws == others
    assert all(torch.equal(a, b) for a, b in zip(alone, watched, strict=True))
