from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from clew.checks import catalog
from clew.checks.base import Check
from clew.checks.causes import GROUPS, WIDER, Causes, folded, possible_causes
from clew.checks.run_view import RunView
from clew.records.finding import Finding, Severity

KINDS = pytest.mark.parametrize("kind", catalog.CHECKS, ids=lambda kind: kind.name)
NAMES = {kind.name for kind in catalog.CHECKS}
CAUSES = Causes(catalog.CHECKS)


@dataclass(frozen=True)
class Silent(Check):
    id = "TST000"
    name = "silent"
    needs = ()

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        yield from ()


class Flood(Silent):
    id = "TST001"
    name = "flood"
    groups = ("scale-faults",)
    caused_by = ("rain", "scale-faults")
    causes = ("loss-stuck", "data-faults")


class Rain(Silent):
    id = "TST002"
    name = "rain"


class Tide(Silent):
    id = "TST003"
    name = "tide"
    caused_by = ("learning-faults",)
    not_caused_by = ("rate-faults", "dead-units")


class Chicken(Silent):
    id = "TST004"
    name = "chicken"
    caused_by = ("egg",)


class Egg(Silent):
    id = "TST005"
    name = "egg"
    caused_by = ("chicken",)


def found(*kinds: type[Check]) -> list[Finding]:
    return [Finding(kind.name, kind.id, Severity.WARNING, kind.name, "", step=0) for kind in kinds]


@KINDS
def test_a_check_names_only_checks_and_groups(kind: type[Check]) -> None:
    assert set(kind.groups) <= set(GROUPS)
    assert {*kind.caused_by, *kind.not_caused_by, *kind.causes} <= NAMES | set(GROUPS)


@KINDS
def test_no_check_causes_itself_through_others(kind: type[Check]) -> None:
    assert kind.name not in possible_causes(found(kind), CAUSES)


def test_no_check_has_the_name_of_a_group_and_every_group_has_checks() -> None:
    assert not NAMES & set(GROUPS)
    assert {group for kind in catalog.CHECKS for group in kind.groups} == set(GROUPS)
    assert {narrow for groups in WIDER.values() for narrow in groups} <= set(GROUPS)


@KINDS
def test_each_cause_is_named_once(kind: type[Check]) -> None:
    assert len(set(kind.caused_by)) == len(kind.caused_by)
    assert not {other.name for other in catalog.CHECKS if kind.name in other.caused_by} & set(kind.causes)


def test_a_new_check_says_both_what_causes_it_and_what_it_causes() -> None:
    causes = Causes([*catalog.CHECKS, Flood, Rain])
    assert causes.of("flood")[0] == "rain"
    assert "unnormalised-input" in causes.of("flood")
    assert "flood" not in causes.of("flood")
    assert "flood" in causes.of("saturated-activation")  # as one of its group
    assert causes.of("loss-stuck").count("flood") == 1
    assert causes.of("class-imbalance")[-1] == "flood"  # a group may be an effect too


def test_a_group_may_be_meant_with_exceptions() -> None:
    assert set(Causes([*catalog.CHECKS, Tide]).of("tide")) == set(CAUSES.of("underfitting")) - {
        "dead-units",
        "labels-misaligned",
        "scheduler-stuck",
        "learning-rate-too-high",
        "learning-rate-too-low",
    }


def test_a_wider_group_is_made_of_others_and_of_those_that_name_it() -> None:
    causes = Causes([*catalog.CHECKS, Tide]).of("tide")
    assert {"missing-backward", "unnormalised-input", "batch-leak", "over-regularised"} <= set(causes)
    assert not {"accumulation-unscaled", "double-precision"} & set(causes)


def test_checks_that_name_each_other_in_a_circle_stand_side_by_side() -> None:
    causes = Causes([Chicken, Egg, Rain])
    assert [(f.check, f.because) for f in folded(found(Chicken, Egg, Rain), causes)] == [
        ("rain", ()),
        ("chicken", ()),
        ("egg", ()),
    ]
    assert possible_causes(found(Chicken), causes) == ["egg", "chicken"]


def test_a_cause_in_two_groups_of_an_effect_is_named_once() -> None:
    given = [catalog.find(name) for name in ("missing-zero-grad", "update-ratio-off")]
    (_, effect) = folded(found(*(type(check) for check in given)), CAUSES)
    assert (effect.check, effect.because) == ("update-ratio-off", ("OPT001",))


def test_what_is_set_up_wrong_may_be_seen_after_its_effect() -> None:
    early = Finding("dead-units", "ACT001", Severity.WARNING, "", "", step=3)
    late = Finding("detached-graph", "GRPH002", Severity.WARNING, "", "", step=9)
    assert [(f.check, f.because) for f in folded([early, late], CAUSES)] == [
        ("detached-graph", ()),
        ("dead-units", ("GRPH002",)),
    ]
