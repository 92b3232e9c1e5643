"""Samples and batches in a readable form: plain data for rendering. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from clew.records.codec import finite, keyed, plain, read
from clew.records.finding import Exhibit


@dataclass(frozen=True)
class FieldView:
    """One field of a sample, of a batch or of a model's input."""

    name: str  # key or position: "0", "image", "meta.age"
    type: str  # "tensor", "array", "picture RGB", "str", "int", "list"
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    low: float | None = None  # of the finite values, like the next ones
    high: float | None = None
    mean: float | None = None
    std: float | None = None
    bad: int = 0  # values that are NaN or infinite
    text: str = ""  # the value itself, if it is short


@dataclass(frozen=True)
class ValueView:
    """A sample, or its row in a batch."""

    title: str  # "sample 17", "row 3"
    index: int | None = None  # in the dataset
    label: str = ""
    kind: str = "numbers"  # as Exhibit.kind
    data: Any = None
    rate: int | None = None  # for a wave: values per second
    parts: tuple[FieldView, ...] = ()
    error: str = ""  # why it could not be read

    @property
    def exhibit(self) -> Exhibit:
        caption = ", ".join(word for word in (self.title, self.label) if word)
        return Exhibit(self.kind, caption, self.data)


@dataclass(frozen=True)
class StageView:
    """The output of one stage for a sample."""

    name: str
    kind: str
    depth: int = 0
    file: str | None = None
    line: int | None = None
    seconds: float = 0.0
    random: bool = False  # the same input gives another output with other random numbers
    given: FieldView | None = None
    made: FieldView | None = None
    view: ValueView | None = keyed("look")  # of its output
    error: str = ""

    def differs_from(self, before: StageView | None) -> bool:
        """Whether its output looks different from that of the stage before."""
        pair = (self.view, before.view if before is not None else None)
        return pair[0] is None or pair[1] is None or pair[0].data != pair[1].data


@dataclass(frozen=True)
class SamplePath:
    """One sample through every stage; the random ones run once with a fixed seed."""

    index: int
    seed: int = 0
    stages: tuple[StageView, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class LoaderView:
    """One loader: what it is, and what it delivers."""

    name: str
    role: str = ""  # "train", "eval", or "" if not known
    number: int | None = None  # of its `loader` fact
    kind: str = ""  # "map", "iterable", "batches", "model"
    file: str | None = None
    line: int | None = None
    dataset: str = ""  # class
    length: int | None = None
    batch_size: int | None = None
    workers: int = 0
    sampler: str = ""
    shuffled: bool | None = None
    stages: tuple[str, ...] = ()  # names, in the order in which a sample passes them
    samples: tuple[ValueView, ...] = ()  # as the dataset returns them
    rows: tuple[ValueView, ...] = ()  # the same samples as the model gets them, if that was recorded
    rows_of: str = ""  # "model" or "batch": where the rows come from
    batch: tuple[FieldView, ...] = ()  # as the loader delivers it
    inputs: tuple[FieldView, ...] = ()  # as the model got it
    remarks: tuple[str, ...] = ()  # differences that matter
    way: SamplePath | None = None
    notes: tuple[str, ...] = ()  # what could not be read, and why

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = finite(plain(self))
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LoaderView:
        return read(cls, {"name": "", **data})

    def to_fact(self) -> dict[str, Any]:
        """Without the views of samples: `data.loader` (docs/signals.md)."""
        return replace(self, samples=(), rows=(), way=None).to_json()


@dataclass(frozen=True)
class ErrorFrame:
    """A line of the user's code that an exception passed through."""

    file: str
    line: int
    function: str = ""
    code: str = ""


@dataclass(frozen=True)
class Failure:
    """A sample or batch that could not be created, traced back to its cause."""

    kind: str  # "sample", "collate", "killed", "unpicklable", "not reproduced"
    error: str  # "KeyError: 'label'"
    loader: str = ""
    worker: int | None = None
    indices: tuple[int, ...] = ()  # of the batch
    index: int | None = None  # of the sample that fails
    stage: str = ""
    frames: tuple[ErrorFrame, ...] = ()  # in the main process, innermost last
    view: ValueView | None = keyed("look")  # of the sample, or of the input of the failing stage
    details: tuple[str, ...] = ()  # "sample 4: 3×30×32", …
    hint: str = ""
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = finite(plain(self))
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Failure:
        return read(cls, {"kind": "", "error": "", **data})
