from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from clew.labs.loaders.field_values import split_fields
from clew.labs.loaders.readable_loader import MODEL, ReadableLoader
from clew.labs.loaders.speed.batch_padding import paddings
from clew.labs.loaders.speed.field_sizes import FieldSizes
from clew.labs.loaders.speed.stage_times import TimedLot
from clew.labs.loaders.token_decoder import TokenDecoder
from clew.labs.loaders.value_view import parts_of, rows_of, view_value
from clew.labs.snapshot.sample_fields import sample_fields

IMAGE = torch.zeros(3, 16, 16)


@dataclass
class Scan:
    image: Tensor
    label: int


class Pair(NamedTuple):
    image: Tensor
    label: int


SAMPLES: list[tuple[Any, list[str]]] = [
    (IMAGE, ["sample"]),
    ((IMAGE, 3), ["0", "1"]),
    ([IMAGE, 3], ["0", "1"]),
    ((0.5, 3), ["0", "1"]),
    ([0.5, 3], ["sample"]),
    ([1, 2, 3, 4, 5, 6], ["sample"]),
    ({"image": IMAGE, "label": 3}, ["image", "label"]),
    (Scan(IMAGE, 3), ["image", "label"]),
    (Pair(IMAGE, 3), ["image", "label"]),
    ((Scan(IMAGE, 3), Pair(IMAGE, 1)), ["0.image", "0.label", "1.image", "1.label"]),
    ({"views": [IMAGE, IMAGE], "meta": {"box": [1, 2, 3], "path": "a.png"}},
     ["views.0", "views.1", "meta.box", "meta.path"]),
    (([1, 2, 3, 4, 5, 6], (2, "cat")), ["0", "1.0", "1.1"]),
    (([IMAGE] * 20, 1), ["0", "1"]),
]  # fmt: skip


@pytest.mark.parametrize(("sample", "names"), SAMPLES, ids=lambda value: type(value).__name__)
def test_survey_speed_and_view_name_the_fields_of_a_sample_alike(sample: Any, names: list[str]) -> None:
    sizes = FieldSizes()
    sizes.add(sample)
    assert list(sample_fields(sample)) == names
    assert list(split_fields(sample)) == names
    assert sorted(one.field for one in sizes.result().fields) == sorted(names)
    assert [part.name for part in parts_of(sample)] == names
    assert [part.name for part in view_value(sample, "", TokenDecoder(ReadableLoader(MODEL))).parts] == names


def test_numbers_in_a_list_are_fields_if_the_list_is_taken_apart() -> None:
    assert list(sample_fields(([1, 2], IMAGE), rows=False, most=None)) == ["0.0", "0.1", "1"]
    assert len(sample_fields([list(range(100))], rows=False)) == 64


def test_a_list_in_itself_ends() -> None:
    endless: list[Any] = [IMAGE]
    endless.append(endless)
    assert 2 <= len(sample_fields(endless)) <= 64


def test_the_tensors_in_a_long_list_have_a_size() -> None:
    sizes = FieldSizes()
    sizes.add(([torch.zeros(100)] * 20, 1))
    assert sizes.result().bytes >= 20 * 400


@pytest.mark.parametrize("kind", [Scan, Pair])
def test_a_batch_with_named_fields_has_rows_with_the_same_names(kind: Any) -> None:
    rows = rows_of(kind(torch.zeros(5, 3, 16, 16), torch.arange(5)), 2)
    assert [list(sample_fields(row)) for row in rows] == [["image", "label"]] * 2
    assert [int(row["label"]) for row in rows] == [0, 1]


def test_padding_is_found_in_the_field_of_a_dataclass() -> None:
    @dataclass
    class Text:
        tokens: Tensor

    tokens = torch.tensor([[5] * 6 + [0] * 10, [7] * 16])
    shapes: list[dict[str, tuple[int, ...]]] = [{"tokens": (6,)}, {"tokens": (16,)}]
    found = paddings([TimedLot(shapes, Text(tokens))])
    assert [one.field for one in found.fields] == ["tokens"]
