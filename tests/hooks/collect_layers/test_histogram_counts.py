"""Histograms against numpy.histogram on the same elements."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clew.hooks.collect_layers.layer_histograms import BINS, MOST_READ, device_row, host_row, stride_for

TORCH_TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def expected(tensor: torch.Tensor) -> tuple[np.ndarray, float, float]:
    flat = tensor.detach().reshape(-1)[:: stride_for(tensor.numel())].double().numpy()
    flat = flat[np.isfinite(flat)]
    counts, edges = np.histogram(flat, bins=BINS)
    return counts, edges[0], edges[-1]


@pytest.mark.parametrize("dtype", TORCH_TYPES)
@pytest.mark.parametrize("shape", [(7,), (), (300, 5), (64, 64, 3, 3), (100_003,)])
def test_counts_and_range_are_numpys(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    row = host_row(tensor)
    assert row is not None
    if tensor.numel() == 1:
        assert (row[0], row[1], row[2]) == (tensor.item(), tensor.item(), 1)
        return
    counts, low, high = expected(tensor)
    assert (row[0], row[1]) == (low, high)
    assert np.abs(row[2:] - counts).sum() <= 2  # a value on an edge may be rounded to either side
    assert row[2:].sum() == counts.sum() <= MOST_READ


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.t(),
        lambda t: t[::3, 1::2],
        lambda t: t[:, :1].expand(-1, 40),
        lambda t: t.view(30, 40, 1, 1).to(memory_format=torch.channels_last),
        lambda t: t[5:].requires_grad_(),
    ],
)
def test_views_are_read_as_the_values_that_they_show(make) -> None:
    tensor = make(torch.randn(30, 40, generator=torch.Generator().manual_seed(2)))
    row = host_row(tensor)
    counts, low, high = expected(tensor)
    assert row is not None
    assert (row[0], row[1]) == pytest.approx((low, high))
    assert np.abs(row[2:] - counts).sum() <= 2


def test_what_is_not_finite_is_left_out() -> None:
    tensor = torch.tensor([1.0, float("nan"), 3.0, float("inf"), 2.0])
    row = host_row(tensor)
    assert row is not None
    assert (row[0], row[1], row[2:].sum()) == (1.0, 3.0, 3)


def test_equal_values_are_one_bar_of_no_width() -> None:
    row = host_row(torch.full((50,), -0.25))
    assert row is not None
    assert (row[0], row[1], row[2], row[3:].sum()) == (-0.25, -0.25, 50, 0)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(0),
        torch.tensor([float("nan")]),
        torch.ones(3, dtype=torch.int64),
        torch.ones(3, dtype=torch.complex64),
        torch.eye(3).to_sparse(),
    ],
)
def test_what_has_no_finite_floating_point_values_has_no_histogram(tensor: torch.Tensor) -> None:
    assert host_row(tensor) is None


def test_every_column_of_a_large_matrix_is_among_the_elements_read() -> None:
    columns = torch.arange(64.0).repeat(65536, 1)
    row = host_row(columns)
    assert row is not None
    assert (row[0], row[1]) == (0, 63)
    assert (row[2:] > 0).all()


def test_a_device_gives_the_same_row_as_the_host() -> None:
    tensor = torch.randn(100, 71, generator=torch.Generator().manual_seed(3))
    tensor[3, 4] = float("inf")
    on_device = device_row(tensor)
    on_host = host_row(tensor)
    assert on_device is not None
    assert on_host is not None
    assert np.abs(on_device.numpy() - on_host).sum() <= 4


def test_reading_leaves_no_trace_on_the_tensor() -> None:
    tensor = torch.randn(5000, requires_grad=True)
    version, state = tensor._version, torch.get_rng_state()
    host_row(tensor)
    assert tensor._version == version
    assert tensor.grad_fn is None
    assert torch.equal(torch.get_rng_state(), state)
