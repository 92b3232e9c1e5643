"""Metadata of a run, its `run.json`: who ran what, when and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from clew.records.codec import UNWRITTEN, plain, read, sparse


@dataclass(frozen=True)
class RunMeta:
    """The content of run.json. A field that is missing or damaged has its default."""

    name: str | None = None
    script: str | None = None
    module: bool | None = None  # started with -m
    args: tuple[str, ...] = ()  # the script's arguments
    command: tuple[str, ...] | str | None = None
    cwd: str | None = None
    user: str | None = None
    versions: Mapping[str, Any] = field(default_factory=dict)
    world_size: int | None = None  # processes
    rank: int | None = None

    # Added by the store when it creates the folder.
    format_version: Any = sparse()  # a number, if Clew wrote the file
    id: str | None = sparse()
    started: float | None = sparse()  # seconds since 1970
    hostname: str | None = sparse()

    recorded: Mapping[str, Any] = field(default_factory=dict, metadata={UNWRITTEN: True})  # the file as it is

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> RunMeta:
        return replace(read(cls, data), recorded=data)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = plain(self)
        return data

    @property
    def program(self) -> str:
        """What was run, for people: the script, or else the command."""
        found = self.script or self.command or ""
        return found if isinstance(found, str) else " ".join(found)
