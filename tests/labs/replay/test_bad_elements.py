"""Which elements and samples a culprit points to, and with which numbers it is explained."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from clew.labs.replay.bad_elements import is_elementwise
from clew.labs.replay.culprits import find_suspects
from clew.labs.replay.microscope import Microscope
from clew.labs.snapshot.nonfinite_values import Culprit

INF = math.inf


def blamed(step: Any, *inputs: torch.Tensor, batch: int | None = None) -> Culprit:
    scope = Microscope()
    given = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    with scope:
        loss = step(*given)
        found = find_suspects(scope, [loss], batch or len(given[0]))
        if not found:
            gradients = torch.autograd.grad(loss, [g for g in given if g.requires_grad])
            found = find_suspects(scope, gradients, batch or len(given[0]))
    return found[0].culprit


@pytest.mark.parametrize("op", ["log", "div", "cast", "where", "sigmoid_backward", "addcdiv"])
def test_operations_that_work_element_by_element_are_known(op):
    assert is_elementwise(op)


@pytest.mark.parametrize("op", ["linear", "matmul", "conv", "softmax", "sum", "cumsum", "nobody_knows"])
def test_others_point_into_no_input(op):
    assert not is_elementwise(op)


def rows(n: int, *large: int, size: float = 3e38) -> torch.Tensor:
    x = torch.ones(n, n)
    x[list(large)] = size
    return x


@pytest.mark.parametrize(
    "product",
    [
        lambda x, w: F.linear(x, w, torch.full((8,), 0.125)).sum(),
        lambda x, w: (x @ w.T).sum(),
        lambda x, w: F.linear(x, w).sum(),
    ],
    ids=["addmm", "mm", "linear"],
)
def test_of_a_product_of_the_inputs_shape_row_and_factors_are_named_and_not_the_bias(product):
    found = blamed(product, rows(8, 5), torch.full((8, 8), 0.5))
    assert (found.op, found.elements_of, found.samples) == (found.op, "the result", (5,))
    assert found.elements[0] == (5, 0)
    assert not found.element_values
    assert "factors reach 3e+38" in found.why
    (note,) = found.notes
    assert "row 5 of input" in note
    assert "reaches 3e+38, column 0 of input" in note
    assert note.endswith("reaches 0.5")


def test_of_a_batched_product_the_matrix_is_named_too():
    x = torch.ones(4, 3, 3)
    x[2, 1] = 3e38
    (note,) = blamed(lambda x: torch.bmm(x, torch.ones(4, 3, 3)).sum(), x).notes
    assert note == "there, row [2, 1] of input 0 reaches 3e+38, column 0 of input 1 reaches 1"


def test_of_a_convolution_sample_and_channel_are_named():
    x = torch.ones(4, 2, 5, 5)
    x[3] = 3e38
    found = blamed(lambda x: F.conv2d(x, torch.ones(2, 2, 3, 3), torch.ones(2), padding=1).sum(), x)
    assert (found.samples, found.elements_of) == ((3,), "the result")
    assert found.notes == ("there, sample 3 of input 0 reaches 3e+38, channel 0 of input 1 reaches 1",)


def test_a_broadcast_divisor_is_counted_once():
    divisor = torch.ones(32, 1)
    divisor[13] = 0
    found = blamed(lambda x, d: (x / d).sum(), torch.ones(32, 784), divisor)
    assert (found.elements, found.element_values) == (((13, 0),), (0.0,))
    assert (found.element_count, found.bad_count, found.elements_of) == (1, 784, "input 1 of div")
    assert (found.samples, found.sample_count, found.batch) == ((13,), 1, 32)


def test_all_samples_are_counted_though_not_all_are_listed():
    found = blamed(lambda x: torch.log(x * 0).sum(), torch.ones(20, 3))
    assert (len(found.samples), found.sample_count, found.batch) == (8, 20, 20)


def test_a_single_number_points_nowhere():
    found = blamed(lambda x: torch.log(x.sum() * 0), torch.ones(4, 3))
    assert (found.elements, found.samples) == ((), ())


def test_the_exponential_is_told_with_its_sign():
    x = torch.tensor([[-10300.0, 1.0], [5472.0, 2.0]])
    assert "the exponential of 5472 is more than float32" in blamed(lambda x: torch.exp(x).sum(), x).why


def test_a_cast_is_told_with_a_number_that_does_not_fit():
    x = torch.tensor([[-7e4, 1.0], [2.0, 2.0]])
    assert blamed(lambda x: x.half().float().sum(), x).why.startswith("7e+04 does not fit into float16")


@pytest.mark.parametrize(
    ("dtype", "size", "wider"),
    [(torch.float32, 3e38, False), (torch.bfloat16, 3e38, False), (torch.float16, 6e4, True)],
)
def test_a_wider_format_is_advised_where_there_is_one(dtype, size, wider):
    found = blamed(lambda x: (x * 2).float().sum(), torch.full((2, 2), size, dtype=dtype))
    assert ("float32" in found.fix) is wider


def test_a_gradient_of_a_root_that_overflows_far_from_zero_is_not_put_down_to_zero():
    found = blamed(lambda x: (torch.sqrt(x * 1e-30) * 1e30).sum() * 1e6, torch.ones(2, 2))
    assert (found.phase, found.op) == ("backward", "sqrt")
    assert found.why.startswith("the gradient becomes more than float32 can hold")


def test_samples_are_found_in_the_heads_of_an_attention():
    attention = nn.MultiheadAttention(8, 4, batch_first=True)
    masked = torch.zeros(6, 5, dtype=torch.bool)
    masked[2] = True

    def step(x):
        return attention(x, x, x, key_padding_mask=masked, need_weights=True)[0].sum()

    found = blamed(step, torch.randn(6, 5, 8))
    assert (found.op, found.samples, found.batch) == ("softmax", (2,), 6)


def test_rows_of_a_weights_gradient_are_no_samples():
    """Twice as many as the batch has, as the rows of an attention with two heads."""
    weight = torch.full((8, 3), 1e-5)
    found = blamed(lambda w: (F.linear(torch.full((4, 3), 1e30), w) * 1e-30).sum() * 1e38, weight, batch=4)
    assert (found.phase, found.op, found.bad_count) == ("backward", "matmul", 24)
    assert not found.samples


def test_targets_whose_class_is_masked_are_named_as_samples():
    def step(x):
        scores = x.masked_fill(torch.tensor([True, False, False]), -INF)
        return F.cross_entropy(scores, torch.tensor([1, 0, 2, -100, 0]))

    found = blamed(step, torch.ones(5, 3))
    assert (found.op, found.samples, found.elements) == ("nll_loss", (1, 4), ())


@pytest.mark.filterwarnings("ignore:Sparse")
def test_complex_numbers_are_explained_without_an_order():
    found = blamed(lambda x: torch.log(torch.complex(x * 0, x * 0)).abs().sum(), torch.ones(4, 3))
    assert found.op == "log"
    assert "logarithm of 0" in found.why
