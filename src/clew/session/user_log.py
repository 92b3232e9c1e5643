"""What the program itself adds to its run: `clew.log`, `clew.config` and `clew.ignore`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from clew.checks.ignore_rules import Rule
from clew.hooks.entry.user_line import user_line
from clew.records import signals
from clew.records.facts.run_facts import ConfigFact, IgnoreFact
from clew.records.site import Site

if TYPE_CHECKING:
    from clew.session.session import Session


class UserLog:
    """Metrics, hyperparameters and checks to leave out, written into the session's log."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tables: dict[tuple[str, Site], int] = {}

    def log(self, values: Mapping[str, Any]) -> None:
        """Record metrics at the step that they are about, one row for each."""
        watcher, writer = self._session.watcher, self._session.writer
        step = watcher.reported_step if watcher is not None else 0
        file, line = user_line()
        site = Site(op="log", file=file, line=line)
        for name, value in values.items():
            writer.row(self._table(name, site), step, (float(value),))

    def _table(self, name: str, site: Site) -> int:
        """One table for each metric and line of the program."""
        table = self._tables.get((name, site))
        if table is None:
            writer = self._session.writer
            table = writer.table([signals.METRIC.member(name)], [writer.site(site)])
            self._tables[name, site] = table
        return table

    def config(self, values: Mapping[str, Any]) -> None:
        """Record hyperparameters."""
        session = self._session
        ConfigFact("user", dict(values)).write(session.writer, session.step)

    def ignore(self, check: str, where: str = "", why: str = "") -> None:
        """Ignore a check, or its findings at some places, from now on and when the run is read later."""
        rule = Rule(check.strip().lower(), where, why)
        IgnoreFact(rule.check, rule.where, rule.why).write(self._session.writer, self._session.step)
