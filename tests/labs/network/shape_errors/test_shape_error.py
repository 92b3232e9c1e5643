"""Errors that explain: the module stack with shapes, expected against given, and what would help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from networks import LeNet, UNet
from torch import Tensor, nn

import clew
from clew.labs.network.shape_errors.shape_error import ForwardError, explain_mismatch
from clew.records.network import ShapeError


def shape_error_of(model: nn.Module, *inputs: Any) -> ShapeError:
    with pytest.raises(ForwardError) as caught:
        clew.summary(model, list(inputs))
    return caught.value.shape_error


def test_the_stack_leads_to_the_failing_layer() -> None:
    found = shape_error_of(LeNet(hidden=20), (4, 1, 28, 28))
    assert [(f.module, f.kind) for f in found.frames] == [("", "LeNet"), ("fc3", "Linear")]
    assert [t.shape for _, t in found.frames[-1].given] == [(4, 20)]
    assert found.kind == "shape"
    assert (found.expected, found.given) == ("… × 84", "4×20")
    assert found.suggestion is not None
    assert found.suggestion.startswith("Linear(in_features=84) got 20: fc2 before it outputs 20")
    assert found.file is not None
    assert found.file.endswith("networks.py")
    assert found.code == "return self.fc3(x)"


def test_the_error_itself_carries_the_explanation() -> None:
    with pytest.raises(ForwardError, match=r"Linear\(in_features=84\) got 20") as caught:
        clew.summary(LeNet(hidden=20), (4, 1, 28, 28))
    assert "fc3  Linear(in_features=84, out_features=10, bias=True) ✗  input 4×20" in str(caught.value)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_the_rest_of_the_network_is_shown_on_request() -> None:
    found = clew.summary(LeNet(hidden=20), (4, 1, 28, 28), keep_going=True)
    assert found.shape_error is not None
    assert found.to_json()["mishap"]["error"] == found.shape_error.error  # its key in `clew show --json`
    assert "shape_error" not in found.to_json()
    assert [r.path for r in found.rows if r.outputs] == ["conv1", "conv2", "fc1", "fc2"]
    assert "fc3" in {r.path for r in found.rows}


LAYERS: list[tuple[nn.Module, Any, str, str]] = [
    (nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(144, 2)), (2, 3, 8, 8), "shape", "x.flatten(1) gives 2×144"),
    (nn.Sequential(nn.Linear(5, 2)), (2, 5, 3), "shape", "is a transpose missing?"),
    (nn.Sequential(nn.Conv2d(3, 4, 3)), (2, 8, 8, 3), "shape", "x.permute(0, 3, 1, 2)"),
    (nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(8, 4, 3)), (2, 3, 9, 9), "shape", "0 before it outputs 4"),
    (nn.Sequential(nn.Conv2d(3, 4, 5)), (2, 3, 4, 4), "shape", "smaller than the kernel"),
    (nn.Sequential(nn.Conv2d(1, 4, 5)), (28, 28), "shape", "x[None, None]"),
    (nn.Sequential(nn.BatchNorm2d(8)), (2, 4, 3, 3), "shape", "BatchNorm2d(8) got 4 channels"),
    (nn.Sequential(nn.BatchNorm1d(8)), (1, 8), "shape", "drop_last=True"),
    (nn.Sequential(nn.LayerNorm(16)), (2, 8), "shape", "LayerNorm(16) got 2×8"),
    (nn.Sequential(nn.GroupNorm(2, 8)), (2, 4, 3), "shape", "num_channels=8"),
    (nn.Sequential(nn.LSTM(5, 7)), (2, 3, 4), "shape", "LSTM(input_size=5) got 4"),
    (nn.Sequential(nn.Linear(4, 2)), torch.zeros(2, 4, dtype=torch.float64), "dtype", "dtype=np.float32"),
    (nn.Sequential(nn.Linear(4, 2)), torch.zeros(2, 4, dtype=torch.int64), "dtype", "x.to(torch.float32)"),
    (nn.Sequential(nn.Embedding(10, 4)), torch.zeros(2, 3), "dtype", "x.long()"),
    (
        nn.Sequential(nn.Embedding(10, 4)),
        torch.tensor([3, 10]),
        "index",
        "10 rows, but the ids range from 3 to 10",
    ),
]


@pytest.mark.parametrize(("model", "given", "kind", "hint"), LAYERS)
def test_each_layer_says_what_it_wants(model: nn.Module, given: Any, kind: str, hint: str) -> None:
    found = clew.summary(model, given, compute=True, keep_going=True).shape_error
    assert found is not None
    assert found.suggestion is not None
    assert (found.kind, hint in found.suggestion) == (kind, True), found.suggestion
    assert found.expected
    assert found.given


def caught(action: Callable[[], Any]) -> BaseException:
    try:
        action()
    except Exception as error:  # noqa: BLE001 - the very thing that is looked at
        return error
    raise AssertionError("nothing was raised")


def test_tensors_of_the_users_own_line_are_shown() -> None:
    found = shape_error_of(UNet(), (4, 3, 33, 33))
    assert found.code == "joined = torch.cat([up, skip], 1)"
    assert {name: t.shape for name, t in found.frames[-1].given} == {
        "up": (4, 16, 34, 34),
        "skip": (4, 16, 33, 33),
    }


class Adding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.bias


class Scores(nn.Module):
    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k


def test_operands_that_do_not_broadcast_are_named() -> None:
    found = explain_mismatch(caught(lambda: Adding()(torch.ones(2, 3))))
    assert found is not None
    assert found.given == "x 2×3, self.bias 5"
    assert found.suggestion == "they differ in dimension -1: 3 against 5"


def test_a_missing_transpose_is_suggested() -> None:
    found = explain_mismatch(caught(lambda: Scores()(torch.ones(2, 7, 8), torch.ones(2, 7, 8))))
    assert found is not None
    assert found.suggestion == "transpose the second: k.transpose(-2, -1)"


LOSSES = [
    (nn.CrossEntropyLoss(), torch.randn(4, 3), torch.zeros(4, 1, dtype=torch.int64), "target.squeeze(1)"),
    (nn.CrossEntropyLoss(), torch.randn(4, 3), torch.zeros(4), "target.long()"),
    (nn.CrossEntropyLoss(), torch.randn(4, 3), torch.tensor([0, 1, 2, 3]), "3 classes, but the targets"),
    (nn.BCEWithLogitsLoss(), torch.randn(4, 1), torch.zeros(4), "target.unsqueeze(-1)"),
]


@pytest.mark.parametrize(("loss", "output", "target", "hint"), LOSSES)
def test_losses_say_what_target_they_need(loss: nn.Module, output: Tensor, target: Tensor, hint: str) -> None:
    found = explain_mismatch(caught(lambda: loss(output, target)))
    assert found is not None
    assert hint in (found.suggestion or "")


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA out of memory. Tried to allocate 2 GiB: size too large"),
        RuntimeError("Error(s) in loading state_dict for Net: size mismatch for weight"),
        KeyError("size"),
        RuntimeError("something else"),
    ],
)
def test_other_failures_are_left_to_their_tracebacks(error: BaseException) -> None:
    def fail() -> None:
        nn.Identity()
        raise error

    assert explain_mismatch(caught(fail)) is None


def test_an_error_that_the_program_raises_itself_is_its_own_business() -> None:
    class Strict(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise ValueError("this shape is not supported")

    assert explain_mismatch(caught(lambda: Strict()(torch.ones(1)))) is None


def test_a_batch_that_can_not_be_stacked_is_the_loaders_business() -> None:
    loader = torch.utils.data.DataLoader([torch.ones(2), torch.ones(3)], batch_size=2)

    def load() -> None:
        for x in loader:  # noqa: B007
            pass

    assert explain_mismatch(caught(load)) is None


def test_nothing_is_evaluated_on_the_failing_line() -> None:
    calls = []

    class Sly(nn.Module):
        @property
        def mask(self) -> Tensor:
            calls.append(1)
            return torch.ones(7)

        def forward(self, x: Tensor) -> Tensor:
            return F.relu(x) + self.mask

    found = explain_mismatch(caught(lambda: Sly()(torch.ones(3))))
    assert found is not None
    assert calls == [1]
