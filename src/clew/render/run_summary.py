"""What a rendering says about the run itself, next to the verdict."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.records.facts.run_facts import IdleFact, IncidentFact
from clew.store.read.run_metadata import RunMeta

if TYPE_CHECKING:
    from clew.store.read.run_data import Fact, RunData
    from clew.store.read.run_reader import RunReader

LONGEST_COMMAND = 600  # characters of a command to copy; a longer one is hard to copy from a terminal
NO_STEP = (
    "no training step was recorded: the script ended before the first step, or does not train with torch"
)


@dataclass(frozen=True)
class RunSummary:
    """A run in a few words; every rendering takes one, live or read back."""

    id: str
    path: str  # empty: there is none
    script: str  # as it was started: "train.py", "-m package.train"
    state: str  # running, finished, failed, killed
    steps: int
    checks: int  # how many checks ran, judged or not
    started: float | None = None  # seconds since 1970
    ranks: int = 1
    damage: tuple[str, ...] = ()  # what could not be read
    incidents: tuple[str, ...] = ()  # what failed inside Clew while recording
    idle: str | None = None  # why there is nothing to judge; None if there is
    args: tuple[str, ...] = ()  # the script's arguments

    @property
    def called(self) -> str:
        """The script with its arguments, quoted for a shell."""
        words = self.script if self.script.startswith("-m ") else shlex.quote(self.script)
        return " ".join([words, *map(shlex.quote, self.args)])

    def to_json(self) -> dict[str, Any]:
        """The `run` of the stable JSON shape."""
        return {
            "id": self.id,
            "path": self.path,
            "script": self.script,
            "state": self.state,
            "steps": self.steps,
            "started": self.started,
            "ranks": self.ranks,
            "checks": self.checks,
            "damage": list(self.damage),
            "incidents": list(self.incidents),
            "idle": self.idle,
        }


def summarise(run: RunReader, checks: int) -> RunSummary:
    """The summary of a recorded run on which `checks` checks ran."""
    from clew.store.write.frames import number

    return RunSummary(
        id=run.path.name,
        path=str(run.path),
        script=run.meta.program or run.path.name,
        state=run.state,
        steps=run.data.last_step + 1,
        checks=checks,
        started=number(run.meta.started),
        ranks=max(len(run.ranks), 1),
        damage=tuple(run.damage),
        incidents=tuple(incidents(run.data.facts)),
        idle=idle_reason(run.data, run.damage),
        args=run.meta.args,
    )


def incidents(facts: Iterable[Fact]) -> list[str]:
    """What failed inside Clew and was switched off, one line each."""
    found = [IncidentFact.read(fact.data) for fact in facts if fact.kind == IncidentFact.fact_kind]
    return [f"{fact.probe or 'a probe'} failed: {fact.error or 'no reason given'}" for fact in found]


def idle_reason(data: RunData, damage: Sequence[str] = ()) -> str | None:
    """Why there is nothing to judge: as the session recorded it; or that no step is readable, or none ran."""
    if data.last_step >= 0:
        return None
    reasons = [IdleFact.read(fact.data).reason for fact in data.facts if fact.kind == IdleFact.fact_kind]
    if reasons and reasons[-1]:
        return reasons[-1]
    return f"no training step can be read: {damage[-1]}" if damage else NO_STEP


def unrecorded(path: Path, meta: RunMeta, data: RunData, checks: int, lost: tuple[str, ...]) -> RunSummary:
    """The summary of a run for which nothing could be written: from memory."""
    return RunSummary(
        id=path.name,
        path=str(path) if path.is_dir() else "",
        script=meta.program or path.name,
        state="finished",
        steps=data.last_step + 1,
        checks=checks,
        incidents=lost,
        idle=idle_reason(data),
        args=meta.args,
    )
