"""Losses and backwards are recorded at their own lines, also on steps that are only noted."""

import pytest
import torch
from torch import nn

import clew
from clew.api.open_run import open_run
from clew.records.facts.fact import facts_of
from clew.records.facts.loss_facts import LossFact

STEPS = 80


def by_method(loss, other) -> None:
    loss.backward()
    other.backward()


def by_function(loss, other) -> None:
    torch.autograd.backward(loss)
    torch.autograd.backward(other)


@pytest.mark.parametrize("backward", [by_method, by_function])
def test_two_backwards_in_one_function_are_two_lines(tmp_path, backward):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with clew.attach(model, optimizer, run_root=tmp_path, quiet=True) as session:
        for _ in range(STEPS):
            optimizer.zero_grad()
            out = model(torch.randn(8, 4))
            backward(out.square().mean(), model(torch.randn(8, 4)).abs().mean())
            optimizer.step()
    series = {site.line: len(steps) for site, steps, _ in open_run(session.path).data.series("loss")}
    first = backward.__code__.co_firstlineno
    assert series == {first + 1: STEPS, first + 2: STEPS}


def forward_and_losses(model, criterion, x, labels):
    out = model(x)
    shown = torch.nn.functional.cross_entropy(
        out,
        labels,
    )
    return shown + criterion(out, labels)


def test_all_that_is_recorded_of_a_loss_call_has_the_line_of_that_call(tmp_path):
    """Checks join what several collectors record of a call by its line."""
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = [(torch.randn(4), k % 3) for k in range(64)]
    with clew.attach(model, optimizer, run_root=tmp_path, quiet=True) as session:
        for x, labels in torch.utils.data.DataLoader(data, batch_size=8):
            optimizer.zero_grad()
            forward_and_losses(model, nn.CrossEntropyLoss(), x, labels).backward()
            optimizer.step()
        with torch.no_grad():
            forward_and_losses(model, nn.CrossEntropyLoss(), x, labels)
        model(x).sum().backward()  # the evaluation is over
        optimizer.step()
    data = open_run(session.path).data
    first = forward_and_losses.__code__.co_firstlineno
    lines = {first + 2, first + 6}
    for signal in ("loss_input.mean", "target.mean", "target.given"):
        assert {site.line for site, _, _ in data.series(signal) if site.phase == "train"} == lines, signal
    assert {site.line for site, _, _ in data.series("loss") if site.phase == "eval"} == lines
    assert {fact.line for fact in facts_of(LossFact, data.facts)} == lines


def loss_in_a_helper(out, labels):
    return torch.nn.functional.cross_entropy(out, labels)


def loss_without_a_function_of_torchs(out, labels):
    return (out.sum(dim=1) - labels).square().mean()


def loss_in_an_installed_package(folder):
    """The same loss, in a helper whose file lies in `site-packages`."""
    file = folder / "site-packages" / "installed_losses.py"
    file.parent.mkdir()
    file.write_text("""import torch.nn.functional as F
def helper(out, labels):
    return F.cross_entropy(out, labels)
""")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    return names["helper"]


def trained_with(helper, folder):
    """Returns the lines of the loss call, and of `backward()`, as recorded."""
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with clew.attach(model, optimizer, run_root=folder, quiet=True) as session:
        for _ in range(4):
            optimizer.zero_grad()
            loss = helper(model(torch.randn(8, 4)), torch.arange(8) % 3)
            loss.backward()
            optimizer.step()
    data = open_run(session.path).data
    calls = {(site.file, site.line) for site, _, _ in data.series("loss_input.mean")}
    return calls, {(site.file, site.line) for site, _, _ in data.series("loss")}


def test_a_loss_call_has_the_line_of_the_innermost_function_of_the_users_own(tmp_path):
    here, first = __file__, trained_with.__code__.co_firstlineno
    backward = {(here, first + 8)}
    calls, losses = trained_with(loss_in_a_helper, tmp_path / "own")
    assert (calls, losses) == ({(here, loss_in_a_helper.__code__.co_firstlineno + 1)}, backward)
    calls, losses = trained_with(loss_in_an_installed_package(tmp_path), tmp_path / "installed")
    assert (calls, losses) == ({(here, first + 7)}, backward)


def test_a_loss_that_calls_no_loss_function_of_torchs_has_the_line_of_backward(tmp_path):
    calls, losses = trained_with(loss_without_a_function_of_torchs, tmp_path)
    assert (calls, losses) == (set(), {(__file__, trained_with.__code__.co_firstlineno + 8)})
