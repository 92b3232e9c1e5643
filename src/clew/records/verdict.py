"""What all checks together say of a run: findings, and what was not judged or was ignored."""

from __future__ import annotations

from dataclasses import dataclass

from clew.records.finding import Finding, Severity

NEEDS_EXPERIMENT = "needs an experiment: clew check"  # why a check that only experiments feed says nothing
NEEDS_PROFILE = "needs clew profile"  # and one that judges how fast training is
NEEDS_DATA = "needs clew data"  # and one that looks through the data itself


@dataclass(frozen=True)
class NotJudged:
    """A check that could not speak, and why: silence must never pass for health."""

    check: str
    reason: str

    @property
    def needs_experiment(self) -> bool:
        """Nobody has asked the question yet: that is no gap in what was recorded."""
        return self.reason == NEEDS_EXPERIMENT

    @property
    def unasked(self) -> bool:
        """The same of any question that another command asks."""
        return self.reason in (NEEDS_EXPERIMENT, NEEDS_PROFILE, NEEDS_DATA)

    def to_json(self) -> dict[str, str]:
        return {"check": self.check, "reason": self.reason}


@dataclass(frozen=True)
class Ignored:
    """A finding that the user has said to leave out."""

    check: str
    why: str

    def to_json(self) -> dict[str, str]:
        return {"check": self.check, "why": self.why}


@dataclass(frozen=True)
class Verdict:
    """Everything the checks have to say about a run, root causes first."""

    findings: tuple[Finding, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    ruled_out: tuple[str, ...] = ()  # checks that looked and found nothing
    ignored: tuple[Ignored, ...] = ()  # findings that the user did not want to hear of
    other_causes: tuple[str, ...] = ()  # of the ruled out, those that could have caused what was found

    @property
    def asked(self) -> int:
        """How many checks were asked, judged or not."""
        found = {f.check for f in self.findings} | {i.check for i in self.ignored}
        return len(found) + len(self.not_judged) + len(self.ruled_out)

    def worst(self) -> Severity | None:
        return min((f.severity for f in self.findings), key=lambda s: s.rank, default=None)
