from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import clew


def test_a_tensor_is_described_by_what_matters() -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, 3.0]], requires_grad=True)
    assert str(clew.describe(x)) == "Tensor 2×2 float32 1.5±1.12 [0, 3] █   █   █  █ 25% zeros requires_grad"
    assert str(clew.describe(x.sum())) == "Tensor scalar float32 6.0 SumBackward0"


def test_what_is_not_finite_stands_out() -> None:
    found = clew.describe(torch.tensor([1.0, float("nan"), float("inf"), 2.0]))
    assert (found.nans, found.infs) == (1, 1)
    assert "1 NaN! 1 Inf!" in str(found)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.empty(0, 3),
        torch.empty(2, 3, device="meta"),
        torch.ones(2, dtype=torch.complex64),
        torch.eye(3).to_sparse(),
        torch.tensor([True, False]),
        torch.zeros(3, dtype=torch.int64),
        torch.full((2,), float("nan")),
        torch.ones(2, dtype=torch.bfloat16),
        torch.ones(2).to(torch.float8_e4m3fn),
        torch.ones(2).to(torch.uint16),
    ],
)
def test_every_kind_of_tensor_has_a_description(tensor: Tensor) -> None:
    text = str(clew.describe(tensor))
    assert text.startswith(
        f"Tensor {'×'.join(map(str, tensor.shape))} {str(tensor.dtype).removeprefix('torch.')}"
    )
    assert clew.describe(tensor)._repr_html_().startswith("<table>")


def test_a_complex_tensor_shows_magnitudes() -> None:
    text = str(clew.describe(torch.tensor([3 + 4j, 0j])))
    assert text.startswith("Tensor 2 complex64 magnitude 2.5±2.5 [0, 5]")
    assert str(clew.describe(torch.tensor(1 + 2j))) == "Tensor scalar complex64 (1+2j)"


@pytest.mark.filterwarnings("ignore:.*Sparse CSR tensor support is in beta:UserWarning")
def test_a_sparse_tensor_says_so_and_how_much_it_stores() -> None:
    for sparse in (torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr()):
        assert "nnz 3 1±0 [1, 1]" in str(clew.describe(sparse))


@pytest.mark.filterwarnings("ignore:.*nested tensors is in prototype:UserWarning")
def test_a_nested_tensor_is_described_by_all_that_it_holds() -> None:
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.ones(2)])
    assert str(clew.describe(nested)).startswith("Tensor 2 float32 nested 0.5±0.5 [0, 1]")


def test_the_spread_of_huge_values_is_finite() -> None:
    found = clew.describe(torch.tensor([1e300, -1e300], dtype=torch.float64)).values
    assert found is not None
    assert (found.mean, found.std) == (0.0, 1e300)


def test_of_a_large_tensor_a_sample_is_described_with_its_exact_range_and_faults() -> None:
    large = torch.zeros(3000, 1000)
    large[:, ::2] = 1
    large[17, 3], large[18, 4], large[19, 5] = -7, 9, float("nan")
    for tensor in (large, large.t()):
        found = clew.describe(tensor)
        assert found.sampled
        assert found.values is not None
        assert (found.values.min, found.values.max, found.nans, found.infs) == (-7, 9, 1, 0)
        assert found.values.mean == pytest.approx(0.5, abs=0.01)
        assert "~50% zeros" in str(found)


def test_what_expand_repeats_is_looked_at_once() -> None:
    found = clew.describe(torch.tensor([[1.0], [float("nan")]]).expand(2, 10**12))
    assert found.nans == 10**12
    assert not found.sampled


@pytest.fixture
def described() -> Iterator[None]:
    clew.describe_tensors()
    yield
    clew.describe_tensors(False)


@pytest.mark.usefixtures("described")
def test_shells_and_notebooks_show_descriptions_once_asked_for() -> None:
    assert repr(torch.zeros(2, 3)).startswith("Tensor 2×3 float32 0±0")
    assert "<td>2×3 float32</td>" in torch.zeros(2, 3)._repr_html_()  # type: ignore[attr-defined]


class Odd(Tensor):
    """None of what is asked of a tensor works on it."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.__repr__ or func is plain_repr:
            return "odd <one>"
        raise RuntimeError("not with me")


plain_repr = Tensor.__repr__


@pytest.mark.usefixtures("described")
def test_a_tensor_that_can_not_be_described_shows_itself_torchs_way() -> None:
    odd = torch.zeros(2).as_subclass(Odd)
    assert repr(odd) == "odd <one>"
    assert odd._repr_html_() == "<pre>odd &lt;one&gt;</pre>"  # type: ignore[attr-defined]


def test_torchs_own_way_comes_back() -> None:
    before = Tensor.__repr__
    clew.describe_tensors()
    clew.describe_tensors(False)
    assert Tensor.__repr__ is before
    assert not hasattr(Tensor, "_repr_html_")
    assert repr(torch.zeros(1)) == "tensor([0.])"


def test_only_tensors_are_described() -> None:
    with pytest.raises(TypeError, match="not int"):
        clew.describe(3)  # type: ignore[arg-type]
