"""Verdict of all checks on a run: findings, and what was not judged or was ignored."""

from __future__ import annotations

from dataclasses import dataclass

from clew.records.finding import Finding, Severity

NEEDS_EXPERIMENT = "needs an experiment: clew check"  # reason of a check that only experiments feed
NEEDS_PROFILE = "needs clew profile"  # of one that judges the speed of training
NEEDS_DATA = "needs clew data"  # of one that reads the data itself


@dataclass(frozen=True)
class NotJudged:
    """A check that could not decide, and why: no answer must never look like a healthy run."""

    check: str
    reason: str

    @property
    def needs_experiment(self) -> bool:
        """Whether only an experiment can answer it: then nothing is missing in the recording."""
        return self.reason == NEEDS_EXPERIMENT

    @property
    def unasked(self) -> bool:
        """Same as `needs_experiment`, for any command that would answer it."""
        return self.reason in (NEEDS_EXPERIMENT, NEEDS_PROFILE, NEEDS_DATA)

    def to_json(self) -> dict[str, str]:
        return {"check": self.check, "reason": self.reason}


@dataclass(frozen=True)
class Ignored:
    """A finding that the user chose to leave out."""

    check: str
    why: str

    def to_json(self) -> dict[str, str]:
        return {"check": self.check, "why": self.why}


@dataclass(frozen=True)
class Verdict:
    """Everything the checks say about a run, root causes first."""

    findings: tuple[Finding, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    ruled_out: tuple[str, ...] = ()  # checks that ran and found nothing
    ignored: tuple[Ignored, ...] = ()  # findings that the user chose to leave out
    other_causes: tuple[str, ...] = ()  # ruled-out checks that could have caused the findings

    @property
    def asked(self) -> int:
        """How many checks ran, whether they could decide or not."""
        found = {f.check for f in self.findings} | {i.check for i in self.ignored}
        return len(found) + len(self.not_judged) + len(self.ruled_out)

    @property
    def root_causes(self) -> list[str]:
        """The checks whose fixes are worth a test: not advice, and not what another finding explains."""
        return [f.check for f in self.findings if not f.because and f.severity is not Severity.ADVICE]

    def worst(self) -> Severity | None:
        return min((f.severity for f in self.findings), key=lambda s: s.rank, default=None)
