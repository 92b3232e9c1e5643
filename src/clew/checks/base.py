"""What a check is: thresholds, the signals it needs, one pure method, and a docstring.

The docstring of a check's module is its documentation page, so the text that `clew explain` prints and
the page in the docs are always the same.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from clew.checks.needs import Need
from clew.checks.run_view import RunView
from clew.records.finding import Evidence, Exhibit, Finding, Severity
from clew.records.site import Site

SECTIONS = ("What it detects", "Why is this bad?", "How to fix", "Known problems", "References")


class UnknownCheck(Exception):  # noqa: N818 - reads as what it is: `except UnknownCheck`
    """A name that no check has, with similar names."""

    def __init__(self, name: str, close: Iterable[str] = ()) -> None:
        self.name = name
        self.close = tuple(close)
        hint = f"; did you mean {' or '.join(self.close)}?" if self.close else ""
        super().__init__(f"there is no check named {name!r}{hint}")


@dataclass(frozen=True)
class Check(ABC):
    """Base of all checks: fields are thresholds, each with its unit and a reason."""

    id: ClassVar[str]
    name: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]]  # signals and kinds of facts; `any_of(a, b)` where either will do
    confidence: ClassVar[str] = "likely"  # of its findings: certain, likely or possible
    # Where it stands among Clew's own checks: those of a lower rank run first and are listed first, and a
    # symptom that none of its known causes explains is attributed to the first of equally severe faults.
    # 0: the rank of its family (`catalog.FAMILIES`). Checks of the same rank are sorted by id.
    rank: ClassVar[int] = 0
    scope: ClassVar[str] = "run"  # what it judges at a time; or `phase`, `training`: see `trainings`
    # Why an error that was reported early is withdrawn when later steps contradict it; "": it never is.
    withdrawal: ClassVar[str] = ""
    on_one_forward: ClassVar[bool] = False  # `clew show` runs it too: one traced forward shows the fault
    symptom: ClassVar[bool] = False  # describes what happens, not why: listed after any cause that was found

    # What causes what, as names of checks or of groups (`checks.causes`). Either side may declare it:
    # the effect in `caused_by`, or the cause in `causes` or by its groups.
    groups: ClassVar[tuple[str, ...]] = ()  # that it belongs to
    caused_by: ClassVar[tuple[str, ...]] = ()  # possible causes, the likeliest first
    not_caused_by: ClassVar[tuple[str, ...]] = ()  # exceptions to a group in `caused_by`
    causes: ClassVar[tuple[str, ...]] = ()  # possible effects, besides those that name it or its groups
    from_the_start: ClassVar[bool] = False  # part of the program's setup: exists before it is first seen

    @abstractmethod
    def diagnose(self, run: RunView) -> Iterator[Finding]:
        """The findings on the run, the worst place first."""

    def unjudged(self, run: RunView) -> str | None:
        """Why the check could not judge the run; None if it could."""
        return None

    def clears(self, run: RunView) -> bool:
        """Whether the fault is ruled out if nothing is found."""
        return True

    def finding(
        self,
        severity: Severity,
        *,
        message: str,
        fix: str,
        site: Site | None = None,
        step: int | None = None,
        evidence: Evidence | Iterable[Evidence] = (),
        confidence: str | None = None,
        exhibits: Iterable[Exhibit] = (),
    ) -> Finding:
        return Finding(
            check=self.name,
            id=self.id,
            severity=severity,
            message=message,
            fix=fix,
            site=site or Site(),
            step=step,
            evidence=(evidence,) if isinstance(evidence, Evidence) else tuple(evidence),
            confidence=confidence or self.confidence,
            exhibits=tuple(exhibits),
        )


def sections(check: Check | type[Check]) -> dict[str, str]:
    """The parts of a check's documentation by their headings, in order."""
    kind = check if isinstance(check, type) else type(check)
    # A custom check has its page in its own docstring: its module is the training script.
    ours = kind.__module__.startswith("clew.")
    doc = (sys.modules[kind.__module__].__doc__ if ours else getattr(kind, "page", kind.__doc__)) or ""
    if "## " not in doc:
        doc = f"## {SECTIONS[0]}\n{doc}"
    parts = re.split(r"^## (.+)$", doc, flags=re.MULTILINE)
    return {heading.strip(): body.strip() for heading, body in zip(parts[1::2], parts[2::2], strict=True)}


def summary(check: Check | type[Check]) -> str:
    """The first sentence of what a check detects, on one line."""
    detects = " ".join(sections(check).get(SECTIONS[0], "").split())
    return re.split(r"(?<=[.!?])\s", detects, maxsplit=1)[0]
