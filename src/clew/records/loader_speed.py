"""How fast data comes, what it weighs and what is wasted: plain data from `pipeline` to `show` and `checks`.

No torch here: what was measured on a cluster is read on a laptop. All times are seconds, all sizes
bytes, all rates samples a second, unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.records.codec import plain, read

LOADER, MODEL, EVEN = "loader", "model", "even"  # what a training step waits for: `Speeds.limited_by`

READ, DECODE, TRANSFORM, DATASET = "read", "decode", "transform", "dataset"  # kinds of stages
COLLATE, PICKLE, PIN = "collate", "pickle", "pin"


@dataclass(frozen=True)
class Rate:
    """Samples a second, over several stretches of time."""

    median: float
    low: float = 0.0  # of the stretches
    high: float = 0.0
    samples: int = 0
    seconds: float = 0.0

    @property
    def spread(self) -> float:
        """Distance of the extremes, over the median."""
        return (self.high - self.low) / self.median if self.median > 0 else 0.0


@dataclass(frozen=True)
class Speeds:
    """The loader alone, the model alone, and both in turn, as training has them."""

    loader: Rate | None = None
    model: Rate | None = None
    both: Rate | None = None
    step: str = ""  # what stands for the model: "training step" or "forward"
    batch: float = 0.0  # samples in a batch
    wait: float | None = None  # share of the time of both that is spent waiting for the loader
    startup: float = 0.0  # until the first batch is there: workers begin with every epoch
    workers: int = 0
    prefetch: int = 0  # batches that each worker prepares; 0 without workers
    cores: int = 1
    persistent: bool = False
    failed: int = 0  # batches that raised
    notes: tuple[str, ...] = ()  # what could not be measured, and why

    @property
    def limited_by(self) -> str:
        """LOADER, MODEL, or EVEN where they are alike; empty where it can't be said."""
        if self.loader is None or self.model is None:
            return ""
        near = 1.1
        if self.loader.median * near < self.model.median:
            return LOADER
        return MODEL if self.loader.median > near * self.model.median else EVEN


@dataclass(frozen=True)
class Stage:
    """One thing that is done to every sample, without the stages inside it."""

    name: str  # "RandomCrop", "PIL.Image.open", "collate_fn"
    kind: str = DATASET
    median: float = 0.0  # per sample
    p95: float = 0.0
    share: float = 0.0  # of the time of all stages
    calls: float = 1.0  # per sample
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class HotLine:
    """A line of the user's own on which reading a sample spends its time."""

    file: str
    line: int
    code: str = ""
    share: float = 0.0  # of the samples' time


@dataclass(frozen=True)
class Stages:
    """In the order in which a sample goes through them; in one process, without workers."""

    stages: tuple[Stage, ...] = ()
    samples: int = 0  # looked at
    median: float = 0.0  # per sample, all stages
    p95: float = 0.0
    lines: tuple[HotLine, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FieldSize:
    """What one field of a sample weighs."""

    field: str  # key or position
    shape: tuple[int, ...] = ()  # -1 where samples differ
    dtype: str = ""
    bytes: float = 0.0  # per sample
    fits: str = ""  # the smallest dtype that holds all values seen; empty: the one it has, or not known
    fits_bytes: float = 0.0
    how: str = ""  # "whole numbers 0 to 9", "multiples of 1/255"


@dataclass(frozen=True)
class Moving:
    """From a worker to the parent, per batch, as the loader does it."""

    shared: float = 0.0  # bytes of tensors, by shared memory
    piped: float = 0.0  # bytes of everything else, pickled through a pipe
    seconds: float | None = None  # None: it was not measured
    samples: float = 1.0  # in the batch


@dataclass(frozen=True)
class Sizes:
    """A sample's weight, by field."""

    fields: tuple[FieldSize, ...] = ()
    samples: int = 0  # looked at
    bytes: float = 0.0  # of a sample, median
    largest: float = 0.0
    moving: Moving | None = None
    workers: int = 0  # that the loader has now
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SweepRow:
    """One setting of the loader."""

    workers: int
    prefetch: int = 0  # 0 without workers
    rate: Rate | None = None
    memory: float | None = None  # bytes of all workers together
    error: str = ""  # why there is no rate


@dataclass(frozen=True)
class Sweep:
    """Settings tried, and the simplest that is as fast as the fastest."""

    rows: tuple[SweepRow, ...] = ()
    workers: int = 0  # as the program has it
    prefetch: int = 0
    best_workers: int | None = None  # None: nothing could be compared
    best_prefetch: int = 0
    with_step: bool = False  # rates are those of loader and training step in turn
    gain: float | None = None  # share of the step's time that the best setting saves; None: not known
    cores: int = 1
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> SweepRow | None:
        return self.row(self.best_workers, self.best_prefetch)

    @property
    def now(self) -> SweepRow | None:
        return self.row(self.workers, self.prefetch)

    def row(self, workers: int | None, prefetch: int) -> SweepRow | None:
        return next((r for r in self.rows if (r.workers, r.prefetch) == (workers, prefetch)), None)


@dataclass(frozen=True)
class Padding:
    """How much of a field of sequences is filler, over the batches looked at."""

    field: str
    axis: int = 1
    how: str = ""  # how the lengths are known: "attention_mask", "lengths", "samples", "pad value 0"
    batches: int = 0
    samples: int = 0
    share: float = 0.0  # of all elements
    low: float = 0.0  # of the batch with least
    high: float = 0.0
    longest: float = 0.0  # share if every batch were padded to its own longest only
    bucketed: float = 0.0  # share if samples of like length came together
    shortest_length: int = 0
    median_length: float = 0.0
    p95_length: float = 0.0
    longest_length: int = 0
    padded_to: float = 0.0  # median over batches

    def saves(self, share: float) -> float:
        """Share of the elements of all batches that go if the padding falls to this share."""
        return 1 - (1 - self.share) / (1 - share) if share < 1 else 0.0


@dataclass(frozen=True)
class Paddings:
    """Of all fields that hold sequences."""

    fields: tuple[Padding, ...] = ()
    batches: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measured:
    """All that was measured of one loader; what was not is None."""

    loader: str = ""  # as the program calls it
    file: str | None = None  # where it was made
    line: int | None = None
    speeds: Speeds | None = None
    stages: Stages | None = None
    sizes: Sizes | None = None
    sweep: Sweep | None = None
    paddings: Paddings | None = None
    seconds: float = 0.0
    notes: Mapping[str, str] = field(default_factory=dict)  # part -> why it is missing

    def to_json(self) -> dict[str, Any]:
        return {"version": 1, **plain(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measured:
        return read(cls, data)

    @classmethod
    def from_facts(cls, facts: Mapping[str, Mapping[str, Any]]) -> Measured:
        """Of the facts of one loader; what does not fit is left out."""
        where: Mapping[str, Any] = next(iter(facts.values()), {})
        parts = {FACTS[kind]: data.get("measured") for kind, data in facts.items() if kind in FACTS}
        return read(cls, {**{k: where.get(k) for k in ("loader", "file", "line")}, **parts})


FACTS = {
    "data.speed": "speeds",
    "data.stages": "stages",
    "data.sizes": "sizes",
    "data.sweep": "sweep",
    "data.padding": "paddings",
}
