from __future__ import annotations

from collections.abc import Iterator

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
    ],
)
def test_every_kind_of_tensor_has_a_description(tensor: Tensor) -> None:
    text = str(clew.describe(tensor))
    assert text.startswith(
        f"Tensor {'×'.join(map(str, tensor.shape))} {str(tensor.dtype).removeprefix('torch.')}"
    )
    assert clew.describe(tensor)._repr_html_().startswith("<table>")


@pytest.fixture
def described() -> Iterator[None]:
    clew.describe_tensors()
    yield
    clew.describe_tensors(False)


@pytest.mark.usefixtures("described")
def test_shells_and_notebooks_show_descriptions_once_asked_for() -> None:
    assert repr(torch.zeros(2, 3)).startswith("Tensor 2×3 float32 0±0")
    assert "<td>2×3 float32</td>" in torch.zeros(2, 3)._repr_html_()  # type: ignore[attr-defined]


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
