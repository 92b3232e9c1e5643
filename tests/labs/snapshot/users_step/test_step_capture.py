"""From a running program to a subject: how the loss is recomputed, what is data, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from clew.hooks.entry.guard import Guard
from clew.hooks.seams.torch_hooks import Seams
from clew.hooks.steps.watcher import Watcher
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.step_capture import Capture

X = torch.randn(48, 6, generator=torch.Generator().manual_seed(1))
Y = torch.arange(48) % 3


class Nowhere:
    """A sink that keeps nothing."""

    def site(self, site):
        return 0

    def table(self, signals, sites, dtype="f8"):
        return 0

    def row(self, table, step, values):
        pass

    rows = row

    def fact(self, kind, step, data):
        pass

    event = fact


def captured(program, batches: int = 3) -> Subject:
    """Run a program and give what was captured of it."""
    failures = []
    guard = Guard(lambda probe, error: failures.append((probe, repr(error))))
    watcher = Watcher(Nowhere(), guard)
    capture = Capture(watcher, batches)
    watcher.observers.append(capture)
    watcher.sampler.always(range(100))
    seams = Seams(watcher, guard)
    seams.install()
    try:
        program()
    finally:
        seams.remove()
    assert failures == []
    return capture.subject()


def again(subject: Subject, number: int = 0) -> float:
    with subject.snapshot() as snapshot:
        return float(snapshot.loss(subject.batches[number]).detach())


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def loader(**options) -> DataLoader:
    return DataLoader(TensorDataset(X, Y), batch_size=12, **options)


def by_name(subject: Subject) -> dict[str, str]:
    return dict(zip(subject.batches[0].values, subject.batches[0].roles, strict=True))


def test_a_plain_loop_gives_models_optimizer_loader_batches_and_the_losses_that_it_had():
    model, feed = net(), loader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = {name: p.detach().clone() for name, p in model.named_parameters()}

    def program():
        for x, y in feed:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()

    subject = captured(program)
    assert subject.models == {"model": model}
    assert subject.optimizers == [optimizer]
    assert (subject.loader, subject.dataset, subject.clip) == (feed, feed.dataset, 0.5)
    assert by_name(subject) == {"x": "input", "y": "target"}
    assert [b.size for b in subject.batches] == [12, 12, 12]
    assert [b.dims for b in subject.batches] == [(0, 0)] * 3
    assert torch.equal(subject.batches[1].values["x"], X[12:24])
    with subject.snapshot():
        assert all(torch.equal(p, first[name]) for name, p in model.named_parameters())
    assert again(subject) == subject.losses[0]
    assert not all(torch.equal(p, first[name]) for name, p in model.named_parameters())


def test_a_slice_of_the_whole_data_is_a_batch():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program():
        for i in range(0, 48, 12):
            loss = F.cross_entropy(model(X[i : i + 12]), Y[i : i + 12])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    subject = captured(program)
    tensors = [t.shape[0] for t in subject.batches[0].tensors()]
    assert (tensors, subject.batches[0].size) == ([12, 12], 12)
    assert torch.equal(subject.batches[2].inputs[0], X[24:36])
    assert subject.reasons["loader"] == "the data does not come from a torch DataLoader"


class Trainer:
    """Keeps its batch, and logs."""

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        self.history = []

    def compute(self, batch):
        x, y = batch
        output = self.model(x)
        loss = F.cross_entropy(output, y)
        self.history.append(loss.item())
        return loss

    def optimise(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def fit(self, feed):
        for batch in feed:
            loss = self.compute(batch)
            self.optimise(loss)

    def fit_kept(self, feed):
        for self.x, self.y in feed:
            loss = F.cross_entropy(self.model(self.x), self.y)
            self.optimise(loss)


def test_a_step_spread_over_methods_that_log_is_found():
    trainer = Trainer(net())
    subject = captured(lambda: trainer.fit(loader()))
    assert by_name(subject) == {"x": "input", "y": "target"}
    assert again(subject) == subject.losses[0]
    assert "history" not in subject.source
    assert len(trainer.history) == 4  # running it again logged nothing


def test_a_batch_kept_in_attributes_is_found():
    subject = captured(lambda: Trainer(net()).fit_kept(loader()))
    assert by_name(subject) == {"self.x": "input", "self.y": "target"}
    assert again(subject) == subject.losses[0]
    assert torch.equal(subject.batches[1].values["self.x"], X[12:24])


class Framework:
    """Calls the user's step and does the backward itself, far away, as Lightning does."""

    def __init__(self, module):
        self.module = module
        self.optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    def closure(self, batch, number):
        result = {"loss": self.module.training_step(batch, number)}
        self.optimizer.zero_grad()
        scaled = result["loss"] / 1
        self.call(scaled)

    def call(self, tensor):
        tensor.backward()

    def fit(self, feed):
        for number, batch in enumerate(feed):
            self.closure(batch, number)
            self.optimizer.step()


class Lit(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 3))
        self.logged = []

    def forward(self, x):
        return self.layers(x)

    def log(self, name, value):
        self.logged.append((name, value.item()))

    def training_step(self, batch, batch_idx):
        x, y = batch
        scores = self(x)
        loss = F.cross_entropy(scores, y)
        self.log("train_loss", loss)
        return loss


def test_a_training_step_that_has_returned_before_a_framework_calls_backward_is_found():
    module = Lit()
    subject = captured(lambda: Framework(module).fit(loader()))
    assert by_name(subject) == {"x": "input", "y": "target"}
    assert len(module.logged) == 4
    module.eval()
    assert again(subject) == pytest.approx(again(subject))


def test_a_closure_on_all_data_is_one_batch():
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)

    def program():
        x, y = X.clone(), Y.clone()
        for _ in range(3):

            def closure():
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss

            optimizer.step(closure)

    subject = captured(program)
    assert len(subject.batches) == 1
    assert by_name(subject) == {"x": "input", "y": "target"}


def test_micro_batches_are_batches():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program():
        for number, (x, y) in enumerate(loader()):
            loss = F.cross_entropy(model(x), y) / 2
            loss.backward()
            if number % 2:
                optimizer.step()
                optimizer.zero_grad()

    subject = captured(program)
    assert len(subject.batches) == 3
    assert again(subject) == subject.losses[0]


def test_casts_and_views_between_batch_and_loss_do_not_hide_a_target():
    model = nn.Sequential(nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program():
        for x, y in loader():
            scores = model(x.double().float())
            loss = F.binary_cross_entropy_with_logits(scores, (y > 0).float().unsqueeze(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    assert by_name(captured(program)) == {"x": "input", "y": "target"}


def test_arrays_and_objects_that_carry_a_batch_are_data():
    @dataclass
    class Sample:
        features: torch.Tensor
        labels: torch.Tensor

    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    arrays = X.numpy()

    def program():
        for i in range(0, 48, 12):
            given = arrays[i : i + 12]
            batch = Sample(X[i : i + 12], Y[i : i + 12])
            loss = F.cross_entropy(model(torch.from_numpy(given)), batch.labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    subject = captured(program)
    assert by_name(subject) == {"batch.labels": "target", "given": "input"}
    assert again(subject) == subject.losses[0]
    assert isinstance(arrays, np.ndarray)


def test_time_first_data_is_cut_along_its_second_dimension():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.rnn, self.out = nn.GRU(4, 8), nn.Linear(8, 3)

        def forward(self, x):
            return self.out(self.rnn(x)[0])

    model = Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    words, tags = torch.randn(24, 7, 4), torch.randint(0, 3, (24, 7))

    def together(items):
        return torch.stack([x for x, _ in items], 1), torch.stack([y for _, y in items], 1)

    def program():
        for x, y in DataLoader(TensorDataset(words, tags), batch_size=8, collate_fn=together):
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    subject = captured(program)
    batch = subject.batches[0]
    assert (batch.dims, batch.size) == ((1, 1), 8)
    assert [tuple(t.shape) for t in batch.rows([0, 3]).tensors()] == [(7, 2, 4), (7, 2)]


def test_class_weights_are_not_samples_even_if_there_are_as_many():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weight = torch.ones(3)

    def program():
        for i in range(0, 12, 3):
            x, y = X[i : i + 3], Y[i : i + 3]
            loss = F.cross_entropy(model(x), y, weight=weight)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    batch = captured(program).batches[0]
    assert dict(zip(batch.values, batch.dims, strict=True)) == {"weight": None, "x": 0, "y": 0}


def test_losses_trained_in_turn_are_refused():
    one, two = net(), net()
    first = torch.optim.SGD(one.parameters(), lr=0.1)
    second = torch.optim.SGD(two.parameters(), lr=0.1)

    def program():
        for x, y in loader():
            F.cross_entropy(one(x), y).backward()
            first.step()
            F.cross_entropy(two(x), y).backward()
            second.step()

    subject = captured(program)
    assert subject.step is None
    assert subject.reasons["step"].startswith("two losses alternate (line ")
    assert list(subject.models) == ["one", "two"]
    assert subject.optimizers == [first, second]


def test_a_loss_that_comes_out_different_the_second_time_is_refused():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    class Counting(nn.Module):
        calls = 0

        def forward(self, scores, y):
            Counting.calls += 1
            return F.cross_entropy(scores, y) * Counting.calls

    criterion = Counting()

    def program():
        for x, y in loader():
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    subject = captured(program)
    assert subject.step is None
    assert "run again, it gives" in subject.reasons["step"]
    assert "clew.examine" in subject.hints["step"]
    assert [b.size for b in subject.batches] == [12, 12, 12]  # the data is known all the same


def test_data_is_known_where_the_loss_can_not_be_made_again():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []

    def program():
        for x, y in loader():
            scores = model(x)
            seen.append(len(seen))
            loss = F.cross_entropy(scores, y) + 0 * (seen.pop(0) or 1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    subject = captured(program)
    assert subject.step is None
    assert subject.reasons["step"].startswith("the loss can't be computed again: seen was ")
    batch = subject.batches[1]
    assert (batch.roles, batch.dims, batch.size) == (("input", "target"), (0, 0), 12)
    assert torch.equal(batch.inputs[0], X[12:24])


def test_tensors_that_nothing_optimises_are_refused():
    weight = torch.zeros(6, 3, requires_grad=True)

    def program():
        for x, y in loader():
            loss = F.cross_entropy(x @ weight, y)
            loss.backward()
            with torch.no_grad():
                weight.sub_(0.1 * weight.grad)
                weight.grad = None

    subject = captured(program)
    assert subject.step is None
    assert "weight is trained, but belongs to no module or optimizer" in subject.reasons["step"]


def test_bare_parameters_of_an_optimizer_are_no_data():
    weight = torch.zeros(6, 3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def program():
        for x, y in loader():
            loss = F.cross_entropy(x @ weight, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    subject = captured(program)
    assert by_name(subject) == {"x": "input", "y": "target"}
    assert subject.models == {}


def test_mixed_precision_around_the_step_is_part_of_it():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)

    def step(x, y):
        return F.cross_entropy(model(x), y)

    def program():
        for x, y in loader():
            with torch.autocast("cpu", torch.bfloat16):
                loss = step(x, y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    subject = captured(program)
    assert by_name(subject) == {"x": "input", "y": "target"}
    assert again(subject) == pytest.approx(subject.losses[0], rel=1e-4)


def test_what_a_program_reuses_is_copied():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program():
        x, y = torch.empty(12, 6), torch.empty(12, dtype=torch.long)
        for i in range(0, 48, 12):
            x.copy_(X[i : i + 12])
            y.copy_(Y[i : i + 12])
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    subject = captured(program)
    assert [torch.equal(b.values["x"], X[12 * n : 12 * n + 12]) for n, b in enumerate(subject.batches)] == [
        True
    ] * 3
    assert subject.batches[0].dims == (0, 0)


def test_a_state_that_the_model_call_overwrites_is_that_from_before_the_call():
    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.words, self.rnn, self.out = nn.Embedding(9, 8), nn.GRU(8, 8), nn.Linear(8, 9)

        def forward(self, tokens, hidden):
            seen, hidden = self.rnn(self.words(tokens), hidden)
            return self.out(seen), hidden

    model = Language()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    text = torch.randint(0, 9, (31, 5))

    def program():
        hidden = torch.zeros(1, 5, 8)
        for i in range(0, 30, 6):
            data, targets = text[i : i + 6], text[i + 1 : i + 7]
            hidden = hidden.detach()
            output, hidden = model(data, hidden)
            loss = F.cross_entropy(output.reshape(-1, 9), targets.reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    subject = captured(program)
    slices = {"text[i:i + 6]": "input", "text[i + 1:i + 7]": "target"}
    assert by_name(subject) == {**slices, "hidden": "input"}
    assert again(subject) == subject.losses[0]
    assert subject.batches[1].values["hidden"].abs().sum() > 0
    assert (subject.batches[0].dims, subject.batches[0].size) == ((1, 1, 1), 5)


def test_a_batch_that_is_overwritten_by_the_next_before_backward_is_that_of_the_step():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program():
        feed = iter(loader())
        x, y = next(feed)
        for _ in range(3):
            loss = F.cross_entropy(model(x), y)
            x, y = next(feed)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    subject = captured(program)
    assert [torch.equal(b.values["x"], X[12 * n : 12 * n + 12]) for n, b in enumerate(subject.batches)] == [
        True
    ] * 3
    assert again(subject) == subject.losses[0]


def test_a_penalty_on_all_weights_is_part_of_the_step():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program():
        for x, y in loader():
            loss = F.cross_entropy(model(x), y)
            penalty = sum(p.pow(2).sum() for p in model.parameters())
            loss = loss + 1e-3 * penalty
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    subject = captured(program)
    assert "penalty" in subject.source
    assert again(subject) == subject.losses[0]


def test_samples_in_a_list_lie_along_no_dimension():
    model = nn.Conv2d(3, 5, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pictures, labels = torch.randn(12, 3, 6, 6), torch.arange(12) % 5

    def program():
        for i in range(0, 12, 4):
            images, wanted = list(pictures[i : i + 4]), list(labels[i : i + 4])
            scores = torch.stack([model(image[None]).mean((2, 3))[0] for image in images])
            loss = F.cross_entropy(scores, torch.stack(wanted))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    batch = captured(program).batches[0]
    assert set(batch.dims) == {None}
    assert batch.roles == ("input",) * 4 + ("target",) * 4
