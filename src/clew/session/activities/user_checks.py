"""The user's own checks: what they say is written down, for readers of the run who do not have them."""

from __future__ import annotations

from clew.records.facts.run_facts import CustomCheckFact
from clew.session.activities.activity import Activity


class OwnChecks(Activity):
    """Asked when the run is over."""

    name = "custom-checks"

    def close(self) -> None:
        """Ask them about all that was recorded; for nothing, not even the checks are imported."""
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
