"""Sizes with names."""

from __future__ import annotations

import pytest
import torch
from networks import GPT, LeNet, Siamese, UNet
from torch import Tensor, nn

import clew
from clew.model.inputs import BadInputError
from clew.structure import Summary


def shape(summary: Summary, path: str) -> str:
    return next(r for r in summary.rows if r.path == path).outputs[0].text()


def test_names_flow_through_the_network() -> None:
    found = clew.summary(GPT(layers=1), ("batch", "time"))
    assert shape(found, "blocks.0.mlp.0") == "batch × time × 128"
    assert shape(found, "positions") == "time × 32"
    assert found.outputs[0].text() == "batch × time × 100"


def test_sizes_are_primes_that_the_model_has_nowhere() -> None:
    found = clew.summary(nn.Sequential(nn.Linear(3, 5)), ("batch", 3))
    assert dict(found.dims) == {"batch": 7}


def test_given_sizes_are_recognised_by_value() -> None:
    found = clew.summary(GPT(layers=1), (4, 17), dims={"batch": 4, "time": 17})
    assert found.outputs[0].text() == "batch × time × 100"


def test_dimensions_that_got_merged_are_written_as_a_product() -> None:
    class Merging(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(-1, 8)

    assert clew.summary(Merging(), ("batch", "time", 8)).outputs[0].text() == "batch·time × 8"


def test_strides_are_written_as_people_do() -> None:
    found = clew.summary(UNet(), ("batch", 3, "height", "width"))
    assert shape(found, "down2") == "batch × 32 × ceil(height/2) × ceil(width/2)"
    assert shape(clew.summary(nn.Sequential(nn.MaxPool2d(2)), (2, 3, "h", 8)), "0") == "2 × 3 × h//2 × 4"


def test_a_network_that_needs_even_sizes_gets_them_and_says_so() -> None:
    found = clew.summary(UNet(), ("batch", 3, "height", "width"))
    assert all(size % 2 == 0 for _, size in found.dims)
    assert any("it fails at" in note for note in found.notes)


def test_a_name_that_the_model_fixes_is_told() -> None:
    class Fixed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.ones(int(x.shape[0])) if int(x.shape[0]) == 5 else x

    found = clew.summary(Fixed(), ("batch", 2), dims={"batch": 4})
    assert any("batch" in note and "one size only" in note for note in found.notes)


def test_the_same_name_in_two_inputs_is_the_same_size() -> None:
    found = clew.summary(Siamese(), [("batch", 6), ("batch", 6)])
    assert found.outputs[0].text() == "batch"


def test_two_names_of_the_same_size_are_refused() -> None:
    with pytest.raises(BadInputError, match="can't be told apart"):
        clew.summary(LeNet(), ("a", 1, "b", 28), dims={"a": 28, "b": 28})
