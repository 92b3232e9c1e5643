"""Loader speed: how fast data comes, how large it is, and what is wasted, for rendering and checks.

No torch here: what was measured on a cluster is read on a laptop. All times are seconds, all sizes bytes, all
rates samples per second, unless a name says otherwise.
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
    """Samples per second, over several periods of time."""

    median: float
    low: float = 0.0  # lowest of the periods
    high: float = 0.0
    samples: int = 0
    seconds: float = 0.0

    @property
    def spread(self) -> float:
        """Difference of the extremes, divided by the median."""
        return (self.high - self.low) / self.median if self.median > 0 else 0.0


@dataclass(frozen=True)
class Speeds:
    """Rates of the loader alone, the model alone, and both in turn, as in training."""

    loader: Rate | None = None
    model: Rate | None = None
    both: Rate | None = None
    step: str = ""  # how the model was run: "training step" or "forward"
    batch: float = 0.0  # samples per batch
    wait: float | None = None  # share of the time of both that is spent waiting for the loader
    startup: float = 0.0  # until the first batch: workers start with every epoch
    workers: int = 0
    prefetch: int = 0  # batches that each worker prepares; 0 without workers
    cores: int = 1
    persistent: bool = False
    failed: int = 0  # batches that raised
    notes: tuple[str, ...] = ()  # what could not be measured, and why

    @property
    def limited_by(self) -> str:
        """LOADER, MODEL, or EVEN if they are alike; empty if it is not known."""
        if self.loader is None or self.model is None:
            return ""
        near = 1.1
        if self.loader.median * near < self.model.median:
            return LOADER
        return MODEL if self.loader.median > near * self.model.median else EVEN


@dataclass(frozen=True)
class StageTime:
    """One operation on every sample, without the stages inside it."""

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
    """A line of the user's code on which reading a sample spends time."""

    file: str
    line: int
    code: str = ""
    share: float = 0.0  # of the samples' time


@dataclass(frozen=True)
class Stages:
    """The stages in the order in which a sample goes through them; in one process, without workers."""

    stages: tuple[StageTime, ...] = ()
    samples: int = 0  # samples measured
    median: float = 0.0  # per sample, all stages
    p95: float = 0.0
    lines: tuple[HotLine, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FieldSize:
    """The size of one field of a sample."""

    field: str  # key or position
    shape: tuple[int, ...] = ()  # -1 if samples differ
    dtype: str = ""
    bytes: float = 0.0  # per sample
    fits: str = ""  # the smallest dtype that can represent all values; empty: its own dtype, or not known
    fits_bytes: float = 0.0
    how: str = ""  # "whole numbers 0 to 9", "multiples of 1/255"


@dataclass(frozen=True)
class Moving:
    """The transfer of a batch from a worker to the parent, as the loader does it."""

    shared: float = 0.0  # bytes of tensors, in shared memory
    piped: float = 0.0  # bytes of everything else, pickled through a pipe
    seconds: float | None = None  # None if not measured
    samples: float = 1.0  # in the batch


@dataclass(frozen=True)
class Sizes:
    """The size of a sample, by field."""

    fields: tuple[FieldSize, ...] = ()
    samples: int = 0  # samples measured
    bytes: float = 0.0  # of a sample, median
    largest: float = 0.0
    moving: Moving | None = None
    workers: int = 0  # current setting of the loader
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
    """The settings tried, and the simplest that is as fast as the fastest."""

    rows: tuple[SweepRow, ...] = ()
    workers: int = 0  # the program's own setting
    prefetch: int = 0
    best_workers: int | None = None  # None if nothing could be compared
    best_prefetch: int = 0
    with_step: bool = False  # rates are those of loader and training step in turn
    gain: float | None = None  # share of the step's time that the best setting saves; None if not known
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
    """How much of a field of sequences is padding, over the measured batches."""

    field: str
    axis: int = 1
    how: str = ""  # how the lengths are known: "attention_mask", "lengths", "samples", "pad value 0"
    batches: int = 0
    samples: int = 0
    share: float = 0.0  # of all elements
    low: float = 0.0  # in the batch with the least
    high: float = 0.0
    longest: float = 0.0  # share if every batch were padded only to its own longest
    bucketed: float = 0.0  # share if samples of similar length came together
    shortest_length: int = 0
    median_length: float = 0.0
    p95_length: float = 0.0
    longest_length: int = 0
    padded_to: float = 0.0  # median over batches

    def saves(self, share: float) -> float:
        """Share of the elements of all batches that is saved if the padding falls to this share."""
        return 1 - (1 - self.share) / (1 - share) if share < 1 else 0.0


@dataclass(frozen=True)
class Paddings:
    """The padding of all fields that contain sequences."""

    fields: tuple[Padding, ...] = ()
    batches: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class MeasuredLoader:
    """Everything measured of one loader; None for what was not measured."""

    loader: str = ""  # the program's name for it
    file: str | None = None  # where it was created
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
    def from_json(cls, data: Mapping[str, Any]) -> MeasuredLoader:
        return read(cls, data)
