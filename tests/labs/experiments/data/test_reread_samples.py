"""Datasets that stay the same, and datasets that change when they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from subjects import judged, tried
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from clew.checks.data.dataset_mutates import DatasetMutates as Check
from clew.labs.experiments.data.reread_samples import RereadSamples
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge


class Readings(Dataset[Any]):
    """`how` says what becomes of a row when it is read."""

    def __init__(self, how: str) -> None:
        self.data = np.random.default_rng(0).normal(3.0, 2.0, (100, 6)).astype(np.float32)
        self.label = torch.arange(100) % 3
        self.how = how
        self.kept: dict[int, Any] = {}
        self.generator = torch.Generator().manual_seed(0)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        row = self.data[index] if self.how == "in place" else self.data[index].copy()
        row -= 3.0
        row /= 2.0
        if self.how == "random":
            row += np.random.normal(0, 1, 6).astype(np.float32)
        if self.how == "own generator":
            row += torch.randn(6, generator=self.generator).numpy()
        if self.how == "cache":
            row = self.kept.setdefault(index, row)
        return torch.from_numpy(row), self.label[index]


def subject(dataset: Dataset[Any]) -> Subject:
    return Subject({"net": nn.Identity()}, loader=DataLoader(dataset, batch_size=8), dataset=dataset)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_row_that_is_scaled_in_place_is_certain(wrapped: bool) -> None:
    dataset: Any = Readings("in place")
    before = dataset.data.copy()
    whole = Subset(dataset, range(50)) if wrapped else dataset
    (finding,) = judged(Check(), tried(RereadSamples(), subject(whole)))
    assert (finding.confidence, finding.severity.value) == ("certain", "error")
    assert ("dataset.data" if wrapped else "Readings.data") in finding.message
    assert finding.evidence[0].values[0] > finding.evidence[0].values[1]
    assert np.array_equal(dataset.data, before)


@pytest.mark.parametrize("how", ["copy", "random", "cache"])
def test_copies_caches_and_random_transforms_pass(how: str) -> None:
    result = tried(RereadSamples(), subject(Readings(how)))
    assert result.data.fields == ()
    assert judged(Check(), result) == []


def test_tensors_in_memory_pass() -> None:
    dataset = TensorDataset(torch.randn(30, 4), torch.arange(30))
    assert judged(Check(), tried(RereadSamples(), subject(dataset))) == []


def test_a_generator_of_the_dataset_s_own_is_not_taken_for_a_change() -> None:
    with pytest.raises(CannotJudge, match="its own random generator"):
        tried(RereadSamples(), subject(Readings("own generator")))
