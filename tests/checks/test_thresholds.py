from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fake_run import FakeRun

from clew.checks import catalog
from clew.checks.act.dead_units import DeadUnits
from clew.checks.base import Check
from clew.checks.run_view import RunView
from clew.checks.runner import judge
from clew.checks.thresholds import ThresholdSetting, in_force, thresholds_of
from clew.records.finding import Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class Trial:
    seeds: int = 3  # orders of the batches
    behind: float = 0.1


@dataclass(frozen=True)
class Kept(Check):
    """Keeps some of its thresholds together."""

    id = "TST001"
    name = "kept"
    needs = ()

    most: float = 1.0
    trial: Trial = Trial()

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        yield self.finding(Severity.WARNING, message=f"{self.most} {self.trial.seeds}", fix="")


def values_of(check: Check) -> dict[str, int | float]:
    return {threshold.name: threshold.value for threshold in thresholds_of(check)}


def half_dead() -> FakeRun:
    run = FakeRun().model(("fc", "Linear"), ("act", "ReLU"))
    site = Site("act", "relu", phase="train", root="model")
    return run.signal("activation.dead_fraction", [0.6] * 20, site)


def test_the_thresholds_of_a_run_are_those_it_was_recorded_with() -> None:
    assert [f.check for f in judge(half_dead().view()).findings] == ["dead-units"]
    for name in ("dead-units", "ACT001", "act001"):
        lenient = half_dead().fact("thresholds", 0, check=name, values={"dead_fraction": 0.7})
        assert judge(lenient.view()).findings == ()
        assert judge(lenient.view(), checks=[DeadUnits()]).findings == ()


def test_what_a_reader_can_not_use_is_left_alone_and_the_rest_is_used() -> None:
    values = {"gone": 3, "window": 0.5, "dead_fraction": 0.7, "batch": "x", "sustained": None}
    run = half_dead().fact("thresholds", 0, check="dead-units", values=values)
    run.fact("thresholds", 0, check="dead-units", values=None)
    run.fact("thresholds", 0, values={"window": 2})
    (check,) = in_force([DeadUnits()], run.view())
    assert check == DeadUnits(dead_fraction=0.7)


def test_the_later_of_two_settings_counts_and_others_stay() -> None:
    run = FakeRun().fact("thresholds", 0, check="dead-units", values={"window": 3, "batch": 2})
    run.fact("thresholds", 0, check="dead-units", values={"window": 4})
    (check, other) = in_force([DeadUnits(sustained=0.5), Kept()], run.view())
    assert check == DeadUnits(window=4, batch=2, sustained=0.5)
    assert other == Kept()


def test_a_whole_number_will_do_for_a_fraction() -> None:
    changed = ThresholdSetting("dead-units", {"dead_fraction": 1}).applied(DeadUnits())
    assert values_of(changed)["dead_fraction"] == 1.0
    assert isinstance(values_of(changed)["dead_fraction"], float)


def test_thresholds_that_a_check_keeps_together_have_a_table_of_their_own() -> None:
    assert values_of(Kept()) == {"most": 1.0, "trial.seeds": 3, "trial.behind": 0.1}
    assert [threshold.meaning for threshold in thresholds_of(Kept())] == ["", "orders of the batches", ""]
    setting = ThresholdSetting("kept", {"trial": {"seeds": 5}})
    assert setting.problems(Kept()) == []
    assert setting.applied(Kept()) == Kept(trial=Trial(seeds=5))
    for values, said in (
        ({"trial": 5}, "tool.clew.thresholds.kept.trial is a table of seeds, behind, not 5"),
        (
            {"trial": {"seed": 5}},
            "tool.clew.thresholds.kept.trial: unknown threshold 'seed'; available: seeds, behind",
        ),
        ({"trial": {"seeds": 0.5}}, "tool.clew.thresholds.kept.trial.seeds must be a whole number, not 0.5"),
    ):
        assert ThresholdSetting("kept", values).problems(Kept()) == [said]
        assert ThresholdSetting("kept", values).applied(Kept()) == Kept()


def test_a_fact_holds_numbers_only() -> None:
    given = {"a": 1, "b": float("nan"), "c": "x", "d": {"e": 2.5, "f": True}, "g": [1]}
    assert ThresholdSetting("x", given).to_json() == {"check": "x", "values": {"a": 1, "d": {"e": 2.5}}}


def test_every_threshold_of_every_check_can_be_set() -> None:
    for check in catalog.everything():
        for name, value in values_of(check).items():
            values: dict[str, object] = {}
            *tables, last = name.split(".")
            inner = values
            for table in tables:
                inner = inner.setdefault(table, {})  # type: ignore[assignment]
            inner[last] = value + 1
            setting = ThresholdSetting(check.name, values)
            assert setting.problems(check) == []
            assert values_of(setting.applied(check)) == {**values_of(check), name: value + 1}
