from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

from clew.measure import stats
from clew.measure.kernel import compiled_library


def measure(t):
    out, hist = np.full(7, -1.0), np.full(32, 7, np.uint8)
    stats.tensor_stats(t, out=out, hist=hist)
    return out, hist


def everything(t):
    measure(t)
    stats.tensor_stats_async(t, hist=True, lo=-1, hi=1, unit_dim=0)
    stats.dead_fraction(t, 0)
    stats.grad_norm([t])


class Wrapper(torch.Tensor):
    """A subclass that holds its values elsewhere, as distributed tensors do."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError("no op of ours may reach a wrapper")


class Named(torch.Tensor):
    """A subclass with memory of its own, as image tensors are."""


def quietly(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that quantised and CSR tensors are in beta
        return make()


UNREADABLE = {
    "empty": lambda: torch.zeros(0, 3),
    "meta": lambda: torch.zeros(3, device="meta"),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "mkldnn": lambda: torch.eye(3).to_mkldnn(),
    "complex": lambda: torch.zeros(3, dtype=torch.complex64),
    "quantised": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    "fake": lambda: FakeTensorMode().from_tensor(torch.ones(3)),
    "wrapper": lambda: Wrapper(torch.ones(3)),
    "uninitialised": lambda: torch.nn.LazyLinear(3).weight,
}


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize("compiled", [True, False])
def test_a_tensor_that_cannot_be_read_gives_nan(name, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(stats, "KERNEL", None)
    t = quietly(UNREADABLE[name])
    out, hist = measure(t)
    assert np.isnan(out).all()
    assert not hist.any()
    assert math.isnan(stats.dead_fraction(t, 0))
    resolved = np.zeros(7)
    assert all(math.isnan(v) for v in stats.resolve(stats.tensor_stats_async(t, hist=True), resolved))
    assert np.isnan(resolved).all()


@pytest.mark.parametrize("name", ["meta", "fake", "wrapper", "quantised"])
def test_a_gradient_that_cannot_be_read_is_left_out_of_the_norm_and_not_taken_for_nan(name):
    unknown = quietly(UNREADABLE[name])
    assert stats.grad_norm([torch.full((4,), 2.0), unknown]) == 4.0
    assert stats.grad_norm([unknown]) is None


def test_inside_vmap_and_functional_grad_nothing_is_read_and_nothing_fails():
    seen = []

    def model(x):
        seen.append(measure(x)[0])
        assert stats.grad_norm([x]) is None
        return (x * x).sum()

    torch.func.grad(model)(torch.ones(3))
    torch.vmap(model)(torch.ones(2, 3))
    assert np.isnan(seen).all()


def test_a_subclass_with_memory_of_its_own_is_read():
    t = torch.arange(4.0).as_subclass(Named)
    assert measure(t)[0][0] == 1.5
    assert stats.dead_fraction(t, 0) == 0.25


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    "view", [lambda t: t, lambda t: t.t(), lambda t: t[::2, ::3], lambda t: t[:1].expand(5, -1)]
)
def test_nothing_about_the_tensor_or_torch_changes(compiled, view, monkeypatch):
    if not compiled:
        monkeypatch.setattr(stats, "KERNEL", None)
    leaf = torch.randn(40, 60, requires_grad=True)
    hidden = view(leaf * 2)
    before = hidden.detach().clone()
    rng, function, version = torch.get_rng_state(), hidden.grad_fn, hidden._version
    everything(hidden)
    everything(leaf)
    assert torch.equal(torch.get_rng_state(), rng)
    assert torch.equal(hidden.detach(), before)
    assert (hidden.grad_fn, hidden._version) == (function, version)
    assert hidden.requires_grad
    assert leaf.grad is None
    assert torch.is_grad_enabled()
    hidden.sum().backward()
    assert leaf.grad is not None


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    "mode",
    [
        torch.no_grad,
        torch.inference_mode,
        torch.enable_grad,
        lambda: torch.autocast("cpu", torch.bfloat16),
        lambda: torch.device("meta"),
    ],
    ids=["no_grad", "inference", "enable_grad", "autocast", "default device"],
)
def test_same_numbers_under_every_mode(compiled, mode, monkeypatch):
    if not compiled:
        monkeypatch.setattr(stats, "KERNEL", None)
    t = torch.randn(50, 70, device="cpu")
    sliced = t[:, ::2]
    want = [measure(t)[0], measure(sliced)[0], stats.grad_norm([t, sliced]), stats.dead_fraction(sliced, 1)]
    with mode():
        got = [
            measure(t)[0],
            measure(sliced)[0],
            stats.grad_norm([t, sliced]),
            stats.dead_fraction(sliced, 1),
        ]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


def test_the_torch_ops_serve_when_there_is_no_library(tmp_path, monkeypatch):
    assert compiled_library.load(tmp_path) is None
    (tmp_path / compiled_library.LIBRARY_NAMES[0]).write_bytes(b"not a library")
    assert compiled_library.load(tmp_path) is None
    monkeypatch.setenv("CLEW_KERNEL", "off")
    assert compiled_library.load() is None
