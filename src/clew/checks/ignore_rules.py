"""What the user has asked to ignore: a check everywhere, or only at some places.

Rules come from `--ignore`, from `pyproject.toml` and from `clew.ignore(...)`. They are recorded as
`ignore` facts, so that the verdict of a run is the same wherever it is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from clew.records.facts.run_facts import IgnoreFact
from clew.records.finding import Finding
from clew.records.site import Site


@dataclass(frozen=True)
class Rule:
    """Ignore a check: at places that match `where`, or everywhere if that is empty."""

    check: str
    where: str = ""  # a module path (`encoder.*`), a file (`train.py`), or a line (`train.py:12`)
    why: str = ""

    @classmethod
    def parse(cls, text: str) -> Rule:
        """`CHECK` or `CHECK@WHERE`, as on the command line."""
        check, _, where = text.partition("@")
        return cls(check.strip().lower(), where.strip())

    @classmethod
    def of_fact(cls, fact: IgnoreFact) -> Rule:
        return cls(fact.check, fact.where, fact.why)

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Rule:
        """From a table in pyproject.toml."""
        return cls(*(str(data.get(key) or "") for key in ("check", "where", "why")))

    def covers(self, name: str, id: str) -> bool:
        """Whether the whole check is ignored."""
        return not self.where and self.check in (name, id.lower())

    def covers_finding(self, finding: Finding) -> bool:
        return self.check in (finding.check, finding.id.lower()) and fits(finding.site, self.where)


def fits(site: Site, where: str) -> bool:
    """Whether a site matches a place: any part of it may be given, with `*` for the rest."""
    if not where:
        return True
    names = [site.module or ""]
    if site.module is not None and site.param:
        names.append(f"{site.module}.{site.param}")
    if site.file:
        file = site.file.replace(os.sep, "/")
        names += [file, f"{file}:{site.line}"]
        where = where.replace(os.sep, "/")
        if "/" not in where:
            names += [n.rpartition("/")[2] for n in (file, f"{file}:{site.line}")]
    return any(fnmatchcase(name, where) for name in names if name)


def rules_of(given: Iterable[str | Rule]) -> list[Rule]:
    return [rule if isinstance(rule, Rule) else Rule.parse(rule) for rule in given]
