"""Base class of facts: a fact is something recorded once in a run, with one frozen dataclass per kind.

Collectors create and write them; checks read them. The docstring of a kind is its row in docs/signals.md.
Reading never raises: a run may come from another version of Clew or from a damaged disk, so a field that is
missing or of another type keeps its default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from clew.records import codec

F = TypeVar("F", bound="TypedFact")
Content = TypeVar("Content")


class FactSink(Protocol):
    """Where facts are written: the store's writer, or a list in a test."""

    def fact(self, kind: str, step: int, data: dict[str, Any]) -> None: ...


class RecordedFact(Protocol):
    """A fact of any kind, as it was recorded."""

    @property
    def kind(self) -> str: ...
    @property
    def step(self) -> int: ...
    @property
    def data(self) -> Any: ...


@dataclass(frozen=True)
class TypedFact:
    """Base of all kinds of facts."""

    fact_kind: ClassVar[str]  # its name in the log: "optimizer"
    step: int = field(default=0, kw_only=True, metadata={codec.UNWRITTEN: True})  # when it became known

    @classmethod
    def read(cls: type[F], data: Mapping[str, Any], step: int = 0) -> F:
        """Read what was recorded, as far as it fits; `step` is when it became known."""
        return replace(codec.read(cls, data if isinstance(data, Mapping) else {}), step=step)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = codec.plain(self)
        return data

    def write(self, sink: FactSink, step: int) -> None:
        """Record it as known at this step."""
        sink.fact(self.fact_kind, step, self.to_json())


def facts_of(kind: type[F], facts: Iterable[RecordedFact]) -> list[F]:
    """The facts of one kind, read as far as they fit."""
    return [kind.read(fact.data, fact.step) for fact in facts if fact.kind == kind.fact_kind]


@dataclass
class FactInMemory:
    """A fact that is judged in the process that found it, without being written or read back."""

    fact: TypedFact

    @property
    def kind(self) -> str:
        return self.fact.fact_kind

    @property
    def step(self) -> int:
        return self.fact.step

    @property
    def data(self) -> dict[str, Any]:
        return self.fact.to_json()


@dataclass(frozen=True)
class WrittenFact:
    """A fact as a sink gets it."""

    kind: str
    step: int
    data: dict[str, Any]


@dataclass
class FactsInMemory:
    """A run in memory that has only facts, for the checks to read; also a sink."""

    facts: list[FactInMemory | WrittenFact] = field(default_factory=list)
    events: tuple[RecordedFact, ...] = ()
    last_step: int = -1
    end: dict[str, Any] | None = None

    def add(self, fact: TypedFact) -> None:
        self.facts.append(FactInMemory(fact))

    def fact(self, kind: str, step: int, data: dict[str, Any]) -> None:
        self.facts.append(WrittenFact(kind, step, data))

    def signal_names(self) -> list[str]:
        return []

    def series(self, name: str) -> Iterator[Any]:
        return iter(())


@dataclass(frozen=True)
class DocumentFact(TypedFact, Generic[Content]):
    """Base of facts whose content has its own dataclass, which is also written to files.

    The content is None if too much of what was recorded is damaged.
    """

    parse: ClassVar[Any]  # makes the content of what was recorded; raises TypeError where that is so
    content: Content | None = None

    @classmethod
    def read(cls: type[F], data: Mapping[str, Any], step: int = 0) -> F:
        """Read the content; None if too much of it is damaged."""
        try:
            content = cls.parse(data)  # type: ignore[attr-defined]
        except TypeError:
            content = None
        return cls(content=content, step=step)  # type: ignore[call-arg]

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {} if self.content is None else self.content.to_json()  # type: ignore[attr-defined]
        return data
