"""How the watcher understands different kinds of programs, read back from what it recorded."""

import gc
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from recorded_program import facts, recorded, values
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import clew
from clew.hooks.collect_layers import parameter_stats
from clew.hooks.collect_layers import step_rows as rows
from clew.measure import deferred_values
from clew.store.read.run_reader import open_run


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 8)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


X = torch.randn(24, 6, generator=torch.Generator().manual_seed(1))
Y = torch.arange(24) % 3


def patterns(data):
    names = {fact["id"]: fact["pattern"] for fact in facts(data, "pattern")}
    return [names[int(number)] for number in values(data, "events.pattern")]


def train(model, optimizer, steps=4, zero=True):
    for _ in range(steps):
        if zero:
            optimizer.zero_grad()
        F.cross_entropy(model(X), Y).backward()
        optimizer.step()


def test_loss_and_learning_rate_are_the_programs_own(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
    seen = []

    def program():
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(X), Y)
            loss.backward()
            optimizer.step()
            seen.append(loss.item())

    data = recorded(program, tmp_path)
    assert values(data, "loss") == seen
    assert values(data, "lr") == [0.25] * 5
    assert values(data, "batch.size") == [24.0] * 5
    assert data.last_step == 4


def test_the_gradient_norm_is_that_of_all_gradients(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    norms = []

    def program():
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(X), Y).backward()
            norms.append(float(torch.cat([p.grad.flatten() for p in model.parameters()]).double().norm()))
            optimizer.step()

    assert values(recorded(program, tmp_path), "grad.norm") == pytest.approx(norms, rel=1e-5)


def test_the_order_of_events_is_recorded(tmp_path):
    loader = DataLoader(TensorDataset(X, Y), batch_size=8)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)

    def program():
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()

    data = recorded(program, tmp_path)
    assert patterns(data) == ["dzfbcs", "hdzfbcs", "hdzfbcs"]
    assert values(data, "clip.limit") == [1.0] * 3


def test_leftover_gradients_are_stale(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = recorded(lambda: train(model, optimizer, zero=False), tmp_path)
    assert values(data, "grad.stale") == [0.0, 1.0, 1.0, 1.0]


def by_none(model):
    for p in model.parameters():
        p.grad = None


def by_zero(model):
    for p in model.parameters():
        if p.grad is not None:
            p.grad.zero_()


@pytest.mark.parametrize(
    "clear",
    [by_none, by_zero, lambda m: m.zero_grad(), lambda m: m.zero_grad(set_to_none=False)],
    ids=["set to None", "zeroed in place", "module.zero_grad", "module.zero_grad in place"],
)
def test_gradients_cleared_by_any_means_are_not_stale(tmp_path, clear):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def program():
        for _ in range(4):
            F.cross_entropy(model(X), Y).backward()
            optimizer.step()
            clear(model)

    assert values(recorded(program, tmp_path), "grad.stale") == [0.0] * 4


def test_deliberate_accumulation_is_counted_and_not_stale(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def program():
        for _ in range(3):
            optimizer.zero_grad()
            for _ in range(4):
                (F.cross_entropy(model(X), Y) / 4).backward()
            optimizer.step()

    data = recorded(program, tmp_path)
    assert values(data, "grad.stale") == [0.0] * 3
    assert values(data, "grad.backwards") == [4.0] * 3
    assert values(data, "batch.size") == [96.0] * 3


def test_a_gan_has_two_models_two_optimizers_and_no_stale_gradients(tmp_path):
    generator, critic = nn.Linear(4, 6), nn.Linear(6, 1)
    of_generator = torch.optim.Adam(generator.parameters())
    of_critic = torch.optim.Adam(critic.parameters())

    def program():
        for _ in range(4):
            of_critic.zero_grad()
            fake = generator(torch.ones(8, 4))
            (critic(fake.detach()).mean() - critic(X).mean()).backward()
            of_critic.step()
            of_generator.zero_grad()
            (-critic(fake).mean()).backward()  # piles up in the critic, too
            of_generator.step()

    data = recorded(program, tmp_path)
    assert {fact["root"] for fact in facts(data, "model")} == {"generator", "critic"}
    stale = [list(v) for _, _, v in data.series("grad.stale")]
    assert stale == [[0.0] * 4, [0.0] * 4]
    assert data.last_step == 3


def test_a_second_training_in_the_same_program_continues_the_step_count(tmp_path):
    def program():
        for _ in range(2):
            model = Net()
            train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=3)
            del model
            gc.collect()

    data = recorded(program, tmp_path)
    assert data.last_step == 5
    assert len(facts(data, "optimizer")) == 2


def test_a_second_training_beside_a_first_that_is_kept_leads_from_its_second_step(tmp_path):
    kept = []

    def program():
        for _ in range(2):
            model = Net()
            kept.append(torch.optim.SGD(model.parameters(), lr=0.1))
            train(model, kept[-1], steps=3)

    assert recorded(program, tmp_path).last_step == 4  # until then the first might come back


def test_lbfgs_is_one_step_for_each_closure_call_of_step(tmp_path):
    model = nn.Linear(6, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(X), X[:, :1])
        loss.backward()
        return loss

    def program():
        for _ in range(3):
            optimizer.step(closure)

    data = recorded(program, tmp_path)
    assert data.last_step == 2
    assert values(data, "grad.stale") == [0.0] * 3
    assert all(norm > 0 for norm in values(data, "grad.norm")[:1])


def test_without_an_optimizer_every_backward_is_a_step(tmp_path):
    weight = torch.zeros(6, 3, requires_grad=True)

    def program():
        for _ in range(5):
            F.cross_entropy(X @ weight, Y).backward()
            with torch.no_grad():
                weight.sub_(0.1 * weight.grad)
                weight.grad = None

    data = recorded(program, tmp_path)
    assert data.last_step == 4
    assert len(values(data, "loss")) == 5


def test_a_network_that_is_updated_by_hand_is_followed_to_its_end(tmp_path):
    model = Net()

    def program():
        for _ in range(60):  # beyond the steps that are looked at one by one
            model.zero_grad()
            F.cross_entropy(model(X), Y).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad

    data = recorded(program, tmp_path)
    assert data.last_step == 59
    assert len(values(data, "loss")) == 60


def test_bare_parameters_have_sites_of_their_own(tmp_path):
    weight = torch.zeros(6, 3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def program():
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(X @ weight, Y).backward()
            optimizer.step()

    assert len(values(recorded(program, tmp_path), "weight.norm", param="params[0]")) == 3


def test_evaluation_is_told_from_training(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program():
        for _ in range(2):
            train(model, optimizer, steps=2)
            with torch.no_grad():
                for _ in range(3):
                    F.cross_entropy(model(X), Y)
        train(model, optimizer, steps=1)

    data = recorded(program, tmp_path)
    assert patterns(data) == ["zfbs", "zfbs", "e+zfbs", "zfbs", "e+zfbs"]
    assert len(values(data, "loss", phase="eval")) == 2
    assert len(values(data, "loss", phase="train")) == 5


def test_an_evaluation_without_no_grad_does_not_pass_for_the_training_batch(tmp_path):
    model = nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program():
        for _ in range(3):
            model.train()
            train(model, optimizer, steps=1)
            model.eval()
            for _ in range(20):
                model(X * 1000)

    data = recorded(program, tmp_path)
    assert all(abs(v) < 10 for v in values(data, "first_input.max"))
    assert values(data, "mode.training") == [1.0] * 3


def test_training_in_eval_mode_after_a_validation_is_seen(tmp_path):
    model = nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program():
        train(model, optimizer, steps=2)
        model.eval()
        train(model, optimizer, steps=3)

    assert values(recorded(program, tmp_path), "mode.training") == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_a_functional_relu_is_attributed_to_the_layer_before_it(tmp_path):
    model = Net()
    with torch.no_grad():
        model.fc1.bias[:4] = -100.0
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = recorded(lambda: train(model, optimizer), tmp_path)
    assert values(data, "activation.dead_fraction", module="fc1", op="relu") == [0.5] * 4


def test_steps_between_samples_are_recorded_like_any_other(tmp_path):
    """After the first steps most are only noted, and written later: nothing may be lost or mixed up."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    loader = DataLoader(TensorDataset(X, Y), batch_size=8)
    losses, rates, norms = [], [], []

    def program():
        for epoch in range(50):
            model.train()
            for x, y in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                norms.append(float(torch.cat([p.grad.flatten() for p in model.parameters()]).double().norm()))
                rates.append(optimizer.param_groups[0]["lr"])
                optimizer.step()
                losses.append(loss.item())
            scheduler.step()
            if epoch % 10 == 9:
                model.eval()
                with torch.no_grad():
                    F.cross_entropy(model(X), Y)
        assert clew.session.active_session.active().step == 150

    data = recorded(program, tmp_path)
    assert len(values(data, "gradient.norm", module="fc1", param="weight")) < 75
    assert values(data, "loss", phase="train") == losses
    assert values(data, "lr") == rates
    assert values(data, "grad.norm") == pytest.approx(norms, rel=1e-5)
    assert values(data, "batch.size") == [8.0] * 150
    assert set(patterns(data)) == {"dzfbs", "hdzfbs", "hemdzfmbs"}
    assert len(values(data, "loss", phase="eval")) == 4
    assert all(t > 0 for t in values(data, "time.forward"))
    assert sum(values(data, "step.time")) == pytest.approx(values(data, "wall")[-1], rel=0.2)


def test_layer_statistics_agree_with_torch(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    before = model.fc1.weight.detach().clone()
    data = recorded(lambda: train(model, optimizer, steps=1), tmp_path)
    change = model.fc1.weight.detach() - before
    got = {
        n: values(data, n, module="fc1", param="weight")[0]
        for n in ("weight.std", "update.norm", "update.ratio")
    }
    assert got["weight.std"] == pytest.approx(float(before.std(unbiased=False)), rel=1e-4)
    assert got["update.norm"] == pytest.approx(float(change.norm()), rel=1e-4)
    assert got["update.ratio"] == pytest.approx(float(change.norm() / before.norm()), rel=1e-4)


def test_where_things_were_made_is_known(tmp_path):
    def program():
        model = Net()
        train(model, torch.optim.SGD(model.parameters(), lr=0.1))

    data = recorded(program, tmp_path)
    source = Path(__file__).read_text().splitlines()
    rows = {row["path"]: row for row in facts(data, "model")[-1]["modules"]}
    assert "self.fc1 = nn.Linear" in source[rows["fc1"]["line"] - 1]
    assert "model = Net()" in source[rows[""]["line"] - 1]
    assert "torch.optim.SGD" in source[facts(data, "optimizer")[0]["line"] - 1]


def test_a_loaded_checkpoint_and_frozen_layers_are_noted(tmp_path):
    torch.manual_seed(0)  # whether weights look freshly drawn is a matter of chance
    backbone = nn.Linear(6, 64)
    state = nn.Linear(6, 64).state_dict()

    def program():
        backbone.load_state_dict(state)
        backbone.requires_grad_(False)
        model = nn.Sequential(backbone, nn.Linear(64, 3))
        train(model, torch.optim.SGD(model[1].parameters(), lr=0.1), steps=5)

    items = {i["name"]: i for i in facts(recorded(program, tmp_path), "parameters")[-1]["items"]}
    assert items["0.weight"]["loaded"] is True
    assert items["0.weight"]["requires_grad"] is False
    assert items["1.weight"]["optimizer"] == 0
    assert items["0.weight"]["init_like"] is True


def test_metrics_and_hyperparameters_of_the_user_are_recorded(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program():
        clew.config(lr=0.1, depth=2)
        for k in range(3):
            train(model, optimizer, steps=1)
            clew.log({"val/acc": torch.tensor(k / 10)}, epoch=k)

    data = recorded(program, tmp_path)
    assert values(data, "metric.epoch") == [0.0, 1.0, 2.0]
    assert values(data, "metric.val/acc") == pytest.approx([0.0, 0.1, 0.2])
    assert data.last_step == 2
    assert {"source": "user", "values": {"lr": 0.1, "depth": 2}} in facts(data, "config")


@pytest.mark.parametrize("where", ["before the update", "after it", "after an evaluation"])
def test_a_metric_belongs_to_the_step_that_it_is_about(tmp_path, where):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program():
        for k in range(50):  # also steps that are only noted
            optimizer.zero_grad()
            loss = F.cross_entropy(model(X), Y)
            loss.backward()
            if where == "before the update":
                clew.log(number=k)
            optimizer.step()
            if where == "after an evaluation":
                with torch.no_grad():
                    model(X)
            if where != "before the update":
                clew.log(number=k)

    data = recorded(program, tmp_path)
    ((_, steps, numbers),) = data.series("metric.number")
    assert list(steps) == list(numbers) == list(range(50))
    assert data.last_step == 49


def test_logging_without_a_session_does_nothing():
    clew.log(accuracy=1.0)
    clew.config(lr=1.0)


def test_the_unscaled_loss_is_recorded_under_a_grad_scaler(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    seen = []

    def program():
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(X), Y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            seen.append(loss.item())

    data = recorded(program, tmp_path)
    assert values(data, "loss") == pytest.approx(seen)
    assert all(norm < 100 for norm in values(data, "grad.norm"))


def test_given_things_are_introduced_and_others_refused(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = recorded(lambda: train(model, optimizer), tmp_path, model, optimizer)
    assert data.last_step == 3
    with pytest.raises(TypeError, match="models and optimizers"):
        clew.attach("model.pt", run_root=tmp_path, quiet=True)
    assert clew.session.active_session.active() is None


def test_a_nested_attach_joins_the_session_that_is_there(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with clew.attach(run_root=tmp_path, quiet=True) as outer:
        with clew.attach(model, quiet=True) as inner:
            train(model, optimizer, steps=2)
        assert inner is outer
        train(model, optimizer, steps=2)
    assert open_run(outer.path).data.last_step == 3
    assert len(list(tmp_path.iterdir())) == 1


def test_a_program_that_raises_is_recorded_as_failed(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program():
        train(model, optimizer, steps=2)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        recorded(program, tmp_path)
    run = open_run(next(tmp_path.iterdir()))
    assert run.state == "failed"
    assert [e.data["type"] for e in run.data.events if e.kind == "exception"] == ["ZeroDivisionError"]


def test_nothing_happens_when_switched_off(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW", "off")
    original = F.cross_entropy
    with clew.attach(run_root=tmp_path) as session:
        assert F.cross_entropy is original
    assert session.verdict.findings == ()
    assert list(tmp_path.iterdir()) == []


def test_numbers_left_on_a_device_arrive_a_step_later_and_are_the_same(tmp_path, monkeypatch):
    """No accelerator is needed: tensors of the host are treated as if they were on one."""

    def program():
        torch.manual_seed(3)
        model = Net()
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=6)

    here = recorded(program, tmp_path / "host")
    transfers = []
    fetch = deferred_values._fetch

    def counted(waiting, actions):
        transfers.append(len(waiting))
        fetch(waiting, actions)

    for module in (deferred_values, rows, parameter_stats):
        monkeypatch.setattr(module, "on_host", lambda tensor: False)
    monkeypatch.setattr(deferred_values, "_fetch", counted)
    there = recorded(program, tmp_path / "device")
    names = [
        n for n in here.signal_names() if not n.startswith(("time.", "step.", "wall", "memory", "events"))
    ]
    assert len(names) > 100
    for name in names:
        expected = {site: list(v) for site, _, v in here.series(name)}
        got = {site: list(v) for site, _, v in there.series(name)}
        assert got.keys() == expected.keys()
        for site, numbers in expected.items():
            assert got[site] == pytest.approx(numbers, rel=1e-3, abs=1e-5, nan_ok=True), (name, site)
    assert len(transfers) <= 6 + 2  # one a step, and what was left at the end
