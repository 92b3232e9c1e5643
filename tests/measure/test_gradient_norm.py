"""The norm over gradients: looked up by the kernel, by Python, or in the general way; always the same."""

import dataclasses
import math

import pytest
import torch
from torch import nn

from clew.measure import gradient_norm, stats
from clew.measure.gradient_norm import GradientNorm


def network(dtype=torch.float32) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 33), nn.ReLU(), nn.Linear(33, 5), nn.LayerNorm(5)).to(dtype)
    model(torch.randn(4, 8, dtype=dtype)).square().sum().backward()
    return model


def expected(parameters) -> float:
    return math.sqrt(sum(float(p.grad.double().square().sum()) for p in parameters if p.grad is not None))


@pytest.fixture(params=["asked", "asked in two calls", "by Python", "without a kernel"])
def norm_of(request, monkeypatch):
    """Each way of asking."""
    if request.param == "without a kernel":
        monkeypatch.setattr(stats, "KERNEL", None)
    else:
        assert stats.kernel_available(), "no compiled kernel: python scripts/build_kernel.py"
    if request.param == "asked in two calls":
        monkeypatch.setattr(gradient_norm, "AT_ONCE", -1)
    if request.param == "by Python":
        monkeypatch.setattr(stats, "KERNEL", dataclasses.replace(stats.KERNEL, natives=None))
    return GradientNorm


def test_torch_here_can_be_asked_directly():
    assert GradientNorm(list(network().parameters())).at_once


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_all_ways_give_the_norm(norm_of, dtype):
    parameters = list(network(dtype).parameters())
    assert norm_of(parameters)() == pytest.approx(expected(parameters), rel=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_shows(norm_of, bad):
    parameters = list(network().parameters())
    parameters[2].grad[1, 1] = bad
    assert not math.isfinite(norm_of(parameters)())


def test_gradients_may_be_missing_strided_sparse_or_of_a_class_of_their_own(norm_of):
    class Marked(torch.Tensor):
        pass

    parameters = list(network().parameters())
    norm = norm_of(parameters)
    parameters[0].grad = None
    assert norm() == pytest.approx(expected(parameters), rel=1e-6)
    parameters[0].grad = torch.randn(8, 33).t()
    assert norm() == pytest.approx(expected(parameters), rel=1e-6)
    parameters[0].grad = torch.randn(33, 8).as_subclass(Marked)
    assert norm() == pytest.approx(expected(parameters), rel=1e-6)
    parameters[0].grad = torch.randn(33, 8).to_sparse()
    parameters[0].grad = parameters[0].grad.coalesce()
    dense = [p.grad.to_dense() for p in parameters]
    assert norm() == pytest.approx(math.sqrt(sum(float(g.double().square().sum()) for g in dense)), rel=1e-6)


def test_new_gradients_are_found_where_they_are_now(norm_of):
    model = network()
    norm, found = norm_of(list(model.parameters())), set()
    for scale in (1.0, 2.0, 4.0):
        model.zero_grad(set_to_none=True)
        (model(torch.ones(4, 8)).square().sum() * scale).backward()
        assert norm() == pytest.approx(expected(model.parameters()), rel=1e-6)
        found.add(round(norm(), 3))
    assert len(found) == 3


def test_asking_leaves_no_reference_behind(norm_of):
    import sys

    parameters = list(network().parameters())
    norm = norm_of(parameters)
    gradient, counts = parameters[0].grad, []
    for _ in range(3):
        norm()
        counts.append((sys.getrefcount(gradient), sys.getrefcount(torch.Tensor)))
    assert counts[0] == counts[2]


def test_a_parameter_whose_gradient_can_not_be_asked_for_raises_nothing(norm_of):
    class Refusing(nn.Parameter):
        @property
        def grad(self):
            raise RuntimeError("not now")

    norm = norm_of([Refusing(torch.ones(3))])
    with pytest.raises(RuntimeError, match="not now"):  # the guard of the probe copes
        norm()


@pytest.mark.parametrize("size", [1, 31, 32, 1023, 1024, 4095, 4096, 4097, 9000])
@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e-19, 1e-12, 1.0, 1e19, 1e30])
def test_sums_of_squares_are_exact_at_every_scale(size, scale):
    """Squares as floats lose digits below 1e-38 and end at 3e38: such blocks are read in double."""
    values = torch.randn(size, generator=torch.Generator().manual_seed(size)) * scale
    mixed = torch.cat([values, torch.zeros(4096), values])
    for tensor in (values, mixed):
        want = math.sqrt(float(tensor.double().square().sum()))
        assert stats.grad_norm([tensor]) == pytest.approx(want, rel=1e-6)
