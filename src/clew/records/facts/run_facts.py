"""Facts about the run: settings, versions, the user's own checks, proofs of fixes, failures inside Clew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.records.codec import sparse
from clew.records.facts.fact import TypedFact


@dataclass(frozen=True)
class ConfigFact(TypedFact):
    """Settings of the run: `source` (`argv` or `user`), `values`."""

    fact_kind = "config"

    source: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class IgnoreFact(TypedFact):
    """A check that is left out: `check`, `where` (empty: everywhere), `why`."""

    fact_kind = "ignore"

    check: str = ""
    where: str = ""
    why: str = ""


@dataclass(frozen=True)
class ThresholdsFact(TypedFact):
    """A check's thresholds as the project sets them: `check`, `values` (by the name of the threshold)."""

    fact_kind = "thresholds"

    check: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AnnouncedFact(TypedFact):
    """An error reported during the run: `check`, `findings`. The verdict keeps it even if the check no
    longer finds it at the end.
    """

    fact_kind = "announced"

    check: str = ""
    findings: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class CustomCheckFact(TypedFact):
    """The result of a user's own check at the end of the run: `check`, `id`, `page`, `findings`, `reason`
    (why it could not judge; null if it could).
    """

    fact_kind = "custom_check"

    check: str = ""
    id: str = ""
    page: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Mapping[str, Any], ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class CustomSignalFact(TypedFact):
    """A user's own signal, written when it is first recorded: `name`, `unit`, `meaning`."""

    fact_kind = "custom_signal"

    name: str = ""
    unit: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class FrameworkFact(TypedFact):
    """A training framework that the program imported and that has an adapter: `name`, `version` (null:
    unknown).
    """

    fact_kind = "framework"

    name: str = ""
    version: str | None = None


@dataclass(frozen=True)
class IdleFact(TypedFact):
    """Written at the end of a run without steps: `reason` (why there was nothing to judge)."""

    fact_kind = "idle"

    reason: str = ""


@dataclass(frozen=True)
class VersionsFact(TypedFact):
    """Of the training process: `torch` (its version), `threads`."""

    fact_kind = "versions"

    torch: str = ""
    threads: int | None = None


@dataclass(frozen=True)
class GitFact(TypedFact):
    """State of the user's repository: `commit`, `branch`, `dirty` (uncommitted changes)."""

    fact_kind = "git"

    commit: str = ""
    branch: str | None = None
    dirty: bool | None = None


@dataclass(frozen=True)
class ProofFact(TypedFact):
    """A finding's fix, tried on a snapshot: `check`, `fix` (in words), `steps`, `seeds`, `before` and
    `after` (median final loss without and with the fix, both measured as the fixed program would),
    `before_spread` and `after_spread` (lowest and highest over the seeds), `helped` (null: unclear). If
    it was not tried: `check` and `refused` (why).
    """

    fact_kind = "proof"

    check: str = ""
    refused: str | None = sparse()
    fix: str | None = sparse()
    steps: int | None = sparse()
    seeds: int | None = sparse()
    before: Any = sparse()
    after: Any = sparse()
    before_spread: tuple[Any, ...] | None = sparse()
    after_spread: tuple[Any, ...] | None = sparse()
    helped: bool | None = None


@dataclass(frozen=True)
class ProofTimeFact(TypedFact):
    """How long trying the fixes took: `seconds`."""

    fact_kind = "trials"

    seconds: float = 0.0


@dataclass(frozen=True)
class IncidentFact(TypedFact):
    """Something inside Clew failed and was switched off: `probe`, `error`."""

    fact_kind = "incident"

    probe: str = ""
    error: str = ""
