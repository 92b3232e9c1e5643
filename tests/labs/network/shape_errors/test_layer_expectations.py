"""What layers and losses say when a forward fails: every suggestion that is a call is tried."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import clew
from clew.labs.network.shape_errors.shape_error import explain_mismatch, kind_of_error
from clew.records.network import ShapeError


def caught(action: Callable[[], Any]) -> BaseException:
    try:
        action()
    except Exception as error:  # noqa: BLE001 - the very thing that is looked at
        return error
    raise AssertionError("nothing was raised")


def told(action: Callable[[], Any]) -> ShapeError:
    found = explain_mismatch(caught(action))
    assert found is not None
    assert found.expected
    assert found.given
    return found


def suggested(shape_error: ShapeError) -> list[str]:
    """Calls on `x` in the suggestion."""
    return re.findall(r"x(?:\.\w+\([^()]*\)|\[None, None\])", shape_error.suggestion or "")


RESHAPED: list[tuple[nn.Module, tuple[int, ...], str]] = [
    (nn.Conv2d(1, 4, 3), (64, 28, 28), "x.unsqueeze(1)"),
    (nn.Conv2d(1, 4, 3), (28, 28), "x[None, None]"),
    (nn.Conv2d(1, 4, 3), (64, 784), "x.view(-1, 1, 28, 28)"),
    (nn.Conv2d(3, 4, 3), (64, 3072), "x.view(-1, 3, 32, 32)"),
    (nn.Conv2d(3, 4, 3), (2, 28, 28, 3), "x.permute(0, 3, 1, 2)"),
    (nn.Conv2d(3, 4, 3), (28, 28, 3), "x.permute(2, 0, 1)"),
    (nn.Conv2d(1, 4, 3), (28, 28, 1), "x.permute(2, 0, 1)"),
    (nn.Conv2d(3, 4, 3), (2, 5, 3, 9, 9), "x.flatten(0, 1)"),
    (nn.Conv1d(1, 4, 3), (64, 100), "x.unsqueeze(1)"),
    (nn.Conv1d(1, 4, 3), (100,), "x[None, None]"),
    (nn.Conv1d(16, 4, 3), (2, 30, 16), "x.transpose(1, 2)"),
    (nn.Conv1d(16, 4, 3), (30, 16), "x.transpose(0, 1)"),
    (nn.Conv3d(1, 4, 3), (2, 8, 8, 8), "x.unsqueeze(1)"),
    (nn.Conv3d(2, 4, 3), (5, 8, 8, 8, 2), "x.permute(0, 4, 1, 2, 3)"),
    (nn.ConvTranspose2d(3, 4, 3), (2, 9, 9, 3), "x.permute(0, 3, 1, 2)"),
    (nn.BatchNorm1d(8), (4, 5, 8), "x.transpose(1, 2)"),
    (nn.BatchNorm2d(8), (4, 5, 5, 8), "x.permute(0, 3, 1, 2)"),
    (nn.BatchNorm2d(8), (8, 5, 5), "x.unsqueeze(0)"),
    (nn.GroupNorm(2, 8), (4, 5, 8), "x.transpose(1, 2)"),
    (nn.LSTM(12, 3), (5, 2, 3, 4), "x.flatten(2)"),
]


@pytest.mark.parametrize(("layer", "shape", "fix"), RESHAPED)
def test_a_call_that_is_suggested_helps(layer: nn.Module, shape: tuple[int, ...], fix: str) -> None:
    x = torch.randn(shape)
    found = told(lambda: layer(x))
    assert fix in suggested(found), found.suggestion
    for call in suggested(found):
        layer(eval(call, {"x": x}))
    assert "set in_channels" not in (found.suggestion or "")
    assert "before it outputs" not in (found.suggestion or "")


NOTHING_CERTAIN = [
    (nn.Conv2d(3, 4, 3), (64, 28, 28)),  # a batch without channels, or one sample of 64?
    (nn.Conv2d(3, 4, 3), (4, 3, 2, 9, 9)),
    (nn.Conv2d(3, 4, 3), (7,)),
    (nn.Conv1d(16, 4, 3), (4, 30)),
    (nn.BatchNorm2d(1), (4, 8, 1, 1)),
    (nn.GRU(16, 3), (16,)),
    (nn.LSTM(16, 3), (5, 2, 3, 7)),
]


@pytest.mark.parametrize(("layer", "shape"), NOTHING_CERTAIN)
def test_no_call_is_suggested_where_none_is_certain(layer: nn.Module, shape: tuple[int, ...]) -> None:
    found = told(lambda: layer(torch.randn(shape)))
    assert not suggested(found)
    assert "set in_channels" not in (found.suggestion or "")


def test_groups_are_kept_divisible() -> None:
    found = told(lambda: nn.Conv2d(8, 8, 3, groups=4)(torch.randn(4, 6, 9, 9)))
    assert "in_channels=6" not in (found.suggestion or "")
    assert "multiple of groups=4" in (found.suggestion or "")
    even = told(lambda: nn.Conv2d(8, 8, 3, groups=2)(torch.randn(4, 6, 9, 9)))
    assert "set in_channels=6" in (even.suggestion or "")


def test_channels_are_not_looked_for_in_an_image_of_one_pixel() -> None:
    found = told(lambda: nn.Conv2d(1, 2, 1)(torch.randn(2, 3, 1, 1)))
    assert not suggested(found)


def test_heads_are_kept_divisible() -> None:
    attention = nn.MultiheadAttention(16, 4)
    odd, even = torch.randn(5, 2, 10), torch.randn(5, 2, 12)
    assert "embed_dim=10" not in str(told(lambda: attention(odd, odd, odd)).suggestion)
    assert "embed_dim=12" in str(told(lambda: attention(even, even, even)).suggestion)


@pytest.mark.parametrize(
    ("layer", "shape", "said"),
    [
        (nn.Linear(20, 3), (4, 21), "Linear(in_features=20) got 21; set in_features=21, or pass it 20"),
        (
            nn.Conv2d(3, 8, 3),
            (4, 5, 9, 9),
            "Conv2d(in_channels=3) got 5 channels; set in_channels=5, or pass it 3",
        ),
    ],
)
def test_the_first_layer_has_no_layer_before_it(layer: nn.Module, shape: tuple[int, ...], said: str) -> None:
    assert told(lambda: layer(torch.zeros(shape))).suggestion == said


def test_a_layer_before_is_quoted_only_with_what_it_outputs() -> None:
    model = nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(8))
    found = clew.summary(model, (4, 5, 3), keep_going=True).shape_error
    assert found is not None
    assert found.suggestion == "BatchNorm1d(8) got 5 channels: 0 before it outputs 4×5×6"
    model = nn.Sequential(nn.Conv1d(3, 8, 3), nn.Linear(9, 2))
    found = clew.summary(model, (4, 3, 12), keep_going=True).shape_error
    assert found is not None
    assert (found.suggestion or "").startswith("Linear(in_features=9) got 10; ")


@pytest.mark.parametrize(
    ("norm", "shape", "fix"),
    [
        (nn.BatchNorm2d(8), (4, 8), "BatchNorm1d(8) takes 2"),
        (nn.BatchNorm1d(8), (4, 8, 3, 3), "BatchNorm2d(8) takes 4"),
        (nn.BatchNorm3d(8), (4, 8, 3, 3), "BatchNorm2d(8) takes 4"),
        (nn.BatchNorm2d(8), (4, 7), ""),
    ],
)
def test_a_norm_of_another_rank_is_named_where_it_fits(
    norm: nn.Module, shape: tuple[int, ...], fix: str
) -> None:
    found = told(lambda: norm(torch.randn(shape)))
    assert found.kind == "shape"
    assert fix in (found.suggestion or "")
    assert bool(fix) == (" takes 2" in str(found.suggestion) or ": BatchNorm2d" in str(found.suggestion))


def test_a_hidden_state_is_held_against_the_input() -> None:
    rnn, x = nn.LSTM(16, 8, 2, batch_first=True), torch.randn(5, 3, 16)
    h, c = torch.zeros(2, 5, 8), torch.zeros(2, 5, 8)
    found = told(lambda: rnn(x, (h.transpose(0, 1), c)))
    assert (found.expected, found.given) == ("h of 2×5×8", "5×2×8")
    assert "transpose(0, 1)" in (found.suggestion or "")
    assert told(lambda: rnn(x, (h, c[:1]))).expected == "c of 2×5×8"
    assert "a batch of 5" in str(told(lambda: rnn(x, (h[:, :3], c[:, :3]))).suggestion)
    gru = nn.GRU(16, 8)
    assert told(lambda: gru(x, torch.zeros(1, 5, 8))).expected == "h of 1×3×8"


def test_weights_without_values_are_not_moved() -> None:
    found = told(lambda: nn.Linear(8, 3, device="meta")(torch.randn(4, 8)))
    assert found.kind == "device"
    assert "model.to('cpu')" not in (found.suggestion or "")
    assert "to_empty" in (found.suggestion or "")


def ids(high: int, *shape: int) -> Tensor:
    return torch.arange(torch.Size(shape).numel()).view(shape) % high


FITTED: list[tuple[Any, Tensor, Tensor]] = [
    (F.cross_entropy, torch.randn(4, 7, 5), ids(5, 4, 7)),
    (F.cross_entropy, torch.randn(2, 4, 7, 5), ids(5, 2, 4, 7)),
    (F.cross_entropy, torch.randn(4, 7, 5), ids(5, 28)),
    (F.cross_entropy, torch.randn(28, 5), ids(5, 4, 7)),
    (F.cross_entropy, torch.randn(4, 5), ids(5, 4, 1)),
    (F.cross_entropy, torch.randn(4, 5), F.one_hot(ids(5, 4), 5)),
    (F.cross_entropy, torch.randn(4, 5), ids(5, 4).float()),
    (F.cross_entropy, torch.randn(4, 5), ids(5, 4).int()),
    (F.nll_loss, torch.randn(4, 5), ids(5, 4, 1)),
    (nn.CrossEntropyLoss(), torch.randn(4, 7, 5), ids(5, 4, 7)),
    (F.binary_cross_entropy_with_logits, torch.randn(4, 1), torch.ones(4)),
    (F.binary_cross_entropy_with_logits, torch.randn(4), torch.ones(4, 1)),
    (F.binary_cross_entropy_with_logits, torch.randn(4), ids(2, 4)),
    (F.binary_cross_entropy, torch.rand(4), ids(2, 4)),
    (nn.BCELoss(), torch.rand(4), ids(2, 4)),
]


@pytest.mark.parametrize(("loss", "logits", "labels"), FITTED)
def test_what_is_suggested_for_a_loss_makes_it_work(loss: Any, logits: Tensor, labels: Tensor) -> None:
    found = told(lambda: loss(logits, labels))
    fix = re.sub(r"\boutput\.", "logits.", re.sub(r"\btarget\.", "labels.", found.suggestion or ""))
    changes = re.findall(r"(logits|labels)((?:\.\w+\([^()]*\))+)", fix)  # by its own name from 3.11 on
    assert changes, found.suggestion
    first = dict([changes[0]])
    known = {"logits": logits, "labels": labels}
    changed = {n: eval(n + first[n], dict(known)) if n in first else t for n, t in known.items()}
    if "flatten both" in (found.suggestion or ""):
        assert loss(logits.flatten(0, -2), labels.flatten()).isfinite()
    assert loss(changed["logits"], changed["labels"]).isfinite()


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    ("loss", "logits", "labels", "expected", "given"),
    [
        (F.cross_entropy, torch.randn(4, 5), ids(5, 3), "4", "3"),
        (F.cross_entropy, torch.randn(4, 5), ids(6, 4) + 2, "targets from 0 to 4", "2 … 5"),
        (F.mse_loss, torch.randn(4, 1), torch.randn(4, 2, 3), "4×1", "4×2×3"),
        (nn.L1Loss(), torch.randn(4, 3), torch.randn(4, 2), "4×3", "4×2"),
    ],
)
def test_expected_against_given_without_a_call_to_suggest(
    loss: Any, logits: Tensor, labels: Tensor, expected: str, given: str
) -> None:
    found = told(lambda: loss(logits, labels))
    assert (found.expected, found.given) == (expected, given)
    assert not re.search(r"(logits|labels|output|target)\.", found.suggestion or "")


def test_ids_are_held_against_the_rows_of_a_functional_embedding() -> None:
    table = torch.randn(10, 4)
    assert told(lambda: F.embedding(torch.tensor([3, 12]), table)).given == "3 … 12"
    assert told(lambda: F.embedding(torch.ones(3), table)).kind == "dtype"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("expected 4D input (got 2D input)", "shape"),
        ("Expected 3D (unbatched) or 4D (batched) input to conv2d", "shape"),
        ("Tensor on device cpu is not on the expected device meta!", "device"),
        ("expected scalar type Float but found Double", "dtype"),
        ("expected input to have 3 channels, an internal point", "shape"),
        ("Dimension out of range (expected to be in range of [-2, 1], but got 2)", "shape"),
        ("expected a proper answer", "other"),
    ],
)
def test_kinds_are_told_apart_whatever_the_case_of_the_letters(message: str, kind: str) -> None:
    assert kind_of_error(RuntimeError(message)) == kind
