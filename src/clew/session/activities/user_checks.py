"""The user's own checks: records their findings for readers of the run who do not have the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.records.facts.run_facts import CustomCheckFact
from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from clew.checks.base import Check
    from clew.checks.run_view import RunView


class UserChecks(Activity):
    """Runs them when the run is over."""

    name = "custom-checks"

    def close(self) -> None:
        """Run them on everything that was recorded; without any, even the checks are not imported."""
        session = self._session
        if session.watcher is None:
            return
        from clew.checks.custom_checks import own_checks
        from clew.checks.run_view import RunView
        from clew.checks.thresholds import in_force

        checks = own_checks()
        if checks:
            run = RunView(session.recorded())
            for check in in_force(checks, run):
                result_fact(check, run).write(session.writer, session.step)


def result_fact(check: Check, run: RunView) -> CustomCheckFact:
    """A check's result, for readers who do not have the check."""
    from clew.checks.base import sections
    from clew.checks.custom_checks import findings_data
    from clew.checks.runner import ask

    findings, reason = ask(check, run)
    return CustomCheckFact(check.name, check.id, sections(check), tuple(findings_data(findings)), reason)
