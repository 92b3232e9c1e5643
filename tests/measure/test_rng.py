"""Random generators are read, set again and seeded in one place."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import pytest
import torch

from clew.measure.rng import Rng, generator_state, host_states, keep_generators, keep_rng, seed_all


def drawn() -> list[float]:
    return [random.random(), float(np.random.rand()), float(torch.rand(()))]


def test_a_state_that_was_taken_gives_the_same_numbers_again() -> None:
    before = Rng.take()
    first = drawn()
    before.put()
    assert drawn() == first


def test_what_is_not_known_is_left_alone() -> None:
    with keep_rng():
        state = Rng(torch=torch.default_generator.get_state())
        first = drawn()
        state.put()
        second = drawn()
    assert first[2] == second[2]
    assert first[:2] != second[:2]


def test_generators_go_on_from_where_they_were_after_an_error() -> None:
    before = Rng.take()
    with contextlib.suppress(ValueError), keep_rng():
        drawn()
        raise ValueError("mine")
    after = drawn()
    before.put()
    assert drawn() == after


def test_only_the_states_that_are_asked_for_are_read() -> None:
    torchs, numpys, pythons = host_states(torchs=False, numpys=True, pythons=False)
    assert torchs is None
    assert numpys is not None
    assert pythons is None


def test_a_seed_reaches_all_of_them() -> None:
    with keep_rng():
        seed_all(7)
        first = drawn()
        seed_all(7)
        assert drawn() == first


@pytest.mark.parametrize(
    "generator",
    [torch.Generator(), np.random.default_rng(0), np.random.RandomState(0), random.Random(0)],
    ids=lambda g: f"{type(g).__module__}.{type(g).__name__}",
)
def test_generators_of_the_programs_own_are_kept(generator: Any) -> None:
    def draw() -> Any:
        if isinstance(generator, torch.Generator):
            return float(torch.rand((), generator=generator))
        return generator.random()

    before = str(generator_state(generator))
    with keep_generators([generator]):
        first = draw()
    assert str(generator_state(generator)) == before
    assert draw() == first
