"""For pytest: the experiments of `clew.examine`, each as a separate result.

    def test_model(clew_examine):
        clew_examine(model, loss_fn, batch)

Pytest finds it through its entry point; nothing heavy is imported before a test uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.api.examine import ExamineReport


@pytest.fixture
def clew_examine(request: pytest.FixtureRequest) -> Callable[..., ExamineReport]:
    """Like `clew.examine`; the test fails if an experiment fails, and shows why."""

    def run(*given: Any, **more: Any) -> ExamineReport:
        from clew.api.examine import examine

        report = examine(*given, **more)
        subtests = _subtests(request)
        if subtests is None:
            _all_at_once(report)
        else:
            _one_by_one(report, subtests)
        return report

    return run


def _subtests(request: pytest.FixtureRequest) -> Any:
    """The `subtests` fixture of pytest 9, or of its plugin before that; None without either."""
    try:
        return request.getfixturevalue("subtests")
    except pytest.FixtureLookupError:
        return None


def _one_by_one(report: ExamineReport, subtests: Any) -> None:
    for answer in report.preflight.answers:
        with subtests.test(msg=answer.name):
            if answer.name in report.failed:
                pytest.fail(report.explain(answer.name), pytrace=False)
            if answer.name in report.unjudged:
                pytest.skip(_open(report, answer.name))


def _all_at_once(report: ExamineReport) -> None:
    if not report.failed:
        return
    blocks = [report.explain(name) for name in report.failed]
    judged = f"{len(report.failed)} failed, {len(report.passed)} passed, {len(report.unjudged)} not judged"
    pytest.fail("\n\n".join([f"clew_examine: {judged}", *blocks]), pytrace=False)


def _open(report: ExamineReport, name: str) -> str:
    answer = report[name]
    return f"not judged: {answer.reason}{f'; {answer.hint}' if answer.hint else ''}"
