from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from fake_run import LOSS, FakeRun, findings, parameter, weight

from clew.checks.act.poor_initialisation import PoorInitialisation
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = PoorInitialisation()
LAYERS = ("a", "b", "c")


def run(
    gain: float,
    stds: Sequence[float] = (1.0, 1.0, 1.0),
    losses: Sequence[float] = (1.0,) * 60,
    extra: str = "ReLU",
) -> FakeRun:
    """Three layers of 8 by 8 weights: their norm is the gain times sqrt(8)."""
    made = FakeRun().model(*((path, "Linear") for path in LAYERS), ("extra", extra))
    made.signal("loss", losses, LOSS).parameters(*(parameter(path) for path in LAYERS))
    for path, std in zip(LAYERS, stds, strict=True):
        made.signal("weight.norm", [gain * math.sqrt(8)] * 10, weight(path))
        made.signal("activation.std", [std] * 10, Site(module=path, phase="train", root="model"))
    return made


def alike(**more: object) -> FakeRun:
    return run(1.0).parameters(parameter("a", alike=True, **more), parameter("b", alike=False))


def test_units_that_stay_alike_are_an_error() -> None:
    (found,) = findings(CHECK, alike())
    assert (found.severity, found.site.module) == (Severity.ERROR, "a")


def test_units_that_are_not_trained_or_have_become_different_are_not_found() -> None:
    assert not findings(CHECK, alike(optimizer=None))
    assert not findings(CHECK, alike(requires_grad=False))
    parted = alike().parameters(parameter("a", alike=False))
    assert not findings(CHECK, parted)


def test_seven_steps_give_no_verdict() -> None:
    made = FakeRun().model(("a", "Linear")).parameters(parameter("a", alike=True))
    made.signal("weight.norm", [1.0] * 7, weight("a"))
    assert not findings(CHECK, made)
    assert CHECK.unjudged(made.view()) == "needs 8 steps, has 7"
    assert findings(CHECK, made.signal("weight.norm", [1.0], weight("a"), [7]))


def test_large_weights_whose_signals_grow_are_found() -> None:
    (found,) = findings(CHECK, run(4.1, stds=(3.0, 10.1, 30.0)))
    assert found.severity is Severity.WARNING
    assert "too large" in found.message


def test_large_weights_alone_or_wide_signals_alone_are_not_found() -> None:
    assert not findings(CHECK, run(4.1, stds=(3.0, 10.0, 30.0))), "the output may be wide"
    assert not findings(CHECK, run(3.99, stds=(3.0, 11.0, 30.0)))


def test_small_weights_need_a_loss_that_does_not_move() -> None:
    small = (0.1, 0.009, 0.001)
    assert findings(CHECK, run(0.09, stds=small))
    assert not findings(CHECK, run(0.09, stds=small, losses=[1.0] * 40 + [0.9] * 20))
    assert not findings(CHECK, run(0.09, stds=(0.1, 0.01, 0.001)))
    assert not findings(CHECK, run(0.1, stds=small))


def test_normalised_and_loaded_models_are_not_judged_by_scale() -> None:
    assert not findings(CHECK, run(9.0, stds=(3.0, 50.0, 50.0), extra="LayerNorm"))
    loaded = run(9.0, stds=(3.0, 50.0, 50.0)).parameters(parameter("a", loaded=True))
    assert not findings(CHECK, loaded)


def redrawn(ends: Sequence[float], fresh: Sequence[float], **layer: object) -> FakeRun:
    """The experiment: losses after training from the program's weights, and from newly drawn ones."""
    layers = [{"module": "a", "gain": 20.0, **layer}]
    return FakeRun().experiment(
        "poor-initialisation", steps=40, layers=layers, ends=list(ends), fresh_ends=list(fresh)
    )


@pytest.mark.parametrize(
    ("made", "count"),
    [
        (redrawn([2.0] * 3, [0.99] * 3), 1),
        (redrawn([2.0] * 3, [1.0] * 3), 0),
        (redrawn([2.0] * 3, [0.5, 0.5, 1.1]), 0),  # one draw disagrees
        (redrawn([2.0] * 2, [0.5] * 2), 0),  # too few draws
    ],
)
def test_new_weights_that_all_end_at_half_of_the_loss_are_a_warning(made: FakeRun, count: int) -> None:
    found = findings(CHECK, made)
    assert len(found) == count
    assert all("the initial weights of a are 20 times the usual magnitude" in f.message for f in found)


def test_new_weights_name_identical_units_first() -> None:
    (found,) = findings(CHECK, redrawn([2.0] * 3, [0.5] * 3, alike=True))
    assert "the initial weights of a are the same for every unit" in found.message
