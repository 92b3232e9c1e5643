"""The value of a loss: read by the kernel or by torch, always the same."""

import math
import sys

import pytest
import torch
from torch import nn

from clew.measure import stats
from clew.measure.stats import number


@pytest.fixture(params=["by the kernel", "by torch"], autouse=True)
def way(request, monkeypatch):
    assert stats._read_number is not None, "no compiled kernel: python scripts/build_kernel.py"
    if request.param == "by torch":
        monkeypatch.setattr(stats, "_read_number", None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_single_number_is_read(dtype, shape):
    assert number(torch.full(shape, -2.5, dtype=dtype)) == -2.5
    assert number(torch.full((4, *shape), 0.25, dtype=dtype)[2]) == 0.25
    assert math.isnan(number(torch.full(shape, math.nan, dtype=dtype)))


def test_a_loss_with_its_graph_is_read():
    loss = (nn.Linear(3, 1)(torch.ones(2, 3)) * 0 + 1.5).mean()
    assert number(loss) == 1.5
    assert loss.grad_fn is not None


@pytest.mark.parametrize(
    "value",
    [
        torch.ones(2),
        torch.ones(0),
        torch.ones((), device="meta"),
        nn.Parameter(torch.ones(())),
        torch.tensor(1 + 2j).conj().imag,  # its memory holds 2, it is -2
        [torch.ones(())],
        3.0,
        None,
    ],
    ids=["two", "none", "meta", "parameter", "negated", "list", "float", "nothing"],
)
def test_anything_else_is_left_to_others(value):
    assert number(value) is None


def test_reading_leaves_no_reference_and_no_error_behind():
    sparse, loss = torch.ones(1).to_sparse(), torch.ones(())
    counts = []
    for _ in range(3):
        assert number(sparse) in (None, 1.0)
        assert number(loss) == 1.0
        counts.append((sys.getrefcount(sparse), sys.getrefcount(loss), sys.getrefcount(None)))
    assert counts[1][:2] == counts[2][:2]
    assert abs(counts[2][2] - counts[1][2]) < 50
