"""What the facts of all experiments have in common; each experiment's own fact adds its numbers.

The kinds are in `learning_experiment_facts`, `network_experiment_facts` and `data_experiment_facts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple

from clew.records.codec import json_types, unwritten
from clew.records.facts.fact import FactSink, TypedFact
from clew.records.finding import Exhibit
from clew.records.site import Site

PREFIX = "experiment."
DONE, UNJUDGED = "done", "unjudged"


class SourceLine(NamedTuple):
    """A line of the user's code, written as `[file, line]`."""

    file: str | None = None
    line: int | None = None

    @property
    def site(self) -> Site:
        return Site(file=self.file, line=self.line)


@dataclass(frozen=True)
class CodePlace:
    """Where an op ran."""

    op: str | None = None
    root: str | None = None
    module: str | None = None
    file: str | None = None
    line: int | None = None

    @property
    def site(self) -> Site:
        return Site(module=self.module, op=self.op, file=self.file, line=self.line, root=self.root)


NO_LINE, NO_PLACE = SourceLine(), CodePlace()


@dataclass(frozen=True)
class RecordedPlot:
    """What an experiment measured along an axis; points may be non-finite."""

    title: str = ""
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    x_label: str = "step"
    y_label: str = ""
    log_x: bool = False


@dataclass(frozen=True)
class ExperimentFact(TypedFact):
    """The result of an experiment of `clew check` or `clew.examine`, for the check of the same name:
    `status` (`done` or `unjudged`), `reason` and `hint` (why it could not be judged, and the line of code
    that would change that), `seconds`, `question`, `data` (its numbers), `plots`: `[{title, x, y, x_label,
    y_label, log_x}]`, `exhibits` (samples to look at): `[{kind, caption, data}]`, where `kind` is `image`,
    `text`, `numbers` or `wave`.

    The fields that a subclass adds are those of `data`; an experiment without a subclass has only `data`.
    """

    fact_kind = "experiment.<name>"

    status: str = ""
    reason: str = ""
    hint: str = ""
    seconds: float = 0.0
    question: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    plots: tuple[RecordedPlot, ...] = ()
    exhibits: tuple[Exhibit, ...] = ()
    name: str = unwritten("")  # of the experiment: it is part of the kind

    @classmethod
    def read(cls, data: Mapping[str, Any], step: int = 0) -> Any:
        """Read what was recorded, as far as it fits: what belongs to all experiments, and `data`."""
        if cls is ExperimentFact or not isinstance(data, Mapping):
            return super().read(data, step)
        own = data.get("data")
        shared = {key: data[key] for key in _shared() - {"data"} if key in data}
        return super().read({**(own if isinstance(own, Mapping) else {}), **shared}, step)

    def to_json(self) -> dict[str, Any]:
        written = json_types(super().to_json())
        own = {key: written.pop(key) for key in [*written] if key not in _shared()}
        return {**written, "data": {**written["data"], **own}}

    def write(self, sink: FactSink, step: int) -> None:
        """Record it under the name of its experiment, which may be one of the user's own."""
        sink.fact(f"{PREFIX}{self.name}", step, self.to_json())


@cache
def _shared() -> frozenset[str]:
    """The fields of every experiment."""
    return frozenset(known.name for known in fields(ExperimentFact))
