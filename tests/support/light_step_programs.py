"""Programs whose steps are light steps, except for what comes between them."""

import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

STEPS = 90
X, Y = torch.linspace(-1, 1, 64 * 6).reshape(64, 6).sin(), torch.arange(64) % 3


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
