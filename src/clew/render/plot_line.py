"""A line to plot: its points, their meaning, and the ends of the axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.records.codec import json_float
from clew.records.finding import Evidence
from clew.render.sparkline import is_logarithmic

TAKES_OFF = 4.0  # heights between bottom and middle, above which the top is cut
LOG_X_FROM = 100.0  # largest over smallest from which sizes and rates are told apart on a log axis only


@dataclass(frozen=True)
class PlotLine:
    """What an experiment measured along something; points may be non-finite."""

    title: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    x_label: str = "step"
    y_label: str = "loss"
    log_x: bool = False

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> PlotLine:
        """From a recorded plot; what does not pair up is left out."""
        x, y = numbers(data.get("x")), numbers(data.get("y"))
        both = min(len(x), len(y))
        x_label, y_label = str(data.get("x_label") or "step"), str(data.get("y_label") or "")
        log = bool(data.get("log_x")) and min(x[:both], default=0.0) > 0
        return cls(str(data.get("title") or ""), x[:both], y[:both], x_label, y_label, log)

    @classmethod
    def of(cls, evidence: Evidence) -> PlotLine:
        """The values of an observation, along what they were taken; by step where nothing is said."""
        count = len(evidence.values)
        x = (evidence.x or tuple(map(float, evidence.steps or range(count))))[:count]
        if not evidence.x:
            return cls(evidence.text, x, evidence.values[: len(x)], "step", evidence.signal or "")
        spread = bool(x) and min(x) > 0 and max(x) / min(x) >= LOG_X_FROM
        signal = evidence.signal or ""
        return cls(evidence.text, x, evidence.values[: len(x)], evidence.x_label or "x", signal, spread)

    def to_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "x": [json_float(v) for v in self.x],
            "y": [json_float(v) for v in self.y],
            "x_label": self.x_label,
            "y_label": self.y_label,
            "log_x": self.log_x,
        }


def numbers(given: Any) -> tuple[float, ...]:
    """Numbers as JSON carries them: NaN and infinity are words."""
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        return ()
    return tuple(_number(value) for value in given)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


@dataclass(frozen=True)
class PlotAxis:
    """From values to a share between 0 and 1."""

    low: float
    high: float
    log: bool

    @classmethod
    def over(cls, values: Sequence[float], *, log: bool | None = None) -> PlotAxis:
        """`log` None: where a linear one would show only the largest."""
        finite = [v for v in values if math.isfinite(v)]
        if not finite:
            return cls(0.0, 1.0, False)
        log = is_logarithmic(finite) if log is None else log and min(finite) > 0
        return cls(min(finite), max(finite), log)

    def share(self, value: float) -> float:
        scale: Callable[[float], float] = math.log if self.log else float
        low, high = scale(self.low) / 2, scale(self.high) / 2  # halved: the span of two may overflow
        if not high > low:
            return 0.5
        return min(max((scale(value) / 2 - low) / (high - low), 0.0), 1.0)

    def at(self, share: float) -> float:
        """The value that stands there."""
        if self.log:
            return math.exp(math.log(self.low) * (1 - share) + math.log(self.high) * share)
        return self.low * (1 - share) + self.high * share

    def cut_above(self, values: Sequence[float]) -> PlotAxis:
        """Without the heights of a line that takes off at its end and would flatten all before it."""
        finite = sorted(v for v in values if math.isfinite(v))
        middle = finite[len(finite) // 2] if finite else self.high
        if middle <= self.low or self.high <= middle + TAKES_OFF * (middle - self.low):
            return self
        return replace(self, high=middle + TAKES_OFF / 2 * (middle - self.low))

    def ticks(self, most: int = 4) -> list[float]:
        """Round numbers; powers of ten on a log axis."""
        if not self.log:
            return self._round_numbers(most)
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        powers = list(range(first, last + 1))
        stride = max(1, -(-len(powers) // most))
        return [10.0**p for p in powers[::stride]] if len(powers) >= 2 else [self.low, self.high]

    def _round_numbers(self, most: int) -> list[float]:
        span = self.high / most - self.low / most
        if not span > 0:
            return [self.low]
        power = 10.0 ** math.floor(math.log10(span))
        step = next((m * power for m in (1, 2, 5) if m * power >= span), 10 * power)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [n * step for n in range(first, last + 1)]


def axes(line: PlotLine) -> tuple[PlotAxis, PlotAxis]:
    """Along and up; a rate test ends where the loss takes off, and that end is cut."""
    across = PlotAxis.over(line.x, log=line.log_x)
    if not line.log_x:
        return across, PlotAxis.over(line.y)
    up = PlotAxis.over(line.y, log=False).cut_above(line.y)
    return across, replace(up, log=is_logarithmic((up.low, up.high)))
