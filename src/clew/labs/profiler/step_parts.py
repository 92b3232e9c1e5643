"""A step by its parts, over all timed steps: median, p95, and the share of all time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from clew.records.step_costs import PARTS, PartCost

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Timed:
    """The seconds of each step, whole and by part, as the run's clock has them."""

    steps: npt.NDArray[np.int64]
    total: Array
    parts: Mapping[str, Array]
    batch: Array  # samples

    def without(self, left_out: set[int]) -> Timed:
        """The same without some steps."""
        keep = ~np.isin(self.steps, sorted(left_out))
        parts = {name: values[keep] for name, values in self.parts.items()}
        return Timed(self.steps[keep], self.total[keep], parts, self.batch[keep])

    def moving(self, name: str, share: float, origin: str = "rest") -> Timed:
        """A share of every step that is known by its name now, and was in another part before."""
        if share <= 0:
            return self
        before = self.parts.get(origin, np.zeros_like(self.total))
        moved = np.minimum(self.total * share, before)
        parts = {**self.parts, origin: before - moved}
        parts[name] = self.parts.get(name, np.zeros_like(self.total)) + moved
        return Timed(self.steps, self.total, parts, self.batch)

    @property
    def samples_per_second(self) -> float | None:
        seconds, samples = float(self.total.sum()), float(self.batch.sum())
        return samples / seconds if seconds > 0 and samples > 0 else None

    def quantile(self, share: float) -> float:
        """Of the whole steps; seconds."""
        return float(np.quantile(self.total, share)) if len(self.total) else 0.0


def parts_of(timed: Timed) -> tuple[PartCost, ...]:
    """All of `costs.PARTS`, in their order; together they are the step."""
    whole = float(timed.total.sum())
    return tuple(_part(name, timed, whole) for name in PARTS) if whole > 0 else ()


def _part(name: str, timed: Timed, whole: float) -> PartCost:
    values = timed.parts.get(name)
    if values is None or not len(values):
        return PartCost(name, 0.0, 0.0, 0.0, len(timed.total))
    median, p95 = np.quantile(values, [0.5, 0.95])
    return PartCost(name, float(median), float(p95), float(values.sum()) / whole, len(values))
