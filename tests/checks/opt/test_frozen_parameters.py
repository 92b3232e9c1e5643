from __future__ import annotations

from typing import Any

import pytest
from fake_run import STEP, FakeRun, findings, parameter, weight

from clew.checks.opt.frozen_parameters import FrozenParameters
from clew.records.finding import Severity

CHECK = FrozenParameters()
FROZEN: dict[str, Any] = {"requires_grad": False, "has_grad": False, "optimizer": None}


def test_a_frozen_random_layer_is_found() -> None:
    run = FakeRun().parameters(parameter("backbone", **FROZEN, loaded=True), parameter("head"))
    assert not findings(CHECK, run)
    run.parameters(
        parameter("backbone", **FROZEN, loaded=True), parameter("new", **FROZEN), parameter("head")
    )
    (found,) = findings(CHECK, run)
    assert (found.severity, found.site.module) == (Severity.WARNING, "new")
    assert found.fix.startswith("model.new.requires_grad_(True)")


def test_a_layer_is_frozen_since_it_was_first_seen_so() -> None:
    head = parameter("head")
    run = FakeRun().parameters(parameter("new", **FROZEN), head)
    (found,) = findings(CHECK, run.fact("parameters", 64, root="model", items=run.facts[-1].data["items"]))
    assert found.step == 0
    run = FakeRun().parameters(parameter("new"), head)
    frozen_later = [parameter("new", **FROZEN), head]
    (found,) = findings(CHECK, run.fact("parameters", 64, root="model", items=frozen_later))
    assert found.step == 64


@pytest.mark.parametrize(
    "healthy",
    [{"init_like": None}, {"init_like": False}, {"ndim": 1}, {"has_grad": True}, {"requires_grad": True}],
)
def test_what_was_trained_or_is_no_weight_is_left_alone(healthy: dict[str, Any]) -> None:
    layer = parameter("new", **{**FROZEN, **healthy})
    assert not findings(CHECK, FakeRun().parameters(layer, parameter("head")))


def test_a_model_that_nobody_trains_may_be_frozen() -> None:
    assert not findings(CHECK, FakeRun().parameters(parameter("teacher", **FROZEN)))


def test_frozen_embeddings_are_word_vectors() -> None:
    run = FakeRun().model(("words", "Embedding"), ("head", "Linear"))
    assert not findings(CHECK, run.parameters(parameter("words", **FROZEN), parameter("head")))


def test_weights_that_change_without_gradients_are_a_momentum_encoder() -> None:
    run = FakeRun().parameters(parameter("key", **FROZEN), parameter("query"))
    assert findings(CHECK, run.signal("weight.norm", [2.0, 2.0], weight("key")))
    run = FakeRun().parameters(parameter("key", **FROZEN), parameter("query"))
    assert not findings(CHECK, run.signal("weight.norm", [2.0, 2.1], weight("key")))


def at_learning_rate(*rates: float, update: float = 0.0, gradient: float = 1.0) -> FakeRun:
    run = FakeRun().parameters(parameter("fc")).signal("lr", rates, STEP)
    return run.signal("update.norm", [update] * 3, weight("fc")).signal(
        "gradient.norm", [gradient] * 3, weight("fc")
    )


def test_a_learning_rate_of_zero_is_found_after_twenty_steps() -> None:
    (found,) = findings(CHECK, at_learning_rate(*[0.0] * 20))
    assert (found.site, found.step) == (STEP, 0)
    assert "0 since the start (20 steps): fc.weight can't change" in found.message
    assert not findings(CHECK, at_learning_rate(*[0.0] * 19))


def test_a_warm_up_that_has_begun_to_rise_is_fine() -> None:
    assert not findings(CHECK, at_learning_rate(*[0.0] * 20, 1e-6))


def test_without_gradients_the_learning_rate_is_not_to_blame() -> None:
    assert not findings(CHECK, at_learning_rate(*[0.0] * 20, gradient=0.0))
    assert not findings(CHECK, at_learning_rate(*[0.0] * 20, update=0.1))
