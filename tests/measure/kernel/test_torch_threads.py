"""Tensors read by several threads, and many tensors in one call: the same numbers as one by one."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
import torch
from torch import nn

from clew.measure import stats
from clew.measure.gradient_norm import Addresses
from clew.measure.kernel.compiled_library import Kernel, Team, team_of_torch

INFINITE = float("inf")


@pytest.fixture
def kernel():
    assert stats.KERNEL is not None, "no compiled kernel: python scripts/build_kernel.py"
    yield stats.KERNEL
    stats.KERNEL.team(None, None, 1)
    stats.TEAM._threads = 1


@pytest.fixture(params=[(1, True), (2, True), (2, False), (3, True), (24, True), (24, False)])
def threads(request, kernel: Kernel):
    """Also more than there are cores, and than there are parts; and such as do not know their own number."""
    number, numbered = request.param
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    parallel, own = team_of_torch()
    kernel.team(parallel, own if numbered else None, number)
    yield number
    torch.set_num_threads(before)


def measured(t: torch.Tensor, lo: float = -INFINITE, hi: float = INFINITE):
    out, hist = np.full(7, -1.0), np.full(32, 7, np.uint8)
    saturated = stats.tensor_stats(t, out=out, hist=hist, lo=lo, hi=hi)
    return out, hist, saturated


def test_torch_here_has_a_team_to_ask():
    assert all(team_of_torch())


@pytest.mark.parametrize("count", [1, 65_535, 131_072, 131_073, 1_000_003])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_tensor_is_the_same_to_one_thread_and_to_many(kernel, threads, count, dtype):
    torch.manual_seed(0)
    t = (torch.randn(count) * 3 + 100).to(dtype)
    t[::7] = 0
    t[count // 2] = INFINITE
    t[-1] = -INFINITE
    many = measured(t, 99.0, 101.0)
    kernel.team(None, None, 1)
    alone = measured(t, 99.0, 101.0)
    np.testing.assert_allclose(many[0], alone[0], rtol=1e-6)
    assert many[0][6] == alone[0][6]  # counts, histogram and shares exactly
    assert many[0][5] == alone[0][5]
    assert (many[1] == alone[1]).all()
    assert many[2] == alone[2]


def network(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(700, 1100), nn.ReLU(), nn.Linear(1100, 900), nn.LayerNorm(900)).to(dtype)
    model(torch.randn(4, 700, dtype=dtype)).square().sum().backward()
    return model


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_many_tensors_in_one_call_are_as_one_by_one(kernel, threads, gradients, dtype):
    parameters = list(network(dtype).parameters())
    tensors = [p.grad if gradients else p.detach() for p in parameters]
    at = Addresses(parameters, gradients)
    assert at.find()
    rows = np.arange(len(tensors), dtype=np.int64)[::-1] * 2  # any order, with gaps
    out, hist = np.full((20, 9), -1.0), np.full((20, 32), 7, np.uint8)
    kernel.stats_list(
        *at.arrays, at.count, rows.ctypes.data, out.ctypes.data, out.strides[0], hist.ctypes.data
    )
    for row, tensor in zip(rows, tensors, strict=True):
        one, bins, _ = measured(tensor)
        np.testing.assert_allclose(out[row, :7], one, rtol=1e-6, atol=1e-12)
        assert (hist[row] == bins).all()
    untouched = np.setdiff1d(np.arange(20), rows)
    assert (out[untouched] == -1).all()
    assert (out[:, 7:] == -1).all()
    assert (hist[untouched] == 7).all()


def test_the_norm_over_gradients_is_bit_by_bit_the_same(kernel, threads):
    at = Addresses(list(network().parameters()), gradients=True)
    assert at.find()
    many = kernel.sumsq(*at.arrays, at.count)
    kernel.team(None, None, 1)
    assert kernel.sumsq(*at.arrays, at.count) == many


def test_the_norm_over_very_many_tensors(kernel, threads):
    parameters = [nn.Parameter(torch.ones(n % 5 + 1)) for n in range(1000)]
    for p in parameters:
        p.grad = torch.ones_like(p)
    at = Addresses(parameters, gradients=True)
    assert at.find()
    assert kernel.sumsq(*at.arrays, at.count) == 3000


def test_weights_are_found_where_they_are_now_and_only_if_they_are_plain():
    class Marked(nn.Parameter):
        pass

    weight = nn.Parameter(torch.ones(4, 6))
    at = Addresses([weight], gradients=False)
    assert at.find()
    assert at._pointers[0] == weight.data_ptr()
    weight.data = torch.ones(4, 6)
    assert at.find()
    assert at._pointers[0] == weight.data_ptr()
    weight.data = torch.ones(6, 4).t()
    assert not at.find()
    weight.data = torch.ones(4, 7)
    assert not at.find()
    assert not Addresses([Marked(torch.ones(3))], gradients=False).find()
    assert not Addresses([torch.ones(3, requires_grad=True)], gradients=False).find()  # a plain tensor


def test_the_team_has_as_many_threads_as_torch(kernel, monkeypatch):
    asked = []
    fake = type("Fake", (), {"team": staticmethod(lambda *about: asked.append(about))})
    team, before = Team(fake()), torch.get_num_threads()
    try:
        for number in (1, 2, 2, 3, 1):
            torch.set_num_threads(number)
            team.gather()
    finally:
        torch.set_num_threads(before)
    assert asked == [(*team_of_torch(), number) for number in (2, 3, 1)]


def test_a_forked_child_reads_alone(kernel):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    stats.TEAM.gather()
    t = torch.ones(1_000_000)
    assert measured(t)[0][0] == 1
    child = os.fork()
    if child == 0:  # its team did not come along: asking it would hang
        good = measured(t)[0][0] == 1
        stats.TEAM.gather()
        os._exit(0 if good and measured(t)[0][0] == 1 else 1)
    torch.set_num_threads(before)
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert status == 0
