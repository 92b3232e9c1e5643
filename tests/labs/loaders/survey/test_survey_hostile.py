"""Datasets that misbehave: what can be read is, what can't is counted, and nothing of the program changes."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from planted_datasets import Listed, classes, labelled, looked_through, pictures, said, split, table
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, Subset

from clew.labs.loaders.survey.near_copies import MOST_COMPARED
from clew.labs.loaders.survey.split_survey import survey


def rows(count: int) -> list[Any]:
    return [(row, n % 3) for n, row in enumerate(table(count))]


def test_samples_that_raise_are_skipped_counted_and_listed_with_their_line() -> None:
    samples = rows(60)
    samples[7], samples[31] = ValueError("cut off at byte 512"), OSError("no such file")
    found = looked_through(Listed(samples))
    assert (found.looked, found.corrupt_count) == (58, 2)
    assert [(c.index, c.error) for c in found.corrupt] == [
        (7, "ValueError: cut off at byte 512"),
        (31, "OSError: no such file"),
    ]
    assert found.corrupt[0].file is not None
    assert found.corrupt[0].file.endswith("planted_datasets.py")
    assert said(found)["corrupt-samples"].severity.value == "error"


def test_a_dataset_length_that_is_too_large_is_told_from_corrupt_samples() -> None:
    found = looked_through(Listed(rows(90), length=100))
    assert (found.corrupt_count, found.past_end) == (10, 90)
    assert "there are no samples from index 90 on" in said(found)["corrupt-samples"].message


def test_none_is_no_sample() -> None:
    samples = rows(50)
    samples[4] = samples[9] = None
    found = looked_through(Listed(samples))
    assert (found.corrupt_count, found.nothing) == (2, 2)
    assert said(found)["corrupt-samples"].severity.value == "error"
    filtered = looked_through(Listed(samples), collate_fn=lambda batch: [b for b in batch if b is not None])
    assert said(filtered)["corrupt-samples"].severity.value == "advice"


class LiesAboutLength(Listed):
    def __len__(self) -> int:
        raise RuntimeError("not counted yet")


def test_a_dataset_without_length_or_samples_says_so() -> None:
    assert looked_through(Listed([]), shuffle=False).stopped == "it is empty"
    found = survey([split(LiesAboutLength(rows(5)), "eval")], time_limit=60).surveys[0]
    assert "length" in found.stopped


@pytest.mark.parametrize(
    "samples",
    [
        [f"text number {n} of a few, long enough to count" for n in range(40)],
        [{"a": {"b": {"c": torch.randn(3), "d": [n, n]}}, "label": n % 2} for n in range(40)],
        [(Image.new("RGB", (9 + n % 3, 12)), n % 2) for n in range(40)],
        [np.float64(n) for n in range(40)],
        [[1, 2, 3, 4, 5][: n % 5 + 1] for n in range(40)],
        [(np.array([f"{n}"]), object()) for n in range(40)],
        [(torch.randn(n % 4), torch.randn(2, 2)) for n in range(40)],
        [(n, {1, 2}, None) for n in range(40)],
        [(float("nan"), float("inf")) for _ in range(40)],
        [torch.zeros(0) for _ in range(40)],
        [b"\x00\xff" * n for n in range(40)],
    ],
    ids=["texts", "nested", "PIL", "scalars", "ragged", "objects", "sizes", "sets", "nan", "empty", "bytes"],
)
def test_anything_can_be_a_sample(samples: list[Any]) -> None:
    found = looked_through(Listed(samples))
    assert (found.looked, found.corrupt_count) == (40, 0)
    assert sum(field.samples for field in found.fields) >= 40
    said(found)  # the checks bear it


def test_different_shapes_are_an_error_only_where_they_are_stacked() -> None:
    samples = rows(60)
    samples[12] = (torch.randn(9), 1)
    assert "59 of 8, 1 of 9" in said(looked_through(Listed(samples)))["inconsistent-samples"].message
    padded = looked_through(Listed(samples), collate_fn=list)
    assert "inconsistent-samples" not in said(padded)
    grey = [(torch.randn(3, 16, 16 + n % 4), n % 2) for n in range(100)]
    grey[50] = (torch.randn(1, 16, 16), 0)
    assert "inconsistent-samples" in said(looked_through(Listed(grey), collate_fn=list))


def test_a_field_that_some_samples_lack_is_an_error() -> None:
    samples = [{"x": torch.randn(4), "label": 0, **({} if n == 5 else {"mask": 1})} for n in range(40)]
    assert (
        "1 sample of 40 has no field mask"
        in said(looked_through(Listed(samples)))["inconsistent-samples"].message
    )


# -- nothing changes --


class Scaled(Dataset[Any]):
    """Normalises in place: what is stored becomes smaller by every reading."""

    def __init__(self, in_place: bool) -> None:
        self.data = table(64).numpy() * 100
        self.in_place = in_place

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        row = self.data[index]
        if self.in_place:
            row /= 10
            return row, index % 2
        return row / 10, index % 2


def test_a_dataset_that_reading_changes_is_found_and_left_as_it_is() -> None:
    dataset = Scaled(in_place=True)
    before = dataset.data.copy()
    found = looked_through(dataset)
    assert found.mutation is not None
    assert found.mutation.arrays == ("data",)
    assert np.array_equal(dataset.data, before)
    assert "dataset-mutates" in said(found)
    assert "dataset-mutates" not in said(looked_through(Scaled(in_place=False)))


def test_random_numbers_are_as_before() -> None:
    class Draws(Dataset[Any]):
        def __len__(self) -> int:
            return 40

        def __getitem__(self, index: int) -> Any:
            return torch.rand(8) + np.random.rand() + random.random(), index % 2

    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # type: ignore[index]
    generator = torch.Generator().manual_seed(3)
    own = generator.get_state()
    found = survey([split(Draws(), generator=generator)], time_limit=60).surveys[0]
    assert found.random == "seeded"
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.array_equal(np.random.get_state()[1], states[1])  # type: ignore[index]
    assert random.getstate() == states[2]
    assert torch.equal(generator.get_state(), own)


def test_an_order_that_a_sampler_counts_on_is_not_used_up() -> None:
    class Epochs(torch.utils.data.Sampler[int]):
        def __init__(self) -> None:
            self.epoch = 0

        def __iter__(self) -> Iterator[int]:
            self.epoch += 1
            return iter(range(32))

        def __len__(self) -> int:
            return 32

    sampler = Epochs()
    survey([split(labelled(table(32)), "eval", sampler=sampler)], time_limit=60)
    assert sampler.epoch == 0


# -- bounds --


class Large(Dataset[Any]):
    """Samples of 2 MB each, 60 of them."""

    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.full((512, 1024), float(index)) + torch.arange(1024), index % 2


def test_samples_are_not_kept() -> None:
    tracemalloc.start()
    try:
        found = looked_through(Large())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.looked == 60
    assert peak < 60e6  # all of them are 120 MB


def test_the_part_that_is_read_is_spread_over_the_dataset() -> None:
    seen: list[int] = []

    class Seen(Listed):
        def __deepcopy__(self, memo: dict[int, Any]) -> Seen:
            return self

        def __getitem__(self, index: int) -> Any:
            seen.append(index)
            return super().__getitem__(index)

    found = survey([split(Seen(rows(10_000)))], limit=400, time_limit=60).surveys[0]
    assert 400 <= found.looked <= 520
    assert not found.whole
    quarters = np.bincount(np.array(seen) // 2500, minlength=4)
    assert quarters.min() > 60


def test_a_pass_ends_with_its_time_and_says_so() -> None:
    found = survey([split(labelled(table(2000)))], time_limit=0.0).surveys[0]
    assert found.stopped == "the time limit"
    assert 0 < found.looked < 2000


def test_no_more_sketches_are_kept_than_are_compared() -> None:
    assert MOST_COMPARED * 256 * 4 < 25e6


class Stream(IterableDataset[Any]):
    def __init__(self, count: int | None) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Any]:
        x = pictures(64)
        numbers = iter(int, 1) if self.count is None else range(self.count)
        return ((x[n % 64] if self.count else x[k % 64], k % 2) for k, n in enumerate(numbers))


def test_an_iterable_dataset_is_read_as_far_as_the_limit() -> None:
    finite = survey([split(Stream(50))], time_limit=60).surveys[0]
    assert (finite.looked, finite.total, finite.whole) == (50, 50, True)
    endless = survey([split(Stream(None))], limit=100, time_limit=60).surveys[0]
    assert (endless.looked, endless.total) == (100, None)
    assert endless.exact.copies == 36


def test_an_iterable_dataset_that_can_not_be_copied_is_left_alone() -> None:
    class Once(IterableDataset[Any]):
        def __init__(self) -> None:
            self.rows = (row for row in rows(30))

        def __iter__(self) -> Iterator[Any]:
            return self.rows

    dataset = Once()
    found = survey([split(dataset)], time_limit=60).surveys[0]
    assert found.looked == 0
    assert "take samples away" in found.stopped
    assert len(list(dataset.rows)) == 30


def test_every_split_is_looked_through_once() -> None:
    dataset = labelled(table(40), classes(40))
    result = survey(
        [split(dataset), split(dataset), split(Subset(dataset, range(10)), "eval")], time_limit=60
    )
    assert [s.looked for s in result.surveys] == [40, 10]
