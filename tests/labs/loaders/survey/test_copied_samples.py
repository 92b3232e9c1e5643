"""Copies within a split and between two: the planted ones are found, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from planted_datasets import Listed, both, classes, labelled, looked_through, pictures, said, split, table
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset, random_split

from clew.labs.loaders.survey.split_survey import survey

WORDS = "red green blue old new fast slow warm cold near far first last open shut high low".split()  # noqa: SIM905


def texts(count: int, seed: int = 0, words: int = 30) -> list[str]:
    drawn = np.random.default_rng(seed)
    return [
        " ".join(f"{drawn.choice(WORDS)}{drawn.integers(40)}" for _ in range(words)) for _ in range(count)
    ]


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(0, 79), min_size=1, max_size=12), st.integers(0, 10))
def test_exact_copies_are_counted_one_by_one(again: list[int], seed: int) -> None:
    x = table(80, seed=seed)
    found = looked_through(labelled(torch.cat([x, x[again]]))).exact
    assert found.copies == len(again)
    assert found.groups == len(set(again))
    assert {(p.first, p.second) for p in found.pairs} == {
        (first, second) for first, second in ((min(i, j), max(i, j)) for i, j in _planted(again))
    }


def _planted(again: list[int]) -> list[tuple[int, int]]:
    return [(index, 80 + n) for n, index in enumerate(again)]


def test_copies_with_other_labels_are_counted_apart() -> None:
    x, y = pictures(100), classes(100)
    twice = TensorDataset(torch.cat([x, x[:10]]), torch.cat([y, torch.cat([y[:7], y[7:10] + 1])]))
    found = looked_through(twice).exact
    assert (found.copies, found.conflicting) == (10, 3)
    assert found.pairs[0].first_label != found.pairs[0].second_label


def test_pictures_that_were_saved_again_are_near_copies() -> None:
    x = pictures(200)
    changed = 0.9 * x[:12] + 0.05 + 0.002 * torch.randn(12, 1, 12, 12)
    found = looked_through(labelled(torch.cat([x, changed])))
    assert found.exact.copies == 0
    assert {(p.first, p.second) for p in found.near.pairs} == {(n, 200 + n) for n in range(12)}
    assert found.near.copies == 12


def test_rows_of_a_table_with_a_little_noise_are_near_copies() -> None:
    x = table(300, columns=12)
    found = looked_through(labelled(torch.cat([x, x[:9] + 1e-4]))).near
    assert {(p.first, p.second) for p in found.pairs} == {(n, 300 + n) for n in range(9)}


def test_texts_with_a_word_changed_are_near_copies() -> None:
    given_texts = texts(150, words=60)
    changed = [text.replace(text.split()[4], "other") for text in given_texts[:8]]
    found = looked_through(Listed([(text, n % 2) for n, text in enumerate(given_texts + changed)])).near
    assert found.method == "shingles"
    assert {(p.first, p.second) for p in found.pairs} == {(n, 150 + n) for n in range(8)}


@pytest.mark.parametrize(
    "samples", [pictures(300), table(300, 12), table(300, 40)], ids=["pictures", "12", "40"]
)
def test_samples_drawn_apart_are_no_copies(samples: Tensor) -> None:
    found = looked_through(labelled(samples))
    assert (found.exact.copies, found.near.copies) == (0, 0)
    assert "duplicate-samples" not in said(found)


def test_points_in_a_plane_are_not_judged_for_near_copies() -> None:
    found = looked_through(labelled(table(300, columns=2))).near
    assert "dimensions" in found.reason
    assert found.copies == 0


def test_a_table_of_categories_repeats_by_nature() -> None:
    x = torch.randint(0, 3, (400, 4), generator=torch.Generator().manual_seed(0)).float()
    found = looked_through(labelled(x))
    assert found.exact.copies > 100
    assert "duplicate-samples" not in said(found)
    assert "label-noise" not in said(found)


def test_repetitions_that_the_program_asks_for_are_no_fault() -> None:
    once = labelled(pictures(60))
    for repeated in (ConcatDataset([once, once]), Subset(once, [*range(60), *range(20)])):
        found = looked_through(repeated)
        assert found.exact.meant
        assert "duplicate-samples" not in said(found)


def test_windows_that_overlap_are_no_duplicates() -> None:
    letters = torch.randint(0, 30, (1000,), generator=torch.Generator().manual_seed(0))
    windows = Listed([letters[n : n + 100] for n in range(0, 900, 3)])
    found = looked_through(windows)
    assert found.near.copies > 100
    assert "duplicate-samples" not in said(found)
    parts = random_split(windows, [0.8, 0.2], generator=torch.Generator().manual_seed(0))
    result = both(*parts)
    assert "duplicate-samples" not in said(result)
    assert "nearly the same" in said(result)["train-val-leakage"].message


def test_the_share_of_copies_is_estimated_from_a_part() -> None:
    x = pictures(4000, side=8)
    x[2000:2800] = x[:800]  # one in five
    result = survey([split(labelled(x))], limit=1000, time_limit=60)
    found = result.surveys[0].exact
    assert result.surveys[0].looked < 1500
    assert 0.1 < found.share < 0.35
    assert "about" in said(result)["duplicate-samples"].message


class Noisy(Dataset[Any]):
    """Copies of samples under random augmentation, drawn in one way or another."""

    def __init__(self, x: Tensor, way: str) -> None:
        self.x, self.way = x, way
        self.own = np.random.default_rng(0)
        self.transform = self.jitter

    def jitter(self, x: Tensor) -> Tensor:
        if self.way == "torch":
            return x + torch.randn_like(x)
        if self.way == "numpy":
            return x + float(np.random.rand())
        if self.way == "own":
            return x + float(self.own.random())
        return x + len(str(object())) + id(object()) % 97 + _ticks()

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> Any:
        return (self.transform(self.x[index]) if self.transform else self.x[index]), index % 3


def _ticks(count: list[int] = [0]) -> float:  # noqa: B006 - a state that no seed resets
    count[0] += 1
    return count[0] / 7


@pytest.mark.parametrize(
    ("way", "random"), [("torch", "seeded"), ("numpy", "seeded"), ("own", "seeded"), ("clock", "unseeded")]
)
def test_copies_are_found_beneath_random_augmentation(way: str, random: str) -> None:
    x = pictures(80)
    found = looked_through(Noisy(torch.cat([x, x[:10]]), way))
    assert found.random == random
    assert found.exact.copies == 10


def test_a_sample_is_known_again_in_a_split_that_is_not_augmented() -> None:
    x = pictures(120)
    plain = Noisy(torch.cat([pictures(40, seed=8), x[:15]]), "torch")
    plain.transform = lambda picture: picture * 0.5  # type: ignore[method-assign] - the same for all
    for way in ("torch", "own", "clock"):
        (pair,) = both(Noisy(x, way), plain).between
        assert pair.exact.copies == 15, way


def test_splits_augmented_in_ways_that_can_not_be_set_aside_are_not_compared() -> None:
    class Inline(Noisy):
        def __getitem__(self, index: int) -> Any:
            return self.x[index] + (torch.randn(1) if self.way == "torch" else 0), index % 3

    x = pictures(60)
    (pair,) = both(Inline(x, "torch"), Inline(x, "none")).between
    assert "augmented randomly" in pair.exact.reason
    assert pair.exact.copies == 0


def test_copies_can_not_be_judged_where_nothing_takes_the_noise_away() -> None:
    class Always(Noisy):
        def __getitem__(self, index: int) -> Any:
            return self.x[index] + _ticks(), index % 3

    found = looked_through(Always(pictures(80), "clock"))
    assert "each time it is read" in found.exact.reason
    assert "each time it is read" in found.near.reason


# -- between splits --


def test_samples_of_one_split_in_the_other_are_counted() -> None:
    x, y = pictures(200), pictures(50, seed=3)
    result = both(labelled(x), labelled(torch.cat([y, x[30:50]])))
    (pair,) = result.between
    assert (pair.exact.copies, pair.exact.compared) == (20, 70)
    assert {(p.first, p.second) for p in pair.exact.pairs} == {(30 + n, 50 + n) for n in range(20)}
    assert "20 samples of eval_loader are also in train_loader" in said(result)["train-val-leakage"].message


def test_splits_that_share_nothing_are_found_apart() -> None:
    result = both(labelled(pictures(200)), labelled(pictures(80, seed=9)))
    assert (result.between[0].exact.copies, result.between[0].near.copies, result.between[0].shared) == (
        0,
        0,
        0,
    )
    assert "train-val-leakage" not in said(result)


def test_subsets_that_overlap_are_found_without_reading() -> None:
    whole = labelled(pictures(300))
    result = both(Subset(whole, range(200)), Subset(whole, range(180, 300)), limit=16)
    assert result.between[0].shared == 20
    assert "train-val-leakage" in said(result)


def test_a_few_copies_between_large_splits_are_no_alarm() -> None:
    x = pictures(300)
    result = both(labelled(x), labelled(torch.cat([pictures(200, seed=4), x[:3]])))
    assert result.between[0].exact.copies == 3
    assert "train-val-leakage" not in said(result)
