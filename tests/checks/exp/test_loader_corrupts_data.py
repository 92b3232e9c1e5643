from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.loader_corrupts_data import LoaderCorruptsData
from clew.records.finding import Severity


def made(relation: str, batches: int = 3, name: str = "0", detail: str = "") -> FakeRun:
    row = {"name": name, "relation": relation, "batches": batches, "of": 4, "detail": detail}
    return FakeRun().experiment(
        "loader-corrupts-data",
        samples=32,
        fields=[row],
        collate="my_collate",
        dataset="Digits",
        line=["train.py", 12],
    )


@pytest.mark.parametrize(
    ("relation", "detail", "says"),
    [
        ("cut off", "int64", "loses values in the loader: they are cast to int64"),
        ("repeated", "", "is the same for every sample of a batch, though the dataset's samples differ"),
        ("mixed", "", "is mixed up across samples in the loader: rows contain values of several samples"),
        ("swapped", "y", "has the values of 'y' when it comes from the loader"),
        ("missing", "half", "is returned for only half of the samples of a batch"),
    ],
)
def test_damage_on_the_way_is_an_error_that_names_the_field(relation: str, detail: str, says: str) -> None:
    (found,) = findings(LoaderCorruptsData(), made(relation, detail=detail))
    assert found.severity is Severity.ERROR
    assert found.message == f"field 0 of the samples {says}"
    assert found.evidence[0].text == (
        "3 of 4 batches made by my_collate from Digits are affected; 32 samples were read both ways"
    )


def test_a_field_with_a_name_is_called_by_it() -> None:
    (found,) = findings(LoaderCorruptsData(), made("mixed", name="image"))
    assert found.message.startswith("'image' is mixed up")


def test_a_few_batches_may_look_damaged_by_chance() -> None:
    assert not findings(LoaderCorruptsData(), made("repeated", batches=2))


@pytest.mark.parametrize("relation", ["same", "scaled", ""])
def test_what_a_collate_function_does_on_purpose_passes(relation: str) -> None:
    assert not findings(LoaderCorruptsData(), made(relation, batches=4))
