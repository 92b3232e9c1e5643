"""Types that torch does not take together are refused without computing, too, in torch's words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import clew
from clew.labs.network.trace.traced_forward import without_computing

FLOATS, DOUBLES, WHOLE = torch.randn(3, 4), torch.randn(4, 5).double(), torch.ones(3, 4, dtype=torch.int64)

REFUSED: dict[str, Callable[[], object]] = {
    "matmul": lambda: FLOATS @ DOUBLES,
    "linear": lambda: F.linear(FLOATS, DOUBLES.T),
    "linear with a bias": lambda: F.linear(FLOATS, DOUBLES.T, torch.zeros(5).double()),
    "a bias of another type": lambda: F.linear(FLOATS, DOUBLES.float().T, torch.zeros(5).double()),
    "whole numbers": lambda: F.linear(WHOLE, DOUBLES.T),
    "half weights": lambda: F.linear(FLOATS, DOUBLES.T.half()),
    "conv": lambda: F.conv1d(FLOATS[None], torch.ones(2, 3, 1).double()),
    "layer norm": lambda: F.layer_norm(FLOATS, (4,), torch.ones(4).double(), torch.zeros(4).double()),
    "softmax of whole numbers": lambda: F.softmax(WHOLE, 1),
    "gelu of whole numbers": lambda: F.gelu(WHOLE),
    "classes as int32": lambda: F.cross_entropy(FLOATS, torch.ones(3, dtype=torch.int32)),
    "vector": lambda: FLOATS.mv(DOUBLES[:, 0]),
}
TAKEN: dict[str, Callable[[], object]] = {
    "promotion": lambda: FLOATS + DOUBLES[:3, :4],
    "a mask": lambda: torch.where(FLOATS > 0, FLOATS, DOUBLES[:3, :4].float()),
    "classes": lambda: F.cross_entropy(FLOATS, torch.ones(3, dtype=torch.int64)),
    "probabilities as target": lambda: F.cross_entropy(FLOATS, FLOATS.softmax(1)),
    "whole products": lambda: WHOLE @ WHOLE.T,
    "embedding": lambda: F.embedding(WHOLE, DOUBLES),
    "half with float norms": lambda: F.layer_norm(FLOATS.bfloat16(), (4,), torch.ones(4), torch.zeros(4)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_is_refused_in_its_words(name: str) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)) as real:
        REFUSED[name]()
    faked = without_computing(REFUSED[name], (), {}).error
    assert type(faked) is real.type
    assert str(faked).splitlines()[0] == str(real.value).splitlines()[0]


@pytest.mark.parametrize("name", TAKEN)
def test_what_torch_takes_is_taken(name: str) -> None:
    TAKEN[name]()
    assert without_computing(TAKEN[name], (), {}).error is None


def test_a_summary_explains_an_input_of_another_type() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
    with pytest.raises(RuntimeError, match="float64"):
        clew.summary(model, torch.randn(2, 4, dtype=torch.float64))


def test_parameters_alone_are_no_reason_to_compute() -> None:
    """A model far larger than memory is summed up all the same."""
    with torch.device("meta"):
        model = torch.nn.Linear(2**18, 2**18)
    found = clew.summary(model, (2, 2**18))
    assert found.parameters == 2**36 + 2**18
    assert isinstance(found.flops, int)


def half(x: Tensor) -> Tensor:
    return x.half()


def test_a_cast_by_the_model_itself_is_fine() -> None:
    assert without_computing(lambda: F.linear(half(FLOATS), DOUBLES.T.half()), (), {}).error is None
