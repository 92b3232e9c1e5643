"""The size of samples, and which smaller type would be enough: only where all values fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from clew.labs.loaders.speed.field_sizes import FieldSizes
from clew.labs.snapshot.sample_fields import sample_fields
from clew.records.loader_speed import FieldSize, Sizes

MANY = 1000


def weighed(*samples: Any) -> Sizes:
    weights = FieldSizes()
    for sample in samples:
        weights.add(sample)
    return weights.result()


def field(value: Any) -> FieldSize:
    return weighed({"x": value}).fields[0]


def test_bytes_are_exact_by_field_and_in_all() -> None:
    sample = {
        "image": torch.zeros(3, 10, 10),
        "mask": np.zeros((10, 10), dtype=np.int64),
        "text": "grün",
        "blob": b"12345",
        "label": 3,
    }
    found = weighed(sample)
    assert {f.field: f.bytes for f in found.fields} == {
        "image": 1200, "mask": 800, "text": 5, "blob": 5, "label": 8
    }  # fmt: skip
    assert found.bytes == found.largest == 1200 + 800 + 5 + 5 + 8
    assert [f.field for f in found.fields][:2] == ["image", "mask"]


def test_a_picture_of_pils_weighs_its_pixels() -> None:
    found = field(Image.new("RGB", (20, 10)))
    assert (found.shape, found.dtype, found.bytes) == ((10, 20, 3), "PIL image", 600)


def test_shapes_that_differ_are_shown_as_unknown() -> None:
    found = weighed(torch.zeros(5, 3), torch.zeros(9, 3))
    assert found.fields[0].shape == (-1, 3)
    assert found.largest == 9 * 3 * 4


def test_a_list_of_numbers_is_one_field() -> None:
    assert list(sample_fields(([1, 2, 3, 4, 5, 6], 2))) == ["0", "1"]
    found = field(list(range(MANY)))
    assert (found.shape, found.dtype) == ((MANY,), "list of int")


def whole(low: int, high: int, kind: str = "int64") -> Any:
    return torch.from_numpy(np.linspace(low, high, MANY).round().astype(kind))


@pytest.mark.parametrize(
    ("low", "high", "fits"),
    [
        (0, 255, "uint8"),
        (0, 256, "int16"),
        (-1, 127, "int8"),
        (-1, 128, "int16"),
        (-40000, 5, "int32"),
        (0, 2**31 - 1, "int32"),
        (0, 2**31, ""),
    ],
)
def test_whole_numbers_get_the_smallest_type_that_holds_them(low: int, high: int, fits: str) -> None:
    found = field(whole(low, high))
    assert found.fits == fits
    if fits:
        assert found.fits_bytes == MANY * np.dtype(fits).itemsize


def test_a_type_that_is_small_enough_is_left_alone() -> None:
    assert field(whole(0, 200, "uint8")).fits == ""
    assert field(whole(0, 20000, "int16")).fits == ""
    assert field(torch.zeros(MANY, dtype=torch.bool)).fits == ""


def test_the_range_is_that_of_all_samples() -> None:
    found = weighed(whole(0, 9), whole(0, 300))
    assert found.fields[0].fits == "int16"


def test_pictures_of_k_over_255_fit_bytes() -> None:
    pixels = torch.arange(MANY) % 256
    found = field(pixels.float() / 255)
    assert (found.fits, found.how, found.fits_bytes) == ("uint8", "multiples of 1/255", MANY)
    assert field(pixels.double() / 255).fits == "uint8"


def test_normalised_pictures_do_not_fit_bytes() -> None:
    pixels = (torch.arange(MANY) % 256).float() / 255
    assert field((pixels - 0.449) / 0.226).fits == ""
    assert field(torch.linspace(0, 1, MANY)).fits == ""


def test_float64_fits_float32_unless_digits_would_be_lost() -> None:
    assert field(np.random.default_rng(0).normal(size=MANY)).fits == "float32"
    seconds = 1.7e9 + np.random.default_rng(0).random(MANY)  # moments of a day: float32 would make them one
    assert field(seconds).fits == ""
    assert field(np.full(MANY, 1e300) * np.linspace(0.1, 1, MANY)).fits == ""


def test_nothing_is_said_of_small_constant_or_broken_fields() -> None:
    assert field(torch.arange(10)).fits == ""  # labels must stay whole numbers of 64 bits
    assert field(torch.zeros(MANY)).fits == ""
    broken = (torch.arange(MANY) % 5).float()
    broken[3] = float("nan")
    assert field(broken).fits == ""


def test_types_that_change_from_sample_to_sample_are_named() -> None:
    found = weighed(torch.zeros(4), torch.zeros(4, dtype=torch.float64))
    assert found.fields[0].dtype == "float32 or float64"
