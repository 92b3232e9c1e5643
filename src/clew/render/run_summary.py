"""What a rendering says about the run itself, next to the verdict."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.store.read.run_data import Fact, RunData
    from clew.store.read.run_reader import RunReader

LONGEST_COMMAND = 600  # characters of a command to copy; more is no longer one line of a terminal's history
NO_STEP = (
    "no training step was recorded: the script ended before the first step, or does not train with torch"
)


@dataclass(frozen=True)
class RunSummary:
    """A run in a few words; every rendering takes one, live and read back alike."""

    id: str
    path: str  # empty: there is none
    script: str  # as it was called: "train.py", "-m package.train"
    state: str  # running, finished, failed, killed
    steps: int
    checks: int  # how many were asked, judged or not
    started: float | None = None  # seconds since 1970
    ranks: int = 1
    damage: tuple[str, ...] = ()  # what could not be read
    incidents: tuple[str, ...] = ()  # what failed inside Clew while recording
    idle: str | None = None  # why there is nothing to judge, if there isn't
    args: tuple[str, ...] = ()  # that the script was given

    @property
    def called(self) -> str:
        """The script with its arguments, as a shell takes them."""
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
    """The summary of a recorded run of which `checks` checks were asked."""
    from clew.store.read.run_info import script_of

    started = run.meta.get("started")
    return RunSummary(
        id=run.path.name,
        path=str(run.path),
        script=script_of(run.meta) or run.path.name,
        state=run.state,
        steps=run.data.last_step + 1,
        checks=checks,
        started=float(started) if isinstance(started, (int, float)) else None,
        ranks=max(len(run.ranks), 1),
        damage=tuple(run.damage),
        incidents=tuple(incidents(run.data.facts)),
        idle=idle_reason(run.data, run.damage),
        args=_arguments(run.meta),
    )


def _arguments(meta: Mapping[str, Any]) -> tuple[str, ...]:
    found = meta.get("args")
    return tuple(str(a) for a in found) if isinstance(found, list) else ()


def incidents(facts: Iterable[Fact]) -> list[str]:
    """What failed inside Clew and was switched off, a line each."""
    found = [fact.data for fact in facts if fact.kind == "incident"]
    return [
        f"{data.get('probe', 'a probe')} failed: {data.get('error', 'no reason given')}" for data in found
    ]


def idle_reason(data: RunData, damage: Sequence[str] = ()) -> str | None:
    """Why there is nothing to judge: as the session noted it; or that no step can be read, or was made."""
    if data.last_step >= 0:
        return None
    noted = [fact.data.get("reason") for fact in data.facts if fact.kind == "idle"]
    if noted and noted[-1]:
        return str(noted[-1])
    return f"no training step can be read: {damage[-1]}" if damage else NO_STEP


def unrecorded(
    path: Path, meta: Mapping[str, Any], data: RunData, checks: int, lost: tuple[str, ...]
) -> RunSummary:
    """The summary of a run of which nothing could be written: from memory."""
    from clew.store.read.run_info import script_of

    return RunSummary(
        id=path.name,
        path=str(path) if path.is_dir() else "",
        script=script_of(dict(meta)) or path.name,
        state="finished",
        steps=data.last_step + 1,
        checks=checks,
        incidents=lost,
        idle=idle_reason(data),
        args=_arguments(meta),
    )
