from __future__ import annotations

import pytest
from fake_run import FakeRun

from clew.checks.ignore_rules import Rule, fits
from clew.checks.runner import judge
from clew.records.facts.run_facts import IgnoreFact
from clew.records.site import Site
from clew.records.verdict import Ignored

SITE = Site(module="encoder.0", param="weight", file="/home/me/project/train.py", line=12)


@pytest.mark.parametrize(
    "where", ["", "encoder.0", "encoder.*", "encoder.0.weight", "train.py", "train.py:12", "*/train.py:12"]
)
def test_a_place_may_be_given_by_any_part_of_it(where: str) -> None:
    assert fits(SITE, where)


@pytest.mark.parametrize("where", ["encoder", "encoder.1", "bias", "rain.py", "train.py:1", "other.py"])
def test_another_place_does_not_fit(where: str) -> None:
    assert not fits(SITE, where)


def test_a_site_without_a_place_fits_only_a_rule_for_everywhere() -> None:
    assert fits(Site(), "")
    assert not fits(Site(), "*")


def dead(where: str) -> FakeRun:
    run = FakeRun().model(("fc", "Linear"), ("act", "ReLU"))
    run.signal("activation.dead_fraction", [1.0] * 20, Site("act", "relu", phase="train", root="model"))
    return run.fact("ignore", check="dead-units", where=where, why="on purpose")


def test_a_finding_at_an_ignored_place_is_listed_as_ignored_with_the_reason() -> None:
    verdict = judge(dead("act").view())
    assert verdict.findings == ()
    assert verdict.ignored == (Ignored("dead-units", "on purpose"),)
    assert "dead-units" not in verdict.ruled_out


def test_a_finding_elsewhere_stays() -> None:
    verdict = judge(dead("gate").view())
    assert [f.check for f in verdict.findings] == ["dead-units"]
    assert verdict.ignored == ()


def test_a_check_ignored_everywhere_is_not_asked() -> None:
    verdict = judge(dead("").view())
    named = {f.check for f in verdict.findings} | {n.check for n in verdict.not_judged}
    assert "dead-units" not in named | set(verdict.ruled_out)


def test_a_rule_is_read_from_the_command_line_from_a_table_and_from_a_fact_alike() -> None:
    assert Rule.parse("Dead-Units@gate.*") == Rule("dead-units", "gate.*")
    rule = Rule("dead-units", "gate.*", "sparse")
    assert Rule.read({"check": rule.check, "where": rule.where, "why": rule.why}) == rule
    assert Rule.of_fact(IgnoreFact(rule.check, rule.where, rule.why)) == rule
