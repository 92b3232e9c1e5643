"""The user's own checks: records their findings for readers of the run who do not have the checks."""

from __future__ import annotations

from clew.records.facts.run_facts import CustomCheckFact
from clew.session.activities.activity import Activity


class OwnChecks(Activity):
    """Runs them when the run is over."""

    name = "custom-checks"

    def close(self) -> None:
        """Run them on everything that was recorded; without any, even the checks are not imported."""
        session = self._session
        if session.watcher is None:
            return
        from clew.checks.custom_checks import own_checks, to_fact
        from clew.checks.run_view import RunView
        from clew.checks.runner import ask
        from clew.checks.thresholds import in_force

        checks = own_checks()
        if checks:
            run = RunView(session.recorded())
            for check in in_force(checks, run):
                data = to_fact(check, *ask(check, run))
                session.writer.fact(CustomCheckFact.fact_kind, session.step, data)
