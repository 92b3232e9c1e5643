from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from fake_run import LOSS, STEP, FakeRun, weight

from clew.checks import catalog
from clew.checks.base import Check, UnknownCheck
from clew.checks.causes import Causes, folded
from clew.checks.run_view import RunView
from clew.checks.runner import judge
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

CAUSES = Causes(catalog.CHECKS)


def finding(name: str, severity: Severity = Severity.WARNING, step: int | None = 0) -> Finding:
    return Finding(name, catalog.find(name).id, severity, name, "", step=step)


def folded_names(*given: Finding) -> list[tuple[str, tuple[str, ...]]]:
    return [(f.check, f.because) for f in folded(given, CAUSES)]


@dataclass(frozen=True)
class Broken(Check):
    id = "TST001"
    name = "broken"
    needs = ()

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        yield self.finding(Severity.ERROR, message="half a thought", fix="")
        raise ZeroDivisionError("oh")


@dataclass(frozen=True)
class Everywhere(Check):
    id = "TST002"
    name = "everywhere"
    needs = ("loss",)

    places: int = 12

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for n in range(self.places):
            severity = Severity.ERROR if n == 3 else Severity.WARNING
            evidence = Evidence("seen", values=(float(n),))
            site = Site(module=f"l{n}")
            yield self.finding(
                severity, message=f"bad {n}", fix="mend", site=site, step=20 - n, evidence=evidence
            )


def test_an_empty_run_is_judged_by_nothing_and_says_so() -> None:
    verdict = judge(FakeRun().view())
    assert verdict.findings == ()
    assert [n.check for n in verdict.not_judged] == [kind.name for kind in catalog.CHECKS]
    assert all("not recorded" in n.reason or n.unasked for n in verdict.not_judged)


@dataclass(frozen=True)
class Asking(Check):
    """## What it detects
    What only an experiment tells."""

    id = "T009"
    name = "asking"
    needs = ("fact:experiment.asking",)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.experiment(self.name)
        if found is not None and found["bad"]:
            yield self.finding(Severity.ERROR, message="bad", fix="mend")


@dataclass(frozen=True)
class AskingOrSeeing(Asking):
    """## What it detects
    The same, by a signal too."""

    needs = ("loss|fact:experiment.asking",)


def test_a_question_that_needs_an_experiment_says_so() -> None:
    (open_one,) = judge(FakeRun().view(), checks=[Asking()]).not_judged
    assert open_one.reason == "needs an experiment: clew check"
    assert open_one.needs_experiment
    (either,) = judge(FakeRun().view(), checks=[AskingOrSeeing()]).not_judged
    assert either.reason == "not recorded: loss or an experiment (clew check)"


def test_an_experiment_without_an_answer_is_not_judged_for_its_reason() -> None:
    run = FakeRun().fact("experiment.asking", 0, status="unjudged", reason="no loader", hint="give one")
    for check in (Asking(), AskingOrSeeing()):
        (silent,) = judge(run.view(), checks=[check]).not_judged
        assert silent.reason == "no loader; give one"
    run.signal("loss", [1.0])
    assert judge(run.view(), checks=[AskingOrSeeing()]).ruled_out == ("asking",)


def test_a_finding_carries_the_samples_that_its_experiment_showed() -> None:
    shown = {"kind": "text", "caption": "sample 1", "data": "words"}
    run = FakeRun().fact("experiment.asking", 0, status="done", data={"bad": True}, exhibits=[shown])
    (finding,) = judge(run.view(), checks=[Asking()]).findings
    assert [e.to_json() for e in finding.exhibits] == [shown]
    run.fact("experiment.asking", 1, status="done", data={"bad": False})
    assert judge(run.view(), checks=[Asking()]).ruled_out == ("asking",)


def test_a_check_that_raises_is_not_judged_and_the_others_are() -> None:
    run = FakeRun().signal("loss", [1.0])
    verdict = judge(run.view(), checks=[Broken(), Everywhere(places=1)])
    assert [(n.check, n.reason) for n in verdict.not_judged] == [
        ("broken", "the check failed: ZeroDivisionError: oh")
    ]
    assert [f.check for f in verdict.findings] == ["everywhere"]


def test_many_places_of_one_fault_become_one_finding_with_the_worst_in_front() -> None:
    (found,) = judge(FakeRun().signal("loss", [1.0]).view(), checks=[Everywhere()]).findings
    assert (found.severity, found.site.module, found.step) == (Severity.ERROR, "l3", 9)
    assert found.message == "bad 3 (same in l0, l1, l2 and 8 more)"
    assert [e.text for e in found.evidence[:3]] == ["seen", "also: bad 0", "also: bad 1"]
    assert found.evidence[1].values == (0.0,)
    assert found.evidence[-1].text == "and in l9, l10, l11"


def test_an_ignored_check_is_not_asked() -> None:
    run = FakeRun().signal("grad.stale", [0, 1, 1, 1], STEP)
    assert [f.check for f in judge(run.view()).findings] == ["missing-zero-grad"]
    for name in ("missing-zero-grad", "OPT001", "opt001"):
        verdict = judge(run.view(), ignore=[name])
        assert verdict.findings == ()
        assert "missing-zero-grad" not in [n.check for n in verdict.not_judged]


def test_an_unknown_name_is_refused_with_what_may_have_been_meant() -> None:
    with pytest.raises(UnknownCheck, match="did you mean dead-units"):
        catalog.find("dead-unit")
    with pytest.raises(UnknownCheck, match=r"no check named 'xyzzy'$"):
        catalog.find("xyzzy")


def test_findings_carry_the_line_that_made_the_layer() -> None:
    run = FakeRun().model(("fc", "Linear"), ("act", "ReLU"))
    run.signal("activation.dead_fraction", [1.0] * 20, Site("act", "relu", phase="train", root="model"))
    (found,) = judge(run.view()).findings
    assert (found.site.module, found.site.file, found.site.line) == ("act", "net.py", 11)
    assert found.evidence[0].site == found.site
    assert found.message.startswith("100% of the units of act output zero")


def test_a_diverged_run_is_told_from_its_root_cause() -> None:
    losses, ratios = [2.0, 9.0, 1e5, 1e9, float("nan")], [0.9] * 5
    run = FakeRun().model(("fc", "Linear")).signal("loss", losses, LOSS).signal("lr", [10.0] * 5, STEP)
    run.signal("update.ratio", ratios, weight("fc"))
    run.signal("grad.norm", [1.0, 50.0, 1e4, 1e8, float("nan")], STEP)
    for name, value in (("mean", 128.0), ("std", 64.0), ("min", 0.0), ("max", 255.0)):
        run.signal(f"first_input.{name}", [value] * 5, Site("fc", root="model"))
    verdict = judge(run.view())
    assert [(f.check, f.because) for f in verdict.findings] == [
        ("unnormalised-input", ()),
        ("learning-rate-too-high", ("DATA001",)),
        ("exploding-gradient", ("OPT004",)),
        ("non-finite", ("GRAD002",)),
    ]


def test_a_cause_that_came_later_is_none() -> None:
    early, late = finding("dead-units", step=3), finding("learning-rate-too-high", step=4)
    assert folded_names(early, late) == [("dead-units", ()), ("learning-rate-too-high", ())]
    same = finding("learning-rate-too-high", step=3)
    assert folded_names(early, same) == [("learning-rate-too-high", ()), ("dead-units", ("OPT004",))]


def test_roots_are_ordered_by_the_worst_that_follows_then_by_step() -> None:
    given = [
        finding("eval-mode-in-training", step=0),
        finding("silent-broadcast", Severity.ERROR, step=5),
        finding("unnormalised-input", step=1),
        finding("learning-rate-too-high", Severity.ERROR, step=2),
    ]
    assert [name for name, _ in folded_names(*given)] == [
        "silent-broadcast",
        "unnormalised-input",
        "learning-rate-too-high",
        "eval-mode-in-training",
    ]


def test_an_effect_of_two_roots_stands_once_after_both() -> None:
    given = [finding("dead-units"), finding("missing-zero-grad"), finding("unnormalised-input")]
    assert folded_names(*given) == [
        ("unnormalised-input", ()),
        ("missing-zero-grad", ()),
        ("dead-units", ("OPT001", "DATA001")),
    ]


def test_a_symptom_stands_behind_any_fault_and_alone_without_one() -> None:
    stuck, softmax = finding("loss-stuck", step=0), finding("softmax-before-cross-entropy", step=5)
    hint = finding("redundant-bias", Severity.ADVICE)
    names = [(f.check, f.because) for f in folded([stuck, hint, softmax], CAUSES)]
    assert names == [(softmax.check, ()), ("loss-stuck", (softmax.id,)), (hint.check, ())]
    alone = [(f.check, f.because) for f in folded([stuck, hint], CAUSES)]
    assert alone == [("loss-stuck", ()), (hint.check, ())]
    slow = finding("slow-loader")
    assert not any(f.because for f in folded([stuck, slow], CAUSES))


def test_a_hint_is_not_the_cause_of_a_fault() -> None:
    given = [finding("dead-units"), finding("unnormalised-input", Severity.ADVICE)]
    assert folded_names(*given) == [("dead-units", ()), ("unnormalised-input", ())]


def test_causes_that_were_ruled_out_are_reported() -> None:
    run = FakeRun().model(("fc", "Linear"), ("act", "ReLU"))
    run.signal("activation.dead_fraction", [1.0] * 20, Site("act", "relu", phase="train", root="model"))
    run.signal("grad.stale", [0.0] * 20, STEP)
    verdict = judge(run.view())
    assert verdict.findings[0].check == "dead-units"
    assert "missing-zero-grad" in verdict.other_causes
    assert set(verdict.other_causes) <= set(verdict.ruled_out)
    assert verdict.asked == len(catalog.CHECKS)
