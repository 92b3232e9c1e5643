from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.excessive_augmentation import ExcessiveAugmentation
from clew.checks.runner import ask
from clew.records.finding import Severity


def made(*held_on: float, held_off: float = 1.0, distance: float = 0.5) -> FakeRun:
    rows = [{"start": 2.0, "held_off": held_off, "held_on": on, "steps": 40} for on in held_on]
    return FakeRun().experiment(
        "excessive-augmentation",
        random=True,
        transforms=["RandomRotation"],
        distance=distance,
        trials=rows,
        line=["train.py", 12],
    )


def test_transforms_that_leave_less_than_a_third_of_the_progress_are_a_warning() -> None:
    (found,) = findings(ExcessiveAugmentation(), made(1.68, 1.75, 1.9))
    assert found.severity is Severity.WARNING
    assert found.fix == "lower the strength or the probability of RandomRotation"
    assert found.evidence[0].text == "share of the progress that remains: 32%, 25%, 10% (by seed)"


def test_every_seed_must_show_it() -> None:
    assert not findings(ExcessiveAugmentation(), made(1.9, 1.9, 1.6))


def test_samples_that_stay_close_to_the_original_are_fine() -> None:
    assert not findings(ExcessiveAugmentation(), made(1.9, 1.9, 1.9, distance=0.49))


@pytest.mark.parametrize("held_off", [1.85, 2.1])
def test_without_progress_to_compare_with_it_is_not_judged_and_says_so(held_off: float) -> None:
    found, reason = ask(ExcessiveAugmentation(), made(2.0, 2.0, 2.0, held_off=held_off).view())
    assert not found
    assert reason == "even without augmentation, the model learned nothing in so few steps"
