from __future__ import annotations

import functools
import json
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from clew.labs.snapshot.sample_exhibits import exhibit, exhibits, label, shown
from clew.labs.snapshot.step_batch import INPUT, TARGET, StepBatch
from clew.labs.snapshot.subject import Subject


def batch_of(x: Tensor, y: Tensor, indices: Any = None) -> StepBatch:
    return StepBatch.of({"batch": (x, y)}, {id(x): INPUT, id(y): TARGET}, indices)


RAMP = torch.linspace(0, 1, 8).expand(8, 8)  # dark at the left


@pytest.mark.parametrize(
    "image",
    [
        RAMP[None],  # channels first
        RAMP[..., None],  # and last
        RAMP[None] * 2 - 1,  # −1 to 1
        RAMP[None] * 255,
        (RAMP[None] * 255).to(torch.uint8),
        (RAMP[None] - 0.13) / 0.31,  # normalised with a mean and a standard deviation
        RAMP,  # no channel at all
    ],
)
def test_a_grey_picture_of_any_layout_and_range_becomes_rows_of_levels(image: Tensor) -> None:
    kind, data = shown(image)
    assert kind == "image"
    assert len(data) == 8
    assert [row[0] for row in data] == [0] * 8
    assert all(254 <= row[-1] <= 255 for row in data)
    assert data[0] == sorted(data[0])


@pytest.mark.parametrize("layout", ["first", "last"])
def test_a_colour_picture_becomes_rows_of_rgb(layout: str) -> None:
    image = torch.zeros(3, 5, 7)
    image[0] = 1.0
    image[2, 0, 0] = 1.0
    kind, data = shown(image if layout == "first" else image.permute(1, 2, 0))
    assert kind == "image"
    assert (len(data), len(data[0])) == (5, 7)
    assert data[0][0] == [255, 0, 255]
    assert data[4][6] == [255, 0, 0]


def test_a_large_picture_is_made_small_and_keeps_its_proportions() -> None:
    kind, data = shown(torch.rand(3, 224, 112))
    assert kind == "image"
    assert (len(data), len(data[0])) == (48, 24)


def test_values_that_are_not_finite_are_drawn_black_and_break_nothing() -> None:
    image = RAMP[None].clone()
    image[0, 0, 7] = float("nan")
    image[0, 1, 7] = float("inf")
    data = shown(image)[1]
    assert [data[n][7] for n in range(3)] == [0, 0, 255]


def test_a_flat_picture_of_a_known_size_is_drawn_as_one() -> None:
    assert len(shown(torch.rand(784))[1]) == 28
    assert len(shown(torch.rand(3072))[1][0][0]) == 3


def test_a_long_sequence_is_a_wave_and_a_short_one_numbers() -> None:
    kind, data = shown(torch.sin(torch.arange(4000) / 50))
    assert kind == "wave"
    assert len(data) == 400
    assert shown(torch.tensor([0.5, float("nan"), 2.0])) == ("numbers", [0.5, "nan", 2.0])


def test_a_small_table_is_rows_of_numbers() -> None:
    assert shown(torch.tensor([[1.0, 2.0], [3.0, 4.0]])) == ("numbers", [[1.0, 2.0], [3.0, 4.0]])


class Tokenizer:
    def decode(self, tokens: list[int]) -> str:
        return " ".join(["the", "thread", "leads"][t] for t in tokens)


def plain(tokenizer: Any, samples: Any) -> Any:
    return torch.utils.data.default_collate(samples)


class Collator:
    def __init__(self) -> None:
        self.tokenizer = Tokenizer()

    def __call__(self, samples: Any) -> Any:
        return torch.utils.data.default_collate(samples)


def subject_with(collate: Any = None, dataset: Any = None) -> Subject:
    dataset = dataset if dataset is not None else TensorDataset(torch.arange(3))
    loader = DataLoader(dataset, collate_fn=collate)
    return Subject({}, loader=loader, dataset=dataset)


def closing_over() -> Any:
    tokenizer = Tokenizer()

    def collate(samples: Any) -> Any:
        return plain(tokenizer, samples)

    return collate


@pytest.mark.parametrize("collate", [Collator(), functools.partial(plain, Tokenizer()), closing_over()])
def test_tokens_are_text_where_the_loader_has_a_tokenizer(collate: Any) -> None:
    tokens = torch.tensor([0, 1, 2])
    assert shown(tokens, subject_with(collate)) == ("text", "the thread leads")


def test_tokens_are_numbers_without_a_tokenizer_or_with_one_that_fails() -> None:
    assert shown(torch.tensor([0, 1, 2]), subject_with()) == ("numbers", [0, 1, 2])
    assert shown(torch.tensor([0, 99]), subject_with(Collator())) == ("numbers", [0, 99])


def test_the_caption_names_the_sample_its_label_and_what_is_to_be_seen() -> None:
    batch = batch_of(torch.rand(4, 1, 8, 8), torch.tensor([3, 1, 2, 0]), indices=[10, 117, 12, 13])
    shown_one = exhibit(batch, 1, note="looks like 8")
    assert shown_one is not None
    assert shown_one.caption == "sample 117, labelled 1, looks like 8"
    without = exhibit(batch_of(torch.rand(4, 3), torch.rand(4)), 2)
    assert without is not None
    assert without.caption.startswith("row 2 of the batch, target 0.")


def test_a_class_has_the_name_that_the_data_set_gives_it() -> None:
    dataset = TensorDataset(torch.rand(3, 2))
    dataset.classes = ["cat", "dog"]  # type: ignore[attr-defined]
    assert label(torch.tensor(1), subject_with(dataset=dataset)) == "labelled 1 (dog)"
    assert label(torch.tensor([0.0, 1.0]), subject_with(dataset=dataset)) == "labelled 1 (dog)"
    assert label(torch.tensor(7), subject_with(dataset=dataset)) == "labelled 7"
    assert label(torch.tensor([0.2, 0.9])) == ""


def test_exhibits_are_plain_json_and_samples_without_input_are_left_out() -> None:
    batch = batch_of(torch.rand(4, 3, 9, 9), torch.arange(4))
    made = exhibits(batch, [0, 3], notes=["first"])
    assert [e.caption for e in made] == [
        "row 0 of the batch, labelled 0, first",
        "row 3 of the batch, labelled 3",
    ]
    written = [e.to_json() for e in made]
    assert json.loads(json.dumps(written)) == written
    target = torch.arange(4)
    assert exhibits(StepBatch.of({"y": target}, {id(target): TARGET}), [0]) == []
