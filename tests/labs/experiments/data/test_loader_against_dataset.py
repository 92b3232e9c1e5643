"""Loaders that deliver what the dataset returns, and loaders that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from subjects import digits, judged, tried
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, default_collate

from clew.checks.exp.loader_corrupts_data import LoaderCorruptsData as Check
from clew.labs.experiments.data.loader_against_dataset import LoaderAgainstDataset
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.records.finding import Finding


class Images(Dataset[Any]):
    def __init__(self, jitter: float = 0.0, buffer: bool = False, named: bool = False) -> None:
        self.x, self.y = digits()
        self.x = self.x * 0.2 + 0.5
        self.jitter, self.named = jitter, named
        self.buffer = torch.zeros(1, 8, 8) if buffer else None
        self.generator = np.random.default_rng(0)

    def __len__(self) -> int:
        return 200

    def __getitem__(self, index: int) -> Any:
        x = self.x[index]
        if self.jitter:
            x = x + self.jitter * torch.randn(x.shape) + float(self.generator.normal())
        if self.buffer is not None:
            x = self.buffer.copy_(x)
        return (
            {"image": x, "other": x * 2 + 1, "label": int(self.y[index])}
            if self.named
            else (x, int(self.y[index]))
        )


def found(dataset: Any, collate: Callable[[list[Any]], Any] | None = None) -> list[Finding]:
    loader = DataLoader(dataset, batch_size=16, shuffle=True, collate_fn=collate)
    subject = Subject(models={"net": nn.Identity()}, loader=loader, dataset=dataset)
    return judged(Check(), tried(LoaderAgainstDataset(), subject))


def test_what_torch_makes_of_samples_passes() -> None:
    assert found(Images()) == []
    assert found(Images(named=True)) == []
    assert found(Images(jitter=0.3)) == []


def cast(items: list[Any]) -> Any:
    x, y = default_collate(items)
    return x.to(torch.uint8), y


def first_for_all(items: list[Any]) -> Any:
    labels = torch.tensor([label for _, label in items])
    return torch.stack([items[0][0]] * len(items)), labels


def viewed(items: list[Any]) -> Any:
    x, y = default_collate(items)
    return torch.stack([item[0] for item in items], dim=-1).reshape(x.shape), y


def swapped(items: list[Any]) -> Any:
    batch = default_collate(items)
    return {"image": batch["other"], "other": batch["image"], "label": batch["label"]}


def fewer(items: list[Any]) -> Any:
    return default_collate(items[: len(items) // 2])


@pytest.mark.parametrize(
    ("collate", "words", "options"),
    [
        (cast, "cast to uint8", {}),
        (first_for_all, "same for every sample", {}),
        (viewed, "mixed up across samples", {}),
        (swapped, "values of 'other'", {"named": True}),
        (fewer, "only 8 of the samples", {}),
        (None, "same for every sample", {"buffer": True}),
        (cast, "cast to uint8", {"jitter": 0.3}),
    ],
)
def test_what_is_damaged_on_the_way_is_named(collate: Any, words: str, options: dict[str, Any]) -> None:
    finding = found(Images(**options), collate)[0]
    assert words in finding.message
    assert finding.severity.value == "error"


def scaled(items: list[Any]) -> Any:
    x, y = default_collate(items)
    return (x - 0.5) / 0.2, F.one_hot(y, 10)


def channels_last(items: list[Any]) -> Any:
    x, y = default_collate(items)
    return x.movedim(1, -1).half(), y.float()


def by_brightness(items: list[Any]) -> Any:
    return default_collate(sorted(items, key=lambda item: float(item[0].sum())))


def flattened(items: list[Any]) -> Any:
    x, y = default_collate(items)
    return {"pixels": x.flatten(1), "labels": y}


def noisy(items: list[Any]) -> Any:
    x, y = default_collate(items)
    return x + torch.randn_like(x), y


@pytest.mark.parametrize("collate", [scaled, channels_last, by_brightness, noisy])
def test_what_is_made_on_purpose_passes(collate: Any) -> None:
    assert found(Images(), collate) == []


def test_another_form_can_not_be_compared() -> None:
    with pytest.raises(CannotJudge, match="can't be compared"):
        found(Images(), flattened)


def test_padded_sentences_pass() -> None:
    sentences = [(torch.arange(1, 3 + n % 7), n % 2) for n in range(60)]

    def collate(items: list[Any]) -> Any:
        return pad_sequence([w for w, _ in items], batch_first=True), torch.tensor([t for _, t in items])

    assert found(sentences, collate) == []


def test_labels_that_are_all_alike_in_a_batch_pass() -> None:
    x, _ = digits()
    assert found(TensorDataset(x[:64], torch.zeros(64))) == []


def test_a_dataset_that_fails_says_so_and_nothing_is_left_behind() -> None:
    class Broken(Images):
        def __getitem__(self, index: int) -> Any:
            torch.rand(1), self.__dict__.update(read=index)
            raise KeyError(index)

    dataset, state = Broken(), torch.get_rng_state()
    with pytest.raises(CannotJudge, match="reading the dataset failed: KeyError"):
        found(dataset)
    assert not hasattr(dataset, "read")
    assert torch.equal(torch.get_rng_state(), state)


def test_a_stream_and_a_dataset_that_can_not_be_copied_are_not_judged() -> None:
    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter(())

    class Open(Images):
        def __init__(self) -> None:
            super().__init__()
            self.file = open(__file__)  # noqa: SIM115 - held open as such datasets do

    stream = DataLoader(Stream(), batch_size=4)
    subject = Subject(models={}, loader=stream, dataset=stream.dataset)
    with pytest.raises(CannotJudge, match="by index"):
        tried(LoaderAgainstDataset(), subject)
    dataset = Open()
    try:
        with pytest.raises(CannotJudge, match="can't be copied"):
            found(dataset)
    finally:
        dataset.file.close()


def test_without_a_loader_it_says_what_is_needed() -> None:
    batch = StepBatch.of({"x": torch.zeros(2)}, {})
    with pytest.raises(CannotJudge, match="no DataLoader"):
        tried(LoaderAgainstDataset(), Subject(models={}, batches=[batch]))
