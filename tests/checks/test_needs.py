"""What a check needs, as objects of the register or as a user's text."""

from __future__ import annotations

import pytest
from fake_run import FakeRun

from clew.checks.catalog import CHECKS
from clew.checks.needs import AnyOf, any_of, fact_kinds, of_experiment, options, text_of
from clew.records import signals
from clew.records.facts.fact import TypedFact
from clew.records.facts.network_experiment_facts import BatchLeakFact
from clew.records.facts.step_facts import OptimizerFact
from clew.records.register_page import FACTS
from clew.records.signal_types import Signal


def test_objects_and_text_mean_the_same() -> None:
    either = any_of(signals.GRAD_STALE, OptimizerFact)
    text = "grad.stale|fact:optimizer"
    assert [text_of(one) for one in options(either)] == [text_of(one) for one in options(text)]
    assert "|".join(text_of(one) for one in options(either)) == text
    assert fact_kinds([either, signals.LOSS]) == fact_kinds([text]) == {"optimizer"}


def test_only_an_experiment_can_meet_a_need_for_its_fact() -> None:
    assert of_experiment(BatchLeakFact)
    assert not of_experiment(OptimizerFact)
    assert not of_experiment(signals.LOSS)


@pytest.mark.parametrize("need", ["fact:optimizer", "loss|fact:optimizer", OptimizerFact])
def test_a_recorded_fact_meets_the_need_for_it(need: str | type[TypedFact]) -> None:
    run = FakeRun()
    assert not run.view().has(need)
    run.fact("optimizer", index=0)
    assert run.view().has(need)
    assert run.view().has(any_of(signals.LOSS, OptimizerFact))


@pytest.mark.parametrize("kind", CHECKS, ids=lambda kind: kind.name)
def test_every_check_of_clew_needs_objects_of_the_register(kind: type) -> None:
    for need in kind.needs:
        assert isinstance(need, (Signal, AnyOf)) or issubclass(need, TypedFact), need
        for one in options(need):
            assert one in signals.SIGNALS.values() or one in FACTS.values(), one
