"""Base class of facts: a fact is something recorded once in a run, with one frozen dataclass per kind.

Collectors create and write them; checks read them. The docstring of a kind is its row in docs/signals.md.
Reading never raises: a run may come from another version of Clew or from a damaged disk, so a field that is
missing or of another type keeps its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol, TypeVar

from clew.records import codec

F = TypeVar("F", bound="TypedFact")


class FactSink(Protocol):
    """Where facts are written: the store's writer, or a list in a test."""

    def fact(self, kind: str, step: int, data: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class TypedFact:
    """Base of all kinds of facts."""

    fact_kind: ClassVar[str]  # its name in the log: "optimizer"

    @classmethod
    def read(cls: type[F], data: Mapping[str, Any], step: int = 0) -> F:
        """Read what was recorded, as far as it fits; `step` is when it became known."""
        fact = codec.read(cls, data if isinstance(data, Mapping) else {})
        timed = any(f.name == "step" and f.metadata.get(codec.UNWRITTEN) for f in fields(cls))
        return replace(fact, step=step) if timed else fact  # type: ignore[call-arg]

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = codec.plain(self)
        return data

    def write(self, sink: FactSink, step: int) -> None:
        """Record it as known at this step."""
        sink.fact(self.fact_kind, step, self.to_json())
