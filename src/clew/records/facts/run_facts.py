"""Facts about the run: settings, versions, the user's own checks, proofs of fixes, failures inside Clew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.records.codec import sparse
from clew.records.facts.fact import TypedFact


@dataclass(frozen=True)
class ConfigFact(TypedFact):
    """`source` (`argv` or `user`), `values`."""

    fact_kind = "config"

    source: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class IgnoreFact(TypedFact):
    """A check to leave out: `check`, `where` (empty: everywhere), `why`."""

    fact_kind = "ignore"

    check: str = ""
    where: str = ""
    why: str = ""


@dataclass(frozen=True)
class ThresholdsFact(TypedFact):
    """Where the project draws the line for a check: `check`, `values` by the name of the threshold."""

    fact_kind = "thresholds"

    check: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AnnouncedFact(TypedFact):
    """An error that was told while the run went on: `check`, `findings`; the verdict keeps it though the
    check may no longer see it at the end.
    """

    fact_kind = "announced"

    check: str = ""
    findings: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class CustomCheckFact(TypedFact):
    """What a check of the user's own said at the end: `check`, `id`, `page`, `findings`, `reason` (why it
    could not judge, or null).
    """

    fact_kind = "custom_check"

    check: str = ""
    id: str = ""
    page: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Mapping[str, Any], ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class CustomSignalFact(TypedFact):
    """A signal of the user's own, when it is first collected: `name`, `unit`, `meaning`."""

    fact_kind = "custom_signal"

    name: str = ""
    unit: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class FrameworkFact(TypedFact):
    """A training framework that the program imported and that an adapter was attached to: `name`, `version`
    (null: not known).
    """

    fact_kind = "framework"

    name: str = ""
    version: str | None = None


@dataclass(frozen=True)
class IdleFact(TypedFact):
    """`reason`: why there was nothing to judge, sent at the end of a run without steps."""

    fact_kind = "idle"

    reason: str = ""


@dataclass(frozen=True)
class VersionsFact(TypedFact):
    """`torch`, `threads`: of the training process."""

    fact_kind = "versions"

    torch: str = ""
    threads: int | None = None


@dataclass(frozen=True)
class GitFact(TypedFact):
    """`commit`, `branch`, `dirty`."""

    fact_kind = "git"

    commit: str = ""
    branch: str | None = None
    dirty: bool | None = None


@dataclass(frozen=True)
class ProofFact(TypedFact):
    """A trial of a finding's fix on a snapshot: `check`, `fix` (in words), `steps`, `seeds`, `before` and
    `after` (median loss at the end without and with it, both measured as the repaired program would),
    `before_spread`, `after_spread` (lowest and highest over the seeds), `helped` (null: it can't be told);
    or `check` and `refused` (why).
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
class TrialsFact(TypedFact):
    """`seconds` that the trials took."""

    fact_kind = "trials"

    seconds: float = 0.0


@dataclass(frozen=True)
class IncidentFact(TypedFact):
    """Something inside Clew failed and was switched off: `probe`, `error`."""

    fact_kind = "incident"

    probe: str = ""
    error: str = ""
