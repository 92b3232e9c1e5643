"""The row of a layer in one call of the kernel: the same numbers as one by one, or none at all."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest
import torch
from oracle import assert_same_stats, naive_dead, naive_hist, naive_saturated, naive_stats

from clew.measure import stats
from clew.measure.stats import KernelRow, Matrix

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


class Sheet:
    """Three rows of nine numbers, of which the middle one is filled."""

    def __init__(self, **about):
        self.values, self.hist = np.full((3, 9), -1.0), np.full((3, 32), 7, np.uint8)
        self.matrix = Matrix(self.values.ctypes.data, self.values.strides[0], self.hist.ctypes.data)
        self.row = KernelRow(self.matrix, 1, True, **about)

    def untouched(self):
        return (self.values == -1.0).all() and (self.hist == 7).all()


def rectified(*shape, dtype=torch.float32):
    values = torch.randn(*shape, generator=torch.Generator().manual_seed(0)).relu().to(dtype)
    values[:, 1] = 0
    return values


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "made",
    [
        lambda t: t,
        lambda t: t.contiguous(memory_format=torch.channels_last),
        lambda t: t.transpose(0, 1).contiguous().transpose(0, 1),
        lambda t: t.clone().requires_grad_() * 1.0,
        lambda t: t[1:],
    ],
    ids=["in order", "channels last", "units first", "with a graph", "a part"],
)
def test_a_row_holds_what_one_by_one_would_tell(dtype, made):
    tensor = made(rectified(5, 6, 4, 3, dtype=dtype))
    sheet = Sheet(lo=0.25, hi=1.5, unit_dim=1, dims=4)
    assert sheet.row.fill(tensor) is True
    tensor = tensor.detach()
    assert_same_stats(sheet.values[1, :7], naive_stats(tensor), "row")
    np.testing.assert_array_equal(sheet.hist[1], naive_hist(tensor))
    assert sheet.values[1, 7] == naive_dead(tensor, 1) == pytest.approx(1 / 6)
    assert sheet.values[1, 8] == pytest.approx(naive_saturated(tensor, 0.25, 1.5))
    assert (sheet.values[[0, 2]] == -1.0).all()
    assert (sheet.hist[[0, 2]] == 7).all()


def test_without_units_and_bounds_their_shares_are_not_known():
    sheet = Sheet()
    assert sheet.row.fill(rectified(8, 3))
    assert np.isnan(sheet.values[1, 7:]).all()


def test_a_large_tensor_is_read_while_other_threads_may_run():
    tensor = rectified(3, 700_000)
    sheet = Sheet(unit_dim=-1, dims=2)
    assert sheet.row.fill(tensor)
    assert_same_stats(sheet.values[1, :7], naive_stats(tensor), "large")
    assert sheet.values[1, 7] == naive_dead(tensor, 1)


def test_histograms_are_left_alone_where_none_are_wanted():
    sheet = Sheet()
    sheet.matrix.hist = None
    assert sheet.row.fill(rectified(8, 3))
    assert (sheet.hist == 7).all()


class Kind(torch.Tensor):
    pass


OTHERS = {
    "nothing": lambda: None,
    "several": lambda: (torch.ones(3),),
    "whole numbers": lambda: torch.ones(3, dtype=torch.int64),
    "complex": lambda: torch.ones(3, dtype=torch.complex64),
    "empty": lambda: torch.empty(0),
    "with gaps": lambda: torch.ones(4, 6)[:, ::2],
    "expanded": lambda: torch.ones(4, 1).expand(4, 3),
    "overlapping": lambda: torch.ones(9).as_strided((3, 3), (2, 2)),
    "negated": lambda: torch.ones(3, dtype=torch.complex64).conj().imag,
    "sparse": lambda: torch.eye(3).to_sparse(),
    "without memory": lambda: torch.ones(3, device="meta"),
    "of another class": lambda: torch.ones(3).as_subclass(Kind),
    "a parameter": lambda: torch.nn.Parameter(torch.ones(3)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_the_kernel_cannot_read_is_refused_and_nothing_is_written(name):
    sheet = Sheet()
    assert not sheet.row.fill(OTHERS[name]())
    assert sheet.untouched()


def test_another_number_of_axes_is_refused_where_units_are_counted():
    sheet = Sheet(unit_dim=1, dims=4)
    assert not sheet.row.fill(rectified(8, 3))
    assert sheet.untouched()


def test_a_tensor_that_stands_for_many_is_refused():
    sheet, told = Sheet(), []

    def look(x):
        told.append(sheet.row.fill(x))
        return x * 2

    torch.func.vmap(look)(torch.ones(3, 4))
    torch.func.grad(lambda x: look(x).sum())(torch.ones(4))
    assert told == [False, False]
    assert sheet.untouched()


def test_without_the_kernel_every_tensor_is_refused(monkeypatch):
    monkeypatch.setattr(stats, "KERNEL", None)
    assert not Sheet().row.fill(torch.ones(3))


def test_an_infinite_value_counts_and_the_rest_is_told():
    sheet = Sheet()
    assert sheet.row.fill(torch.tensor([1.0, math.inf, 3.0]))
    assert sheet.values[1, 0] == 2.0
    assert sheet.values[1, 6] == 1


def test_the_structures_are_those_of_the_kernel():
    assert ctypes.sizeof(Matrix) == 24
    assert ctypes.sizeof(type(Sheet().row._layer)) == 48
