from __future__ import annotations

import functools
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from clew.labs.snapshot.dataset_copy import source_line
from clew.labs.snapshot.dataset_stages import (
    TARGET_TRANSFORM,
    TRANSFORM,
    datasets_in,
    generators_in,
    stages_of,
    switches_of,
    written_at,
)


def crop(value: Any) -> Any:
    return value


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


class Settings:
    """Not a dataset, and not called."""

    def __init__(self) -> None:
        self.rng = random.Random(3)


class Listed:
    """Read by index, but no subclass of torch's Dataset."""

    def __init__(self) -> None:
        self.transform = crop
        self.mask_transform = crop
        self.augment = True
        self.normalise = True
        self.generators = [np.random.default_rng(1), torch.Generator()]
        self.settings = Settings()

    def __getitem__(self, index: int) -> int:
        return int(self.transform(index))


class Outer(Dataset[int]):
    def __init__(self) -> None:
        self.dataset = Listed()

    def __getitem__(self, index: int) -> int:
        return self.dataset[index]


def test_a_dataset_of_any_class_is_found_inside_a_dataset_and_is_not_replaced() -> None:
    outer = Outer()
    assert [(inner, put is None) for inner, put in datasets_in(outer)] == [
        (outer, True),
        (outer.dataset, True),
    ]
    kinds = {stage.kind for stage in stages_of(outer, None) if stage.name == "crop"}
    assert kinds == {TRANSFORM, TARGET_TRANSFORM}


def test_a_switch_is_one_of_random_transforms() -> None:
    outer = Outer()
    (switch,) = switches_of(outer)
    assert switch.name == "Listed.augment"
    assert switch.put is not None
    switch.put(False)
    assert outer.dataset.augment is False


def test_generators_are_found_in_lists_and_in_plain_objects() -> None:
    outer = Outer()
    expected = [*outer.dataset.generators, outer.dataset.settings.rng]
    assert {id(one) for one in generators_in(outer)} == {id(one) for one in expected}


def test_a_function_is_found_inside_partials_and_wrappers() -> None:
    place = written_at(crop)
    assert place == (__file__, crop.__code__.co_firstlineno)
    for one in (partial(crop), partial(partial(crop), 1), logged(crop), partial(logged(crop))):
        assert written_at(one) == place
    line = source_line(partial(crop))
    assert line is not None
    assert (line.file, line.line) == place
    assert source_line(partial(torch.add, 1)) is None
