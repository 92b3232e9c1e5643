from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from fake_run import FakeRun

import clew
from clew.checks import catalog, custom_checks
from clew.checks.base import Check, sections
from clew.checks.custom_checks import CHECKS_OF_OTHERS, findings_data, recorded_findings
from clew.checks.run_view import RunView
from clew.checks.runner import ask, judge
from clew.records import extensions
from clew.records.extensions import CannotRegister
from clew.records.finding import Evidence, Exhibit, Finding, Proof, Severity
from clew.records.site import Site
from clew.session.activities.user_checks import result_fact

LOSS = Site(op="backward", file="train.py", line=3, phase="train")


@pytest.fixture(autouse=True)
def nothing_stays_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CHECKS_OF_OTHERS, "registered", {})
    monkeypatch.setattr(CHECKS_OF_OTHERS, "_installed", {})
    monkeypatch.setattr(CHECKS_OF_OTHERS, "_broken", {})


def high_loss(run: RunView) -> Iterator[str]:
    """The loss is above ten at the end."""
    for _, series in run.series("loss"):
        if series.values[-1] > 10:
            yield f"the loss is {series.values[-1]:.0f}"


@dataclass(frozen=True)
class Pedantic(Check):
    """## What it detects
    A loss that is not exactly one."""

    id = "MY001"
    name = "pedantic"
    needs = ("loss",)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site, series in run.series("loss"):
            if series.values[-1] != 1:
                yield self.finding(Severity.ERROR, message="not one", fix="be one", site=site, step=2)


def run(value: float) -> FakeRun:
    return FakeRun().signal("loss", [value] * 3, LOSS)


def test_a_function_is_a_check_named_after_itself() -> None:
    assert clew.register(high_loss) is high_loss
    found = [f for f in judge(run(11).view()).findings if f.check == "high-loss"]
    assert [(f.message, f.severity) for f in found] == [("the loss is 11", Severity.WARNING)]
    assert "high-loss" in judge(run(9).view()).ruled_out


def test_a_decorator_gives_name_needs_and_severity() -> None:
    clew.register(name="too-high", needs=["val.loss"], severity="error")(high_loss)
    assert [n.reason for n in judge(run(11).view()).not_judged if n.check == "too-high"] == [
        "not recorded: val.loss"
    ]


def test_a_class_is_a_check_and_is_documented_like_one() -> None:
    clew.register(Pedantic)
    assert "pedantic" in [f.check for f in judge(run(2).view()).findings]
    assert sections(catalog.find("MY001")) == {"What it detects": "A loss that is not exactly one."}


def test_a_function_is_documented_by_its_docstring() -> None:
    clew.register(high_loss)
    assert sections(catalog.find("high-loss")) == {"What it detects": "The loss is above ten at the end."}


@pytest.mark.parametrize("given", [3, "dead-units"])
def test_what_is_no_check_is_refused(given: object) -> None:
    with pytest.raises(CannotRegister, match="a class, an instance or a function"):
        clew.register(given)


@pytest.mark.parametrize("name", ["Dead Units", "", "dead-units"])
def test_a_name_that_can_not_be_used_is_refused(name: str) -> None:
    with pytest.raises(CannotRegister):
        clew.register(name=name or "_", needs=[])(high_loss)


def test_a_check_of_the_users_that_fails_takes_nothing_down() -> None:
    @clew.register
    def broken_one(run: RunView) -> Iterator[str]:
        raise ZeroDivisionError("oh")
        yield "never"

    reasons = {n.check: n.reason for n in judge(run(1).view()).not_judged}
    assert reasons["broken-one"] == "the check failed: ZeroDivisionError: oh"


def test_what_it_said_is_read_where_the_check_is_not_there() -> None:
    view = run(2).view()
    fact = result_fact(Pedantic(), view)
    assert (recorded_findings(fact.findings), fact.reason) == ask(Pedantic(), view)
    elsewhere = run(2).fact("custom_check", **fact.to_json()).view()
    assert "pedantic" in [f.check for f in judge(elsewhere).findings]


def test_an_entry_point_that_can_not_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CHECKS_OF_OTHERS, "_broken", {"theirs": "could not be loaded: ImportError: no"})
    (entry,) = [n for n in judge(run(1).view()).not_judged if n.check == "theirs"]
    assert entry.reason == "could not be loaded: ImportError: no"


def test_an_installed_package_brings_its_checks(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "theirs"

        @staticmethod
        def load() -> object:
            return Pedantic

    monkeypatch.setattr(CHECKS_OF_OTHERS, "_installed", None)
    monkeypatch.setattr(extensions, "entry_points", lambda group: [Point] if group == "clew.checks" else [])
    assert [c.name for c in custom_checks.own_checks()] == ["pedantic"]


def test_the_example_of_the_documentation_works() -> None:
    text = (Path(__file__).parents[2] / "docs" / "your-own.md").read_text()
    example = next(b for b in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "register" in b)
    exec(example, {})
    view = FakeRun().signal("metric.reward", [1.0, 9.0, 0.5], LOSS).view()
    (found,) = [f for f in judge(view).findings if f.check == "reward-collapsed"]
    assert (found.message, found.fix) == ("the reward fell from 9 to 0.5", "lower the entropy bonus")


PLACE = Site("fc1", "backward", "train.py", 3, "train", "net", "weight")
WHOLE = Finding(
    check="pedantic",
    id="USER-pedantic",
    severity=Severity.ADVICE,
    message="the loss is 3",
    fix="lower it",
    site=PLACE,
    step=7,
    evidence=(Evidence("it rose", "loss", PLACE, (1, 2), (3.0, math.inf), (0.1, 0.2), "learning rate"),),
    because=("OPT001",),
    confidence="possible",
    exhibits=(Exhibit("numbers", "sample 3", [1, 2]),),
    proof=Proof("lower it", 30, 3, 2.5, 0.5, (2.0, 3.0), (0.25, 0.75), True),
)


def test_a_recorded_finding_is_read_back_with_every_field() -> None:
    nothing = Finding("", "", Severity.WARNING, "", "")
    parts = [(WHOLE, nothing), (WHOLE.evidence[0], Evidence("")), (PLACE, Site())]
    for part, blank in parts:  # so that a new field is part of this test
        same = [f.name for f in fields(part) if getattr(part, f.name) == getattr(blank, f.name)]
        assert same == [], "give it a value here"
    (again,) = recorded_findings(json.loads(json.dumps(findings_data([WHOLE]))))
    assert again == WHOLE


@pytest.mark.parametrize("junk", [None, 3, [], {}, "text", [[1]]])
def test_a_damaged_finding_is_read_as_far_as_it_fits(junk: object) -> None:
    (data,) = findings_data([WHOLE])
    for name in data:
        if name not in ("message", "check"):
            (read,) = recorded_findings([{**data, name: junk}])
            assert (read.check, read.message) == ("pedantic", "the loss is 3")
