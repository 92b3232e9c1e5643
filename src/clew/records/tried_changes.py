"""Changes tried on a snapshot to make a step faster, and the effect of other batch sizes.

Plain data for rendering and checks: the facts `attempt` and `batch_sizes` of a run. No torch here. All times
are seconds per step, all sizes bytes, unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.records.codec import plain, read

COMPILE = "torch.compile"
CHANNELS_LAST = "channels_last"
FOREACH, FUSED = "foreach", "fused"
BFLOAT16 = "bfloat16"
THREADS = "threads"
SET_TO_NONE = "set_to_none"
NO_GRADIENTS = "inference_mode"
NAMES = (SET_TO_NONE, NO_GRADIENTS, FOREACH, FUSED, CHANNELS_LAST, BFLOAT16, THREADS, COMPILE)


@dataclass(frozen=True)
class Break:
    """A place where torch.compile had to end a graph and continue in Python."""

    reason: str
    file: str | None = None
    line: int | None = None
    code: str = ""


@dataclass(frozen=True)
class TriedChange:
    """One change, measured in turn with the original step; `reason` says why there is no measurement."""

    name: str  # one of NAMES
    setting: str = ""  # what was changed, as code: "AdamW(…, foreach=True)"
    before: float = 0.0  # seconds per step, median over the rounds
    after: float = 0.0
    spread_before: float = 0.0  # half of the interquartile range over the rounds
    spread_after: float = 0.0
    gain: float = 0.0  # share of the step's time that the change saves; negative if it costs time
    noise: float = 0.0  # uncertainty of `gain`
    clear: bool = False  # whether the gain (or loss) exceeds the noise
    rounds: int = 0
    once: float = 0.0  # one-time seconds before the first fast step: compiling
    difference: Mapping[str, float] = field(default_factory=dict)  # "output", "loss", "gradient": relative
    same: bool | None = None  # whether the difference is at most rounding; None if not compared
    breaks: tuple[Break, ...] = ()
    reason: str = ""  # why it could not be tried
    what: str = "step"  # or "evaluation": what was timed
    rest: Mapping[str, Any] = field(default_factory=dict)  # "threads": 1, "cores": 2 …

    @property
    def tried(self) -> bool:
        return not self.reason

    @property
    def helps(self) -> bool:
        """Faster beyond noise, with the same numbers as far as they were compared."""
        return self.tried and self.clear and self.gain > 0 and self.same is not False

    @property
    def faster(self) -> float:
        """The speed-up factor."""
        return 1.0 / max(1.0 - self.gain, 0.01)

    @property
    def pays_after(self) -> float | None:
        """Steps after which the one-time cost has paid off; None if never."""
        saved = self.before - self.after
        return None if saved <= 0 or not self.once else self.once / saved

    def to_json(self) -> dict[str, Any]:
        """As the fact `attempt`."""
        data: dict[str, Any] = plain(self)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TriedChange:
        return read(cls, {"name": "", **data})


@dataclass(frozen=True)
class SizeRow:
    """Training with batches of one size; `reason` says why it could not be measured."""

    size: int
    seconds: float = 0.0  # per step, median over the rounds
    throughput: float = 0.0  # samples per second
    spread: float = 0.0  # of the throughput: half of its interquartile range
    rounds: int = 0
    peak: int = 0  # bytes of tensors in a step, with parameters, gradients and optimizer state
    process: int = 0  # bytes of the process while the activations exist
    reason: str = ""

    @property
    def measured(self) -> bool:
        return not self.reason and self.throughput > 0


@dataclass(frozen=True)
class BatchSizes:
    """Throughput and memory by batch size."""

    rows: tuple[SizeRow, ...] = ()  # by size
    knee: int | None = None  # the smallest size beyond which larger ones gain almost nothing
    why: str = ""  # reason for the knee, or for there being none
    current: int = 0  # the program's own size
    reason: str = ""  # why nothing could be measured
    hint: str = ""  # and the line of code that would help

    def row(self, size: int) -> SizeRow | None:
        return next((row for row in self.rows if row.size == size), None)

    @property
    def gain(self) -> float | None:
        """Gain of the knee over the program's own size, in samples per second: 0.5 means 50% more."""
        mine, best = self.row(self.current), self.row(self.knee or 0)
        if mine is None or best is None or not mine.measured or not best.measured:
            return None
        return best.throughput / mine.throughput - 1.0

    def to_json(self) -> dict[str, Any]:
        """As the fact `batch_sizes`."""
        data: dict[str, Any] = plain(self)
        return {**data, "gain": self.gain}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BatchSizes:
        return read(cls, data)
