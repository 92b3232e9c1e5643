"""What the checks conclude from a survey of the data: the planted fault, and nothing in sound data."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from planted_datasets import (
    Listed,
    _Surveyed,
    both,
    classes,
    labelled,
    looked_through,
    pictures,
    said,
    split,
    table,
)
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from torch import Tensor
from torch.utils.data import TensorDataset, WeightedRandomSampler, random_split

from clew.checks.catalog import find
from clew.checks.run_view import RunView
from clew.checks.runner import ask
from clew.labs.loaders.survey.outliers import by_size, by_value
from clew.labs.loaders.survey.split_survey import survey
from clew.records.finding import Severity
from clew.records.verdict import NEEDS_DATA

MILD = {"unnormalised-input"}  # a hint, where a table is not scaled


@pytest.mark.parametrize("load", [load_digits, load_iris, load_wine, load_breast_cancer, load_diabetes])
def test_sound_data_gives_no_alarm(load: Any) -> None:
    data = load()
    whole = TensorDataset(torch.tensor(data.data).float(), torch.tensor(data.target))
    parts = random_split(whole, [0.8, 0.2], generator=torch.Generator().manual_seed(0))
    found = said(both(*parts))
    assert set(found) <= MILD
    assert all(f.severity is Severity.ADVICE for f in found.values())


# -- outliers --


def test_a_placeholder_in_a_column_is_an_outlier() -> None:
    x = table(300)
    x[[41, 160], 5] = -999.0
    found = looked_through(labelled(x))
    assert {(o.index, o.why, o.feature) for o in found.outliers} == {(41, "range", 5), (160, "range", 5)}
    finding = said(found)["outlier-samples"]
    assert "2 samples contain an extreme value in column 5: -999" in finding.message
    assert finding.exhibits


def test_a_picture_that_was_not_scaled_is_an_outlier() -> None:
    x = pictures(200).sigmoid()
    x[77] *= 255
    found = looked_through(labelled(x))
    assert [(o.index, o.why) for o in found.outliers] == [(77, "scale")]
    assert "on a different scale" in said(found)["outlier-samples"].message


def test_a_target_with_zeros_too_many_is_an_outlier() -> None:
    y = torch.rand(300) * 10 + 20
    y[5] *= 1000
    found = looked_through(labelled(table(300), y))
    assert [(o.index, o.why, o.field) for o in found.outliers] == [(5, "range", "1")]


def test_blank_empty_and_endless_samples_are_outliers() -> None:
    x = pictures(200)
    x[3] = 0.0
    assert [(o.index, o.why) for o in looked_through(labelled(x)).outliers] == [(3, "blank")]
    drawn = np.random.default_rng(0)
    texts = [" ".join(map(str, drawn.integers(0, 999, int(drawn.integers(20, 60))))) for _ in range(150)]
    texts[10], texts[20] = "", " ".join(map(str, range(9000)))
    found = looked_through(Listed([(text, n % 2) for n, text in enumerate(texts)]))
    assert {(o.index, o.why) for o in found.outliers} == {(10, "empty"), (20, "length")}


def heavy(kind: str, seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed)
    return {"normal": drawn.normal, "lognormal": drawn.lognormal, "exponential": drawn.exponential}[kind](
        size=2000
    )


@pytest.mark.parametrize("kind", ["normal", "lognormal", "exponential"])
def test_a_long_tail_is_no_outlier(kind: str) -> None:
    for seed in range(5):
        values = heavy(kind, seed)
        assert by_value(range(2000), values, "x") == []
        assert by_size(range(2000), np.exp(np.clip(values, -2, 2)).tolist(), "scale", "x") == []


def test_a_rare_category_is_no_outlier() -> None:
    values = np.zeros(1000)
    values[:3] = 1.0
    assert by_value(range(1000), values, "x") == []


# -- labels and order --


def test_sorted_data_without_shuffling_is_reported() -> None:
    x, y = table(400), classes(400).sort().values
    finding = said(looked_through(labelled(x, y), shuffle=False))["unshuffled-data"]
    assert finding.site.line == 12
    assert "sorted by label" in finding.message
    assert "unshuffled-data" not in said(looked_through(labelled(x, y)))
    assert "unshuffled-data" not in said(looked_through(labelled(x, classes(400)), shuffle=False))


class ByClass:
    """Batches of one class each, the classes in a random order."""

    def __init__(self, labels: Tensor, mixed: bool) -> None:
        self.labels, self.mixed = labels, mixed

    def __len__(self) -> int:
        return len(self.labels) // 10

    def __iter__(self) -> Iterator[list[int]]:
        order = list(range(len(self.labels)))
        random.Random(0).shuffle(order)
        if not self.mixed:
            order.sort(key=lambda n: int(self.labels[n]))
        batches = [order[n : n + 10] for n in range(0, len(order), 10)]
        random.Random(1).shuffle(batches)
        return iter(batches)


def test_batches_of_one_class_are_reported() -> None:
    y = torch.arange(400) % 4
    found = looked_through(labelled(table(400), y), batch_sampler=ByClass(y, mixed=False))
    assert "contain only one class, out of 4 classes" in said(found)["single-label-batches"].message
    mixed = looked_through(labelled(table(400), y), batch_sampler=ByClass(y, mixed=True))
    assert "single-label-batches" not in said(mixed)


def test_a_frequent_class_is_reported_unless_the_sampler_makes_up_for_it() -> None:
    y = (torch.arange(600) % 20 == 0).long()
    plain = looked_through(labelled(table(600), y))
    assert "95.0% of the labels of train_loader are class 0" in said(plain)["class-imbalance"].message
    weights = torch.where(y == 1, 19.0, 1.0)
    drawn = WeightedRandomSampler(weights.tolist(), 600, generator=torch.Generator().manual_seed(0))
    weighted = looked_through(labelled(table(600), y), shuffle=False, sampler=drawn)
    assert "class-imbalance" not in said(weighted)


def test_a_class_that_is_evaluated_but_never_trained_is_reported() -> None:
    train, val = labelled(table(200), classes(200, 3)), labelled(table(80, seed=5), classes(80, 4))
    assert "classes that train_loader does not have: 3" in said(both(train, val))["class-imbalance"].message
    assert "class-imbalance" not in said(both(val, train))


def test_one_label_for_all_is_only_a_hint_where_no_loss_was_seen() -> None:
    finding = said(looked_through(labelled(table(100), torch.zeros(100, dtype=torch.long))))[
        "constant-target"
    ]
    assert finding.severity is Severity.ADVICE
    assert "every label of train_loader is 0" in finding.message


# -- values --


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (torch.zeros(60, 8), "every value of field 0 is 0"),
        (table(1).repeat(60, 1), "all 60 samples that were read are the same"),
        (torch.cat([table(20), torch.arange(40.0)[:, None].repeat(1, 8)]), "67% of the samples are blank"),
    ],
    ids=["zeros", "one sample", "blank"],
)
def test_input_that_does_not_vary_is_reported(x: Tensor, words: str) -> None:
    found = said(looked_through(labelled(x)))
    assert words in found["constant-input"].message
    assert "duplicate-samples" not in found


def test_splits_that_are_preprocessed_differently_are_reported() -> None:
    train, val = labelled(pictures(100).sigmoid()), labelled(pictures(80, seed=2).sigmoid() * 255)
    assert (
        "not preprocessed the same way" in said(both(train, val))["train-val-preprocessing-mismatch"].message
    )
    alike = said(both(train, labelled(pictures(80, seed=2).sigmoid())))
    assert "train-val-preprocessing-mismatch" not in alike


def test_nan_is_told_with_the_samples_that_hold_it() -> None:
    x = table(120)
    x[33, 2] = torch.nan
    finding = said(looked_through(labelled(x)))["nonfinite-input"]
    assert "1 of 120 samples of train_loader contains NaN" in finding.message
    assert "33" in finding.evidence[0].text


def test_the_same_sample_with_two_labels_is_reported() -> None:
    x, y = pictures(200), classes(200)
    twice = TensorDataset(torch.cat([x, x[:8]]), torch.cat([y, (y[:8] + 1) % 4]))
    finding = said(looked_through(twice))["label-noise"]
    assert "8 samples of train_loader occur twice" in finding.message
    assert len(finding.exhibits) == 2


def test_a_plain_run_is_told_where_the_question_is_asked() -> None:
    run = RunView(_Surveyed([]))
    for name in ("duplicate-samples", "outlier-samples", "corrupt-samples", "inconsistent-samples"):
        assert ask(find(name), run) == ([], NEEDS_DATA)
    found, reason = ask(find("class-imbalance"), run)
    assert (found, reason) == ([], "not recorded: label.classes")


def test_copies_that_could_not_be_judged_are_not_passed_for_none() -> None:
    class Ticks(Listed):
        def __getitem__(self, index: int) -> Any:
            self.__class__.ticks = getattr(self.__class__, "ticks", 0) + 1  # type: ignore[attr-defined]
            return self.samples[index] + self.__class__.ticks, index % 2  # type: ignore[attr-defined]

    result = survey([split(Ticks(list(table(40))))], time_limit=60)
    run = RunView(_Surveyed([("data.survey", result.surveys[0].to_json())]))
    assert ask(find("duplicate-samples"), run)[1] == "a sample has different values each time it is read"


def test_one_odd_sample_does_not_make_the_splits_differ() -> None:
    x = pictures(200).sigmoid()
    x[0] *= 255
    found = said(both(labelled(x), labelled(pictures(80, seed=2).sigmoid())))
    assert set(found) == {"outlier-samples"}
