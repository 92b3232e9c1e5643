"""A pre-flight for machines: JSON, and JUnit XML for CI systems."""

from __future__ import annotations

import io
from typing import Any
from xml.etree import ElementTree

from clew.records.finding import Finding
from clew.render.run_summary import RunSummary
from clew.render.safe_text import neutral, neutral_lines
from clew.render.verdict.preflight_answers import FAILED, PASSED, UNJUDGED, ExperimentAnswer, Preflight
from clew.render.verdict.source_place import location
from clew.render.verdict_json import verdict_json


def preflight_json(preflight: Preflight, run: RunSummary) -> dict[str, Any]:
    """As `clew why --json`, with the experiments beside it."""
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
    """One test case for each experiment; other findings of the verdict are cases of their own."""
    others = preflight.others
    suite = ElementTree.Element("testsuite", {"name": f"clew check {_clean(preflight.what, 80)}"})
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
    given = {"classname": "clew.check", "name": _clean(name, 80), "time": f"{seconds:.3f}"}
    return ElementTree.SubElement(suite, "testcase", given)


def _add_answer(suite: ElementTree.Element, answer: ExperimentAnswer) -> None:
    case = _case(suite, answer.name, answer.seconds)
    if answer.state == FAILED and answer.finding is not None:
        _add_failure(case, answer.finding)
    elif answer.state == UNJUDGED:
        hint = f"; {answer.hint}" if answer.hint else ""
        ElementTree.SubElement(case, "skipped", {"message": _clean(f"no result: {answer.reason}{hint}")})


def _add_failure(case: ElementTree.Element, finding: Finding) -> None:
    given = {"type": finding.severity.value, "message": _clean(finding.message)}
    ElementTree.SubElement(case, "failure", given).text = "\n".join(described(finding))


def described(finding: Finding) -> list[str]:
    """The finding in plain lines."""
    where = location(finding.site)
    lines = [_clean(finding.message)]
    if where:
        lines.append(f"where: {where}")
    lines += [f"evidence: {_clean(e.text)}" for e in finding.evidence]
    lines += [f"sample: {_clean(e.caption, 200)}" for e in finding.exhibits]
    lines += [f"fix: {line}" for line in neutral_lines(finding.fix.strip("\n"))]
    if finding.proof is not None:
        lines.append(f"proof: {_clean(finding.proof.sentence)}")
    return lines


def _clean(text: str, limit: int = 600) -> str:
    """XML forbids most control characters, even escaped."""
    return neutral(text, limit)
