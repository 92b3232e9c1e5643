"""Events: something that happened at one moment of a run, with one frozen dataclass per kind.

Collectors create and write them; checks read them. The docstring of a kind is its row in docs/signals.md.
Reading never raises: a field that is missing or of another type keeps its default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

from clew.records import codec
from clew.records.facts.fact import RecordedFact

E = TypeVar("E", bound="TypedEvent")


class EventSink(Protocol):
    """Where events are written: the store's writer, or a list in a test."""

    def event(self, kind: str, step: int, data: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class TypedEvent:
    """Base of all kinds of events."""

    event_kind: ClassVar[str]  # its name in the log: "exception"
    step: int = field(default=0, kw_only=True, metadata={codec.UNWRITTEN: True})  # when it happened

    @classmethod
    def read(cls: type[E], data: Mapping[str, Any], step: int = 0) -> E:
        """Read what was recorded, as far as it fits; `step` is when it happened."""
        return replace(codec.read(cls, data if isinstance(data, Mapping) else {}), step=step)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = codec.plain(self)
        return data

    def write(self, sink: EventSink, step: int) -> None:
        """Record it as happening now, at this step."""
        sink.event(self.event_kind, step, self.to_json())


def events_of(kind: type[E], events: Iterable[RecordedFact]) -> list[E]:
    """The events of one kind, read as far as they fit."""
    return [kind.read(event.data, event.step) for event in events if event.kind == kind.event_kind]


@dataclass(frozen=True)
class CheckpointSaveEvent(TypedEvent):
    """A call of `torch.save`: `file`, `line`."""

    event_kind = "checkpoint-save"

    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class CheckpointLoadEvent(TypedEvent):
    """A call of `torch.load`: `file`, `line`."""

    event_kind = "checkpoint-load"

    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class ModeEvent(TypedEvent):
    """A root module runs in another mode than before: `root`, `training`, `file` and `line` of the call that
    set the mode (null: unknown).
    """

    event_kind = "mode"

    root: str = ""
    training: bool | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class ErrorEvent(TypedEvent):
    """Base of what ends the script early."""

    type: str = ""
    message: str = ""
    file: str | None = codec.sparse()
    line: int | None = codec.sparse()
    user_file: str | None = None
    user_line: int | None = None


@dataclass(frozen=True)
class ExceptionEvent(ErrorEvent):
    """The script's own exception, which it did not catch: `type`, `message`, `file` and `line` where it was
    raised, `user_file` and `user_line` (the innermost line of the user's code; null: none).
    """

    event_kind = "exception"


@dataclass(frozen=True)
class InterruptEvent(ErrorEvent):
    """The user pressed Ctrl-C: as `exception` (`type`, `message`, `file`, `line`, `user_file`,
    `user_line`).
    """

    event_kind = "interrupt"


@dataclass(frozen=True)
class StopEvent(ErrorEvent):
    """Clew ended the script, for `--stop-on` or `--steps`: as `exception` (`type`, `message`, `file`, `line`,
    `user_file`, `user_line`).
    """

    event_kind = "stopped"
