"""The results of a pre-flight: each experiment passed, failed or was not judged; as JSON and JUnit XML.

Read from what is recorded (the facts `experiment.*`) and from the verdict; nothing is judged here.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from clew.records.facts.experiment_facts import DONE, PREFIX, ExperimentFact
from clew.records.finding import Finding, Severity
from clew.records.verdict import Verdict
from clew.render.line_plot import PlotLine
from clew.render.run_summary import RunSummary
from clew.render.safe_text import neutral, neutral_lines
from clew.render.verdict.finding_block import location
from clew.render.verdict_json import verdict_json

if TYPE_CHECKING:
    from clew.checks.run_view import RunView

PASSED, FAILED, UNJUDGED = "passed", "failed", "unjudged"


@dataclass(frozen=True)
class ExperimentAnswer:
    """One experiment: the question, and its result."""

    name: str
    question: str
    state: str  # passed, failed or unjudged
    seconds: float
    reason: str = ""  # why it could not be judged
    hint: str = ""  # the line of code that would change that
    finding: Finding | None = None  # finding of the check of the same name; advice does not fail it
    plots: tuple[PlotLine, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)  # what was measured

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "question": self.question,
            "state": self.state,
            "seconds": round(self.seconds, 3),
            "reason": self.reason,
            "hint": self.hint,
            "data": dict(self.data),
            "plots": [plot.to_json() for plot in self.plots],
        }


@dataclass(frozen=True)
class Preflight:
    """All results in the order in which the experiments ran, and their verdict."""

    what: str  # the script, or the class of the model
    answers: tuple[ExperimentAnswer, ...]
    verdict: Verdict

    @classmethod
    def read(cls, run: RunView, verdict: Verdict, what: str) -> Preflight:
        """From the facts of a run, live or recorded."""
        found = {finding.check: finding for finding in verdict.findings}
        silent = dict.fromkeys(_experiments(run), "no check reads its result")
        silent |= {entry.check: entry.reason for entry in verdict.not_judged}
        silent |= {entry.check: f"found, but ignored: {entry.why}" for entry in verdict.ignored}
        for name in (*verdict.ruled_out, *found):
            silent.pop(name, None)
        answers = tuple(
            _answer(name, fact, found.get(name), silent.get(name)) for name, fact in _experiments(run).items()
        )
        return cls(what, answers, verdict)

    def names(self, state: str) -> tuple[str, ...]:
        """The names of the experiments with this result."""
        return tuple(answer.name for answer in self.answers if answer.state == state)

    @property
    def seconds(self) -> float:
        return math.fsum(answer.seconds for answer in self.answers)

    @property
    def ok(self) -> bool:
        """Whether nothing failed; experiments that were not judged don't count against it."""
        return not any(finding.severity is not Severity.ADVICE for finding in self.verdict.findings)

    @property
    def others(self) -> tuple[Finding, ...]:
        """What ordinary checks found in the steps that ran."""
        asked = {answer.name for answer in self.answers}
        faults = [f for f in self.verdict.findings if f.severity is not Severity.ADVICE]
        return tuple(f for f in faults if f.check not in asked)

    @property
    def plots(self) -> dict[str, tuple[PlotLine, ...]]:
        """By the name of the experiment."""
        return {answer.name: answer.plots for answer in self.answers}


def _experiments(run: RunView) -> dict[str, ExperimentFact]:
    """The newest fact of each experiment, in the order of their first ones."""
    kinds = run.fact_kinds(PREFIX)
    return {kind.removeprefix(PREFIX): ExperimentFact.read(run.facts(kind)[-1].data) for kind in kinds}


def _answer(
    name: str, fact: ExperimentFact, finding: Finding | None, silence: str | None
) -> ExperimentAnswer:
    reason = fact.reason
    if finding is not None and finding.severity is not Severity.ADVICE:
        state = FAILED
    elif fact.status != DONE or silence is not None:
        state = UNJUDGED
        reason = reason or silence or "the experiment gave no result"
    else:
        state = PASSED
    plots = [PlotLine.read(plot) for plot in fact.plots]
    return ExperimentAnswer(
        name,
        fact.question or name,
        state,
        max(fact.seconds, 0.0) if math.isfinite(fact.seconds) else 0.0,
        reason if state == UNJUDGED else "",
        fact.hint if state == UNJUDGED else "",
        finding,
        tuple(plot for plot in plots if plot.x),
        fact.data,
    )


# ---- JSON and JUnit --------------------------------------------------------------------------


def preflight_json(preflight: Preflight, run: RunSummary) -> dict[str, Any]:
    """Like `clew why --json`, plus the experiments."""
    return {
        **verdict_json(preflight.verdict, run),
        "preflight": {
            "what": preflight.what,
            "ok": preflight.ok,
            "seconds": round(preflight.seconds, 3),
            "passed": list(preflight.names(PASSED)),
            "failed": list(preflight.names(FAILED)),
            "unjudged": list(preflight.names(UNJUDGED)),
            "experiments": [answer.to_json() for answer in preflight.answers],
        },
    }


def junit(preflight: Preflight) -> str:
    """One test case per experiment; other findings of the verdict are separate cases.

    All text is neutral: XML forbids most control characters, even escaped.
    """
    others = preflight.others
    suite = ElementTree.Element("testsuite", {"name": f"clew check {neutral(preflight.what, 80)}"})
    for answer in preflight.answers:
        _add_answer(suite, answer)
    for finding in others:
        _add_failure(_case(suite, finding.check, 0.0), finding)
    counts = {
        "tests": len(preflight.answers) + len(others),
        "failures": len(preflight.names(FAILED)) + len(others),
        "errors": 0,
        "skipped": len(preflight.names(UNJUDGED)),
    }
    for name, value in counts.items():
        suite.set(name, str(value))
    suite.set("time", f"{preflight.seconds:.3f}")
    return _document(suite)


def _document(suite: ElementTree.Element) -> str:
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    out = io.StringIO()
    ElementTree.ElementTree(suites).write(out, encoding="unicode", xml_declaration=False)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{out.getvalue()}\n'


def _case(suite: ElementTree.Element, name: str, seconds: float) -> ElementTree.Element:
    given = {"classname": "clew.check", "name": neutral(name, 80), "time": f"{seconds:.3f}"}
    return ElementTree.SubElement(suite, "testcase", given)


def _add_answer(suite: ElementTree.Element, answer: ExperimentAnswer) -> None:
    case = _case(suite, answer.name, answer.seconds)
    if answer.state == FAILED and answer.finding is not None:
        _add_failure(case, answer.finding)
    elif answer.state == UNJUDGED:
        hint = f"; {answer.hint}" if answer.hint else ""
        ElementTree.SubElement(case, "skipped", {"message": neutral(f"not judged: {answer.reason}{hint}")})


def _add_failure(case: ElementTree.Element, finding: Finding) -> None:
    given = {"type": finding.severity.value, "message": neutral(finding.message)}
    ElementTree.SubElement(case, "failure", given).text = "\n".join(described(finding))


def described(finding: Finding) -> list[str]:
    """The finding as plain lines."""
    where = location(finding.site)
    lines = [neutral(finding.message)]
    if where:
        lines.append(f"where: {where}")
    lines += [f"evidence: {neutral(e.text)}" for e in finding.evidence]
    lines += [f"sample: {neutral(e.caption, 200)}" for e in finding.exhibits]
    lines += [f"fix: {line}" for line in neutral_lines(finding.fix.strip("\n"))]
    if finding.proof is not None:
        lines.append(f"proof: {neutral(finding.proof.sentence)}")
    return lines
