"""A line plot: its points and axes; drawn in the terminal with braille dots or stars, and as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from clew.records.codec import json_float
from clew.records.facts.experiment_facts import RecordedPlot
from clew.records.finding import Evidence
from clew.records.json_values import numbers
from clew.render.number_text import number
from clew.render.safe_text import neutral
from clew.render.sparkline import is_logarithmic

TAKES_OFF = 4.0  # the top is cut above this multiple of the distance between bottom and median
LOG_X_FROM = 100.0  # largest over smallest from which sizes and rates need a log axis


@dataclass(frozen=True)
class PlotLine:
    """What an experiment measured along an axis; points may be non-finite."""

    title: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    x_label: str = "step"
    y_label: str = "loss"
    log_x: bool = False

    @classmethod
    def read(cls, plot: RecordedPlot) -> PlotLine:
        """From a recorded plot; unpaired points are left out."""
        both = min(len(plot.x), len(plot.y))
        x, y = plot.x[:both], plot.y[:both]
        log = plot.log_x and min(x, default=0.0) > 0
        return cls(plot.title, x, y, plot.x_label or "step", plot.y_label, log)

    @classmethod
    def of(cls, evidence: Evidence) -> PlotLine:
        """The values of an observation, along their axis; by step if there is none."""
        count = len(evidence.values)
        x = (evidence.x or tuple(map(float, evidence.steps or range(count))))[:count]
        if not evidence.x:
            return cls(evidence.text, x, evidence.values[: len(x)], "step", evidence.signal or "")
        spread = bool(x) and min(x) > 0 and max(x) / min(x) >= LOG_X_FROM
        signal = evidence.signal or ""
        return cls(evidence.text, x, evidence.values[: len(x)], evidence.x_label or "x", signal, spread)

    @classmethod
    def wave(cls, title: str, data: Any) -> PlotLine:
        """A recorded waveform, by sample."""
        values = numbers(data)
        return cls(title, tuple(map(float, range(len(values)))), values, "sample", "")

    def to_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "x": [json_float(v) for v in self.x],
            "y": [json_float(v) for v in self.y],
            "x_label": self.x_label,
            "y_label": self.y_label,
            "log_x": self.log_x,
        }


@dataclass(frozen=True)
class PlotAxis:
    """Maps values to a share between 0 and 1."""

    low: float
    high: float
    log: bool

    @classmethod
    def over(cls, values: Sequence[float], *, log: bool | None = None) -> PlotAxis:
        """`log` None: logarithmic if a linear axis would show only the largest."""
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
        """The value at that position."""
        if self.log:
            return math.exp(math.log(self.low) * (1 - share) + math.log(self.high) * share)
        return self.low * (1 - share) + self.high * share

    def cut_above(self, values: Sequence[float]) -> PlotAxis:
        """Without the points of a line that shoots up at its end and would flatten the rest."""
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
    """Horizontal and vertical; a range test ends where the loss shoots up, and that end is cut."""
    across = PlotAxis.over(line.x, log=line.log_x)
    if not line.log_x:
        return across, PlotAxis.over(line.y)
    up = PlotAxis.over(line.y, log=False).cut_above(line.y)
    return across, replace(up, log=is_logarithmic((up.low, up.high)))


# ---- in the terminal -------------------------------------------------------------------------

WIDTH, HEIGHT = 60, 8  # characters
GUTTER = 9  # width of the numbers along the vertical axis
# The dots of a braille character, by row and column.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE = 0x2800


def plot_rows(line: PlotLine, width: int = WIDTH, height: int = HEIGHT, *, plain: bool = False) -> list[str]:
    """The rows of the plot, including axes and labels; empty if there is nothing to draw."""
    points = [(x, y) for x, y in zip(line.x, line.y, strict=True) if math.isfinite(x)]
    if not any(math.isfinite(y) for _, y in points):
        return []
    width = max(width, 10)
    across, up = axes(line)
    field = _Field(width, height, plain)
    field.draw(points, across, up)
    flat = not up.high > up.low
    labels = {height // 2: _short(up.low)} if flat else {0: _short(up.high), height - 1: _short(up.low)}
    tick, wall, corner, floor = ("+", "|", "+", "-") if plain else ("┤", "│", "└", "─")
    rows = [
        f"{labels.get(n, ''):>{GUTTER - 2}} {tick if n in labels else wall}{row}"
        for n, row in enumerate(field.rows())
    ]
    rows.append(" " * (GUTTER - 1) + corner + floor * width)
    rows.append(" " * GUTTER + _tick_row(across, width))
    rows.append(" " * GUTTER + _axis_caption(line, up, width))
    return [row.rstrip() for row in rows]


def _short(value: float) -> str:
    """A number that fits into the gutter."""
    text = number(value)
    return text if len(text) <= GUTTER - 2 else f"{value:.0e}"


class _Field:
    """The dots of a plot, from its upper left."""

    def __init__(self, width: int, height: int, plain: bool) -> None:
        self._width, self._height, self._plain = width, height, plain
        self._fine = (1, 1) if plain else (2, 4)  # dots of a character: across, down
        self._set: set[tuple[int, int]] = set()
        self._bad: set[int] = set()  # columns in which a value is not finite

    def draw(self, points: list[tuple[float, float]], across: PlotAxis, up: PlotAxis) -> None:
        last: tuple[int, int] | None = None
        wide, high = self._width * self._fine[0] - 1, self._height * self._fine[1] - 1
        for x, y in points:
            column = round(across.share(x) * wide)
            if not math.isfinite(y):
                self._bad.add(column // self._fine[0])
                last = None
                continue
            here = (column, round((1 - up.share(y)) * high))
            self._set.update(_between(last or here, here))
            last = here

    def rows(self) -> Iterator[str]:
        for row in range(self._height):
            yield "".join(self._character(column, row) for column in range(self._width))

    def _character(self, column: int, row: int) -> str:
        if row == 0 and column in self._bad:
            return "x" if self._plain else "×"
        if self._plain:
            return "*" if (column, row) in self._set else " "
        bits = sum(
            bit
            for down, pair in enumerate(_DOTS)
            for right, bit in enumerate(pair)
            if (2 * column + right, 4 * row + down) in self._set
        )
        return chr(_BRAILLE + bits) if bits else " "


def _between(a: tuple[int, int], b: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The dots of a straight line."""
    count = max(abs(b[0] - a[0]), abs(b[1] - a[1]), 1)
    for n in range(count + 1):
        yield a[0] + round((b[0] - a[0]) * n / count), a[1] + round((b[1] - a[1]) * n / count)


def _tick_row(axis: PlotAxis, width: int) -> str:
    """Numbers under the axis, each near its position; one that would touch its neighbour is left out."""
    row = [" "] * width
    free = 0
    for value in axis.ticks():
        text = number(value)
        start = min(max(round(axis.share(value) * (width - 1)) - len(text) // 2, 0), width - len(text))
        if start >= free and start >= 0:
            row[start : start + len(text)] = text
            free = start + len(text) + 2
    return "".join(row)


def _axis_caption(line: PlotLine, up: PlotAxis, width: int) -> str:
    across = f"{line.x_label} (log scale)" if line.log_x else line.x_label
    above = f"{line.y_label} (log scale)" if up.log and line.y_label else line.y_label
    return neutral(f"{above} against {across}" if above else across, width)


# ---- as SVG ----------------------------------------------------------------------------------

SVG_WIDTH, SVG_HEIGHT = 520, 170
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 10, 34  # room for the numbers


def plot_svg(line: PlotLine) -> str:
    """Empty if there is nothing to draw; a gap is where a value is not finite."""
    points = [(x, y) for x, y in zip(line.x, line.y, strict=True) if math.isfinite(x)]
    if not any(math.isfinite(y) for _, y in points):
        return ""
    across, up = axes(line)
    strokes = "".join(_stroke(part, across, up) for part in _finite_parts(points))
    bad = "".join(
        f'<text class="bad" x="{_x(across, x):.1f}" y="{TOP + 10}" text-anchor="middle">×</text>'
        for x, y in points
        if not math.isfinite(y)
    )
    title = escape(neutral(line.title, 200))
    return (
        f'<svg class="clew-plot" viewBox="0 0 {SVG_WIDTH} {SVG_HEIGHT}" role="img" aria-label="{title}">'
        f"<title>{title}</title>{_svg_frame(line, across, up)}{strokes}{bad}</svg>"
    )


def _finite_parts(points: list[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    parts: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if math.isfinite(point[1]):
            parts[-1].append(point)
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]


def _stroke(part: list[tuple[float, float]], across: PlotAxis, up: PlotAxis) -> str:
    places = [(_x(across, x), _y(up, y)) for x, y in part]
    if len(places) == 1:
        return f'<circle class="line" cx="{places[0][0]:.1f}" cy="{places[0][1]:.1f}" r="2"/>'
    return f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>'


def _x(axis: PlotAxis, value: float) -> float:
    return LEFT + axis.share(value) * (SVG_WIDTH - LEFT - RIGHT)


def _y(axis: PlotAxis, value: float) -> float:
    return SVG_HEIGHT - BOTTOM - axis.share(value) * (SVG_HEIGHT - TOP - BOTTOM)


def _svg_frame(line: PlotLine, across: PlotAxis, up: PlotAxis) -> str:
    floor = SVG_HEIGHT - BOTTOM
    axis = f'<path class="axis" d="M{LEFT},{TOP}V{floor}H{SVG_WIDTH - RIGHT}"/>'
    below = "".join(
        f'<text x="{_x(across, v):.1f}" y="{floor + 13}" text-anchor="middle">{escape(number(v))}</text>'
        for v in across.ticks(6)
    )
    ends = {up.low: _y(up, up.low), up.high: _y(up, up.high)}
    beside = "".join(
        f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{escape(number(v))}</text>'
        for v, y in ends.items()
    )
    log = " (log scale)"
    along = escape(neutral(line.x_label, 60) + (log if across.log else ""))
    height = escape(neutral(line.y_label, 60) + (log if up.log and line.y_label else ""))
    names = f'<text x="{(LEFT + SVG_WIDTH) / 2}" y="{SVG_HEIGHT - 6}" text-anchor="middle">{along}</text>'
    place = f"translate(12,{(TOP + floor) / 2}) rotate(-90)"
    turned = f'<text transform="{place}" text-anchor="middle">{height}</text>'
    return axis + below + beside + names + turned
