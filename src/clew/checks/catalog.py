"""All checks of Clew's own: every check in the folder of a family is one of them.

A family's folder has one check per file, so that a new check is a new file and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules

from clew import checks
from clew.checks.base import Check, UnknownCheck
from clew.checks.custom_checks import own_checks

__all__ = ["CHECKS", "UnknownCheck", "everything", "find"]

EVIDENCE = f"{checks.__name__}.evidence"  # what several checks read: no family

# The order in which checks run and in which a verdict lists their findings; a symptom that none of its
# known causes explains is attributed to the first of equally severe faults. An entry stands for the ids
# that begin with it, sorted, unless a longer entry does; a family without an entry comes last.
ORDER = (
    *("NUM", "OPT001", "LOOP", "GRPH", "OPT", "GRAD", "ACT001"),
    *("LOSS001", "LOSS002", "LOSS007", "LOSS005", "LOSS008", "LOSS009", "LOSS", "MET"),
    *("OUT004", "OUT003", "OUT", "MODE", "DATA", "DATA018", "DATA019", "STR", "OPT010", "SYM001"),
    *("ACT002", "ACT003", "OPT011", "SYM003", "SYM004", "SYM005", "SYM", "OPT012", "OPT013", "ACT", "ADV"),
    *("EXP040", "EXP041", "EXP001", "EXP002", "EXP042", "EXP020", "EXP021", "EXP022", "EXP043", "EXP004"),
    *("EXP044", "EXP023", "EXP003", "EXP045", "EXP024", "EXP", "PERF"),
)


def _place(kind: type[Check]) -> tuple[int, str]:
    """The position of a check in the order."""
    entry = max((entry for entry in ORDER if kind.id.startswith(entry)), key=len, default=None)
    return len(ORDER) if entry is None else ORDER.index(entry), kind.id


def _defined() -> Iterator[type[Check]]:
    """The checks in the folders of the families, found by the import system, so that a zip works as
    well."""
    for family in iter_modules(checks.__path__, f"{checks.__name__}."):
        if not family.ispkg or family.name == EVIDENCE:
            continue
        for module in iter_modules(import_module(family.name).__path__, f"{family.name}."):
            members = vars(import_module(module.name)).values()
            yield from (member for member in members if _is_check_of(member, module.name))


def _is_check_of(member: object, module: str) -> bool:
    """Whether a module defines this check, and does not only import it."""
    return isinstance(member, type) and member.__module__ == module and issubclass(member, Check)


CHECKS: tuple[type[Check], ...] = tuple(sorted(_defined(), key=_place))


def everything() -> list[Check]:
    """Every check with its default thresholds, the user's own last."""
    return [*(kind() for kind in CHECKS), *own_checks()]


def find(name: str) -> Check:
    """The check with this name or id; `UnknownCheck` suggests similar names."""
    wanted = name.strip().lower()
    known = everything()
    for check in known:
        if wanted in (check.name, check.id.lower()):
            return check
    names = [check.name for check in known]
    raise UnknownCheck(name, get_close_matches(wanted.replace("_", "-"), names, n=3, cutoff=0.6))
