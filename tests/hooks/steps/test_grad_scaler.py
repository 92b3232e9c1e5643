"""What a GradScaler skips by design is no alarm; endless skipping is. And gradients of unusual kinds."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

import clew


def recorded(tmp_path, train) -> tuple[Any, Any]:
    with clew.attach(run_root=tmp_path, quiet=True, budget=1e6) as session:
        train()
    data = clew.open_run(session.path).data
    found = [f for f in session.verdict.findings if f.check == "non-finite"]
    return data, found


def fit(steps: int, *, scale: float, bad: Any = (), fused: bool = False, factor: float = 1.0) -> None:
    """Training with a scaler, whose loss has a gradient of NaN in the `bad` steps."""
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    for step in range(steps):
        output = model(torch.randn(8, 4))
        distance = (output - output.detach() * (1.0 if step in bad else 0.5)).pow(2).sum(1).sqrt()  # planted
        loss = distance.mean() * factor
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


@pytest.mark.parametrize("fused", [False, True])
def test_a_scale_that_comes_down_to_one_is_an_alarm_with_the_operation(tmp_path, fused):
    data, (found,) = recorded(tmp_path, lambda: fit(20, scale=64.0, bad=range(20), fused=fused))
    assert "at any scale: GradScaler skipped 7 updates in a row" in found.message
    assert "the gradient of sqrt is" in found.message
    assert "micro-batch" not in found.message
    assert "planted" in next(f.data["code"] for f in data.facts if f.kind == "culprit")


@pytest.mark.parametrize("fused", [False, True])
def test_steps_skipped_until_the_scale_fits_are_part_of_it(tmp_path, fused):
    # 2**140 times a slope of about one does not fit into float32: thirteen steps are skipped.
    _, found = recorded(tmp_path, lambda: fit(60, scale=2.0**127, factor=2.0**13, fused=fused))
    assert not found


@pytest.mark.parametrize("fused", [False, True])
def test_steps_skipped_now_and_then_are_never_counted_together(tmp_path, fused):
    _, found = recorded(tmp_path, lambda: fit(120, scale=2.0**60, bad=range(0, 120, 3), fused=fused))
    assert not found


def test_twenty_in_a_row_are_too_many_from_whatever_scale(tmp_path):
    _, (found,) = recorded(tmp_path, lambda: fit(40, scale=2.0**60, bad=range(10, 40)))
    assert "skipped 20 updates in a row" in found.message


def test_a_short_run_without_any_update_is_reported_at_its_end(tmp_path):
    _, (found,) = recorded(tmp_path, lambda: fit(8, scale=65536.0, bad=range(8)))
    assert "skipped 8 updates in a row" in found.message
    _, found = recorded(tmp_path, lambda: fit(7, scale=65536.0, bad=range(7)))
    assert not found


class Filter(nn.Module):
    """A learned filter in the frequency domain."""

    def __init__(self) -> None:
        super().__init__()
        self.response = nn.Parameter(torch.randn(9, dtype=torch.cfloat))
        self.out = nn.Linear(9, 1)

    def forward(self, x):
        spectrum = torch.fft.rfft(x) * self.response
        return self.out(spectrum.abs())


def filtered(bad_step: int = -1) -> None:
    torch.manual_seed(0)
    model = Filter()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(12):
        loss = (model(torch.randn(8, 16)) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        if step == bad_step:
            model.response.grad[3] = complex(0, math.nan)
        optimizer.step()


def test_a_complex_parameter_is_no_alarm(tmp_path):
    data, found = recorded(tmp_path, filtered)
    assert not found
    (norms,) = [values for _, _, values in data.series("grad.norm")]
    assert all(math.isfinite(v) and v > 0 for v in norms)


def test_a_nan_in_a_complex_gradient_is_an_alarm(tmp_path):
    _, (found,) = recorded(tmp_path, lambda: filtered(bad_step=7))
    assert found.step == 7
    assert "response" in found.message


class Unreadable(torch.Tensor):
    """Stands for something that only its own class can read."""

    @staticmethod
    def __new__(cls, like):
        return torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*[torch.zeros(a.shape) if isinstance(a, cls) else a for a in args], **(kwargs or {}))


def test_gradients_that_nobody_can_read_are_not_known_and_no_alarm(tmp_path):
    class Quiet(torch.optim.Optimizer):
        def step(self, closure=None):
            return None

    def train():
        weight = nn.Parameter(torch.ones(3))
        optimizer = Quiet([weight], {"lr": 0.1})
        for _ in range(40):
            (weight * 2).sum().backward()
            weight.grad = Unreadable(weight)
            optimizer.step()
            weight.grad = None

    data, found = recorded(tmp_path, train)
    assert not found
    assert not list(data.series("grad.norm"))
    ((_, steps, _),) = data.series("lr")
    assert len(steps) == 40
