"""What is recorded of the training loop and the graph, against what the program itself can tell."""

import copy
import gc

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import clew
from clew.hooks.collect_layers.loss_graph import leaves_of
from clew.store.read.run_reader import open_run

X = torch.randn(24, 6, generator=torch.Generator().manual_seed(1))
Y = torch.arange(24) % 3


class Net(nn.Module):
    def __init__(self, cut=None):
        super().__init__()
        self.cut = cut
        self.fc1 = nn.Linear(6, 8)
        self.fc2 = nn.Linear(8, 3)
        self.spare = nn.Linear(8, 8)

    def forward(self, x):
        hidden = F.relu(self.fc1(x))
        return self.fc2(self.cut(hidden) if self.cut else hidden)


def recorded(program, tmp_path):
    with clew.attach(run_root=tmp_path, quiet=True, budget=1e6) as session:
        program()
    return open_run(session.path).data


def newest(data, kind):
    found = [fact.data for fact in data.facts if fact.kind == kind]
    return found[-1] if found else None


def values(data, name):
    return [list(v) for _, _, v in data.series(name)]


def fit(model, optimizer, steps=6, backwards=1, clear=lambda o: o.zero_grad()):
    for _ in range(steps):
        for _ in range(backwards):
            clear(optimizer)
            F.cross_entropy(model(X), Y).backward()
        optimizer.step()


def trained(model, **more):
    return lambda: fit(model, torch.optim.SGD(model.parameters(), lr=0.1), **more)


def test_the_leaves_of_a_loss_are_the_parameters_that_backward_reaches():
    model = Net()
    loss = F.cross_entropy(model(X), Y)
    found = {id(leaf) for leaf in leaves_of(loss)}
    loss.backward()
    assert found == {id(p) for p in model.parameters() if p.grad is not None}


@pytest.mark.parametrize(
    ("cut", "op"),
    [
        (lambda t: t.detach(), "detach"),
        (lambda t: t.data, "data"),
        (lambda t: torch.tensor(t.tolist()), "tolist"),
    ],
)
def test_a_layer_before_a_cut_is_told_from_one_that_never_runs(tmp_path, cut, op):
    graph = newest(recorded(trained(Net(cut)), tmp_path), "graph")
    assert graph["cut"] == ["fc1.weight", "fc1.bias"]
    assert graph["idle"] == ["spare.weight", "spare.bias"]
    assert graph["reached"] == 2
    assert [(c["op"], c["file"]) for c in graph["cuts"]] == [(op, __file__)]


def test_a_layer_that_runs_without_gradients_is_told_from_a_cut(tmp_path):
    class Half(Net):
        def forward(self, x):
            with torch.no_grad():
                hidden = self.fc1(x)
            return self.fc2(hidden)

    graph = newest(recorded(trained(Half()), tmp_path), "graph")
    assert (graph["cut"], graph["cut_by_no_grad"]) == ([], ["fc1.weight", "fc1.bias"])


def test_clews_own_reading_of_tensors_is_no_cut(tmp_path):
    assert newest(recorded(trained(Net()), tmp_path), "graph")["cuts"] == []


def test_modules_and_parameters_in_plain_lists_are_unregistered(tmp_path):
    class Hidden(Net):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(8, 8)]
            self.scales = [nn.Parameter(torch.ones(3))]

        def forward(self, x):
            return self.fc2(self.layers[0](self.fc1(x))) * self.scales[0]

    rows = newest(recorded(lambda: trained(Hidden())(), tmp_path), "graph")["unregistered"]
    assert [(r["class"], r["count"], r["held"], r["with_grad"]) for r in rows] == [
        ("Linear", 2, 0, 2),
        ("Parameter", 1, 0, 1),
    ]
    assert rows[0]["file"] == __file__


def test_batch_normalisation_is_noted_with_its_mode_and_samples(tmp_path):
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    assert newest(recorded(trained(model), tmp_path), "graph")["norms"] == [["1", "BatchNorm1d", True, 24]]


def test_a_loss_without_a_history_is_noted(tmp_path):
    def program():
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            loss = torch.tensor(F.cross_entropy(model(X), Y).item(), requires_grad=True)
            loss.backward()
            optimizer.step()

    data = recorded(program, tmp_path)
    assert {k: newest(data, "loss_cut")[k] for k in ("requires_grad", "forwards")} == {
        "requires_grad": True,
        "forwards": 1,
    }
    assert values(data, "grad.present") == [[0.0] * 4]


def test_backwards_cleared_before_the_step_are_counted(tmp_path):
    data = recorded(trained(Net(), backwards=3), tmp_path)
    assert values(data, "grad.lost") == [[0.0] + [2.0] * 5]


def test_accumulated_backwards_are_not_lost(tmp_path):
    model = Net()

    def program():
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            for _ in range(3):
                F.cross_entropy(model(X), Y).backward()
            optimizer.step()
            optimizer.zero_grad()

    assert values(recorded(program, tmp_path), "grad.lost") == [[0.0] * 6]


def move(model):
    for p in model.parameters():
        if p.grad is not None:
            p.data.add_(0.01 * p.grad)


def attack(model):
    noise = torch.zeros_like(X, requires_grad=True)
    F.cross_entropy(model(X + noise), Y).backward()


def set_by_hand(model):
    kept = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    F.cross_entropy(model(X), Y).backward()
    for p, gradient in zip(model.parameters(), kept, strict=True):
        p.grad = gradient


@pytest.mark.parametrize("kind", ["sharpness", "attack", "surgery", "actor and critic"])
def test_gradients_cleared_on_purpose_are_not_lost(tmp_path, kind):
    def program():
        model, other = Net(), nn.Linear(6, 6)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        second = torch.optim.SGD(other.parameters(), lr=0.1)
        for _ in range(6):
            if kind == "attack":
                attack(model)
            elif kind == "sharpness":
                F.cross_entropy(model(X), Y).backward()
                move(model)
            elif kind == "actor and critic":
                second.zero_grad()
                model(other(X)).mean().backward()
                second.step()
            optimizer.zero_grad()
            F.cross_entropy(model(X), Y).backward()
            if kind == "surgery":
                set_by_hand(model)
            optimizer.step()

    assert all(max(column) == 0.0 for column in values(recorded(program, tmp_path), "grad.lost"))


def test_evaluation_sections_tell_mode_and_size_the_last_one_too(tmp_path):
    loader = DataLoader(TensorDataset(X, Y), batch_size=6)

    def program():
        model = Net()
        for training in (True, False):
            fit(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=2)
            model.train(training)
            with torch.no_grad():
                for x, _ in loader:
                    model(x)
            model.train()

    data = recorded(program, tmp_path)
    assert values(data, "mode.evaluation") == [[1.0, 0.0]]
    assert values(data, "evaluation.forwards") == [[4.0, 4.0]]
    assert values(data, "evaluation.batches") == [[3.0, 3.0]]
    assert data.last_step == 3  # the evaluation at the end adds none


def test_an_optimizer_that_never_steps_is_told_from_one_that_does(tmp_path):
    model = Net()

    def program():
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(25):
            F.cross_entropy(model(X), Y).backward()
        program.optimizer = optimizer

    use = newest(recorded(program, tmp_path), "optimizer_use")
    assert (use["stepped"], use["with_grad"], use["changed"], use["backwards"]) == (False, 4, False, 25)
    use = newest(recorded(trained(Net()), tmp_path), "optimizer_use")
    assert (use["stepped"], use["outside"], use["changed"]) == (True, 0, True)


def test_parameters_of_a_model_that_was_replaced_are_outside(tmp_path):
    def program():
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        program.keep = model
        fit(copy.deepcopy(model), optimizer)

    use = newest(recorded(program, tmp_path), "optimizer_use")
    assert (use["held"], use["outside"], use["outside_with_grad"]) == (6, 6, 0)


def test_schedulers_are_counted_and_early_steps_noticed(tmp_path):
    def program():
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        unused = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        for _ in range(4):
            scheduler.step()
            fit(model, optimizer, steps=1)
        program.keep = scheduler, unused

    with pytest.warns(UserWarning, match="lr_scheduler.step"):
        data = recorded(program, tmp_path)
    facts = {f.data["index"]: f.data for f in data.facts if f.kind == "scheduler"}
    assert [(facts[n]["steps"], facts[n]["early"], facts[n]["optimizer"]) for n in (0, 1)] == [
        (4, 1, 0),
        (0, 0, 0),
    ]


def test_a_scheduler_that_dies_with_its_fold_keeps_its_count(tmp_path):
    def fold():
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        for _ in range(5):
            fit(model, optimizer, steps=4)
            scheduler.step(1.0)

    def program():
        for _ in range(3):
            fold()
            gc.collect()

    data = recorded(program, tmp_path)
    facts = {f.data["index"]: f.data for f in data.facts if f.kind == "scheduler"}
    assert [(facts[n]["steps"], facts[n]["optimizer"]) for n in range(3)] == [(5, 0), (5, 1), (5, 2)]


@pytest.mark.parametrize("flat", [False, True])
def test_a_broadcast_by_hand_names_the_shape_of_the_target(tmp_path, flat):
    def program():
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            x = torch.randn(16, 4)
            predicted, target = (model(x)[:, 0], x[:, :1]) if flat else (model(x), x[:, 0])
            optimizer.zero_grad()
            ((predicted - target) ** 2).mean().backward()
            optimizer.step()

    shapes = newest(recorded(program, tmp_path), "broadcast")
    if flat:  # the model's own output is (16, 1); what was made of it is not known to be it
        assert shapes is None
    else:
        assert (shapes["prediction_shape"], shapes["target_shape"]) == ([16, 1], [16])


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.out = nn.Linear(4, 9, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x):
        return self.out(self.embed(x))


def untie(model, how):
    if how == "assigned":
        model.out.weight = nn.Parameter(torch.randn(9, 4))
    elif how == "replaced":
        model.embed = nn.Embedding(9, 4)
    elif how == "copied":
        model.out.weight = nn.Parameter(model.embed.weight.detach().clone())


@pytest.mark.parametrize("how", ["assigned", "replaced", "copied", None])
def test_weights_that_were_one_and_are_two_are_found(tmp_path, how):
    def program():
        model = Tied()
        untie(model, how)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            F.cross_entropy(model(torch.arange(9)), torch.arange(9)).backward()
            optimizer.step()

    found = {f.data["how"] for f in recorded(program, tmp_path).facts if f.kind == "untied"}
    assert found == ({how} if how != "copied" else {"copied", "assigned"}) if how else not found


def test_what_a_checkpoint_did_not_fill_is_noted(tmp_path):
    model = Net()
    state = {f"module.{k}": v for k, v in Net().state_dict().items()}
    fact = newest(recorded(lambda: model.load_state_dict(state, strict=False), tmp_path), "state_loaded")
    assert (fact["keys"], fact["missing"], fact["unexpected"]) == (6, list(model.state_dict()), list(state))
    assert (
        newest(recorded(lambda: model.load_state_dict(Net().state_dict()), tmp_path), "state_loaded") is None
    )
