"""What a survey of a dataset counts: exactly, whatever the samples are made of."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from planted_datasets import Listed, both, classes, labelled, looked_through, pictures, table
from torch.utils.data import TensorDataset

from clew.labs.loaders.field_values import leaf, roles, split_fields
from clew.labs.loaders.survey.field_tallies import FieldTally
from clew.records.dataset_survey import INPUT, LABEL, OTHER, Between, DatasetSurvey, FieldSurvey

VALUES = st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf, -math.inf])


def by_name(survey: DatasetSurvey) -> dict[str, FieldSurvey]:
    return {field.name: field for field in survey.fields}


def test_range_mean_and_spread_are_those_of_all_values() -> None:
    x = table(300)
    field = by_name(looked_through(labelled(x)))["0"]
    assert field.low == pytest.approx(float(x.min()))
    assert field.high == pytest.approx(float(x.max()))
    assert field.mean == pytest.approx(float(x.double().mean()))
    assert field.std == pytest.approx(float(x.double().std(correction=0)))
    assert (field.samples, field.features) == (300, 8)
    assert [(c.what, c.samples) for c in field.shapes] == [("8", 300)]
    assert [(c.what, c.samples) for c in field.dtypes] == [("float32", 300)]


@settings(max_examples=50, deadline=None)
@given(st.lists(arrays(np.float64, 5, elements=VALUES), min_size=1))
def test_a_tally_agrees_with_numpy_over_all_samples(samples: list[np.ndarray]) -> None:
    tally = FieldTally("x")
    for n, sample in enumerate(samples):
        tally.add(n, leaf(sample))
    found = tally.survey(INPUT)
    values = np.concatenate(samples)
    finite = values[np.isfinite(values)]
    bad = [n for n, sample in enumerate(samples) if not np.isfinite(sample).all()]
    assert found.nonfinite == len(values) - len(finite)
    assert found.nonfinite_at == tuple(bad[:50])
    if len(finite):
        assert found.mean == pytest.approx(float(finite.mean()), abs=1e-6)
        assert found.std == pytest.approx(float(finite.std()), abs=1e-4)
        assert found.zeros == pytest.approx(float((finite == 0).mean()))
    else:
        assert found.mean is None


def test_nan_and_infinite_values_are_listed_by_sample() -> None:
    x = table(100)
    x[17, 3] = math.nan
    x[40, :2] = math.inf
    field = by_name(looked_through(labelled(x)))["0"]
    assert (field.nonfinite, field.nonfinite_samples, field.nonfinite_at) == (3, 2, (17, 40))


def test_features_that_never_vary_are_counted() -> None:
    x = table(100)
    x[:, 2] = 5.0
    x[:, 7] = 0.0
    field = by_name(looked_through(labelled(x)))["0"]
    assert (field.constant, field.constant_at) == (2, (2, 7))


def test_blank_and_empty_samples_are_counted() -> None:
    samples = [(torch.randn(4, 4), 0) for _ in range(10)]
    samples[3] = (torch.full((4, 4), 2.0), 0)
    samples[6] = (torch.zeros(0), 0)
    field = by_name(looked_through(Listed(samples)))["0"]
    assert (field.blank, field.blank_at, field.empty, field.empty_at) == (1, (3,), 1, (6,))


def test_labels_are_counted_by_class_and_missing_ones_named() -> None:
    y = torch.tensor([0, 1, 3, 3] * 30)
    said = looked_through(labelled(table(120), y)).labels
    assert said is not None
    assert (said.classes, said.missing) == (3, (2,))
    assert {c.what: c.samples for c in said.counts} == {"0": 30, "1": 30, "3": 60}


def test_sorted_labels_stand_far_from_a_random_order() -> None:
    shuffled, in_order = classes(400), classes(400).sort().values
    mixed, ordered = (looked_through(labelled(table(400), y)).labels for y in (shuffled, in_order))
    assert mixed is not None
    assert ordered is not None
    assert abs(mixed.deviations) < 4
    assert ordered.deviations < -20
    assert ordered.switches == pytest.approx(3 / 399)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (torch.rand(80), "value"),
        (torch.randint(0, 2, (80,)).float(), "class"),
        (torch.nn.functional.one_hot(torch.arange(80) % 5).float(), "class"),
        (torch.arange(80) * 3, "value"),
    ],
    ids=["numbers", "zeros and ones", "one hot", "all different"],
)
def test_classes_are_told_from_numbers(labels: torch.Tensor, kind: str) -> None:
    found = looked_through(labelled(table(80), labels)).labels
    assert found is not None
    assert found.kind == kind


def test_names_are_classes_too() -> None:
    samples = [
        {"text": f"a sentence about number {n}, at some length", "label": "ab"[n % 2]} for n in range(60)
    ]
    found = looked_through(Listed(samples)).labels
    assert found is not None
    assert [(c.what, c.samples) for c in found.counts] == [("a", 30), ("b", 30)]


# -- what samples are made of --


def test_fields_are_told_apart_by_key_place_and_nesting() -> None:
    sample = {"image": torch.zeros(3, 16, 16), "meta": {"path": "a.png", "box": [1, 2, 3, 4, 5]}, "label": 3}
    kinds = {name: part.kind for name, part in split_fields(sample).items()}
    assert kinds == {"image": "image", "meta.path": "text", "meta.box": "tokens", "label": "number"}
    assert list(split_fields((torch.zeros(3), (1.0, torch.zeros(2))))) == ["0", "1.0", "1.1"]


@pytest.mark.parametrize(
    ("value", "kind", "shape"),
    [
        (Image.new("RGB", (20, 10)), "image", (10, 20, 3)),
        (np.float32(3), "number", ()),
        (True, "number", ()),
        ([1, 2, 3, 4, 5], "tokens", (5,)),
        ([[1.0, 2.0], [3.0, 4.0]], "array", (2, 2)),
        ([[1.0], [3.0, 4.0]], "object", ()),
        (None, "object", ()),
        (b"abc", "text", (3,)),
        (torch.zeros(5000), "wave", (5000,)),
        (np.zeros(5000, np.int16), "wave", (5000,)),
        (torch.zeros(3, 3).to_sparse(), "object", ()),
        (torch.zeros(4, dtype=torch.bfloat16), "vector", (4,)),
        (torch.zeros(4, dtype=torch.complex64), "array", (4, 2)),
        (10**400, "number", ()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_read_as_what_it_is(value: object, kind: str, shape: tuple[int, ...]) -> None:
    found = leaf(value)
    assert (found.kind, found.shape) == (kind, shape)


def test_roles_follow_names_places_and_indices() -> None:
    pair = [(n, split_fields((torch.randn(8), n % 3))) for n in (0, 5, 9)]
    assert roles(pair) == {"0": INPUT, "1": LABEL}
    named = [(n, split_fields({"x": torch.randn(8), "target": 1.5, "id": n})) for n in (0, 5, 9)]
    assert roles(named) == {"x": INPUT, "target": LABEL, "id": OTHER}
    with_index = [(n, split_fields((torch.randn(8), 7, n))) for n in (0, 5, 9)]
    assert roles(with_index) == {"0": INPUT, "1": LABEL, "2": OTHER}


def test_a_survey_is_the_same_after_json() -> None:
    result = both(labelled(pictures(60)), labelled(pictures(40, seed=5)))
    for survey in result.surveys:
        assert DatasetSurvey.from_json(survey.to_json()) == survey
    for pair in result.between:
        assert Between.from_json(pair.to_json()) == pair


def test_a_tensor_dataset_without_labels_is_looked_through() -> None:
    found = looked_through(TensorDataset(table(50)))
    assert found.samples_read == 50
    assert found.labels is None
