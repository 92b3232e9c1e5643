"""The numbers of tensors of every kind: read, or not known; never NaN where there is none."""

import math
import warnings

import pytest
import torch

from clew.measure import stats
from clew.measure.gradient_norm import GradientNorm
from clew.measure.readable_tensors import is_nonfinite, readable


class Marked(torch.Tensor):
    pass


class Spread(torch.Tensor):
    """As a distributed tensor: a wrapper that has a part of the whole."""

    @staticmethod
    def __new__(cls, part):
        return torch.Tensor._make_wrapper_subclass(cls, (8,), dtype=part.dtype)

    def __init__(self, part):
        self._local_tensor = part

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("a collective operation")


def floats(bad):
    return torch.tensor([[3.0, 0.0], [0.0, bad]])


def nested(bad):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a prototype
        return torch.nested.nested_tensor([floats(bad)[0], floats(bad)[1]])


KINDS = {
    "float32": floats,
    "float64": lambda bad: floats(bad).double(),
    "float16": lambda bad: floats(bad).half(),
    "bfloat16": lambda bad: floats(bad).bfloat16(),
    "float8": lambda bad: floats(bad).to(torch.float8_e5m2),
    "complex32": lambda bad: torch.view_as_complex(floats(bad).half()),
    "complex64": lambda bad: torch.view_as_complex(floats(bad)),
    "complex128": lambda bad: torch.view_as_complex(floats(bad).double()),
    "conjugate": lambda bad: torch.view_as_complex(floats(bad)).conj(),
    "coo": lambda bad: floats(bad).to_sparse(),
    "csr": lambda bad: floats(bad).to_sparse_csr(),
    "csc": lambda bad: floats(bad).to_sparse_csc(),
    "bsr": lambda bad: floats(bad).to_sparse_bsr((1, 1)),
    "mkldnn": lambda bad: floats(bad).to_mkldnn(),
    "nested": nested,
    "subclass": lambda bad: floats(bad).as_subclass(Marked),
    "spread": lambda bad: Spread(floats(bad)),
}


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compiled", [True, False])
def test_every_kind_gives_its_norm_and_shows_what_is_not_finite(kind, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(stats, "KERNEL", None)
    sound, bad, infinite = (KINDS[kind](value) for value in (4.0, math.nan, math.inf))
    assert stats.grad_norm([sound]) == 5.0
    assert stats.grad_norm([sound, torch.full((3,), 2.0)]) == pytest.approx(math.sqrt(37))
    assert not math.isfinite(stats.grad_norm([bad]))
    assert not math.isfinite(stats.grad_norm([infinite]))
    assert [is_nonfinite(t) for t in (sound, bad, infinite)] == [False, True, True]


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool])
def test_whole_numbers_are_finite(dtype):
    assert stats.grad_norm([torch.ones(4).to(dtype)]) == 2.0
    assert not is_nonfinite(torch.ones(4).to(dtype))


@pytest.mark.filterwarnings("ignore:.*quantize")
def test_what_cannot_be_read_is_not_known_which_is_not_nan():
    quantised = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    for tensor in (quantised, torch.ones(3, device="meta")):
        assert readable(tensor) is None
        assert not is_nonfinite(tensor)


def test_squares_that_do_not_fit_into_a_float64_make_no_norm_infinite():
    large = torch.nn.Parameter(torch.ones(4, dtype=torch.float64))
    large.grad = torch.full((4,), 1e200, dtype=torch.float64)
    assert GradientNorm([large])() == pytest.approx(2e200)
    large.grad[1] = math.inf
    assert GradientNorm([large])() == math.inf
    large.grad[2] = math.nan
    assert not math.isfinite(GradientNorm([large])())


def test_a_complex_parameter_has_a_norm():
    weight = torch.nn.Parameter(torch.ones(3, dtype=torch.cfloat))
    weight.grad = torch.tensor([3 + 4j, 0, 0], dtype=torch.cfloat)
    assert GradientNorm([weight])() == 5.0
