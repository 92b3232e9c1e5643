"""A line plot in the terminal: braille dots where the stream supports them, stars where not."""

from __future__ import annotations

import math
from collections.abc import Iterator

from clew.render.number_text import number
from clew.render.plot_line import PlotAxis, PlotLine, axes
from clew.render.safe_text import neutral

WIDTH, HEIGHT = 60, 8  # characters
GUTTER = 9  # of the numbers along the upright axis
# The dots of a braille character, by row and column.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE = 0x2800


def plot_rows(line: PlotLine, width: int = WIDTH, height: int = HEIGHT, *, plain: bool = False) -> list[str]:
    """The rows of the drawing, axes and labels with it; empty if there is nothing to draw."""
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
    rows.append(" " * GUTTER + _caption(line, up, width))
    return [row.rstrip() for row in rows]


def _short(value: float) -> str:
    """What the gutter holds."""
    text = number(value)
    return text if len(text) <= GUTTER - 2 else f"{value:.0e}"


class _Field:
    """The dots of a drawing, from its upper left."""

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
    """The dots of a straight stroke."""
    count = max(abs(b[0] - a[0]), abs(b[1] - a[1]), 1)
    for n in range(count + 1):
        yield a[0] + round((b[0] - a[0]) * n / count), a[1] + round((b[1] - a[1]) * n / count)


def _tick_row(axis: PlotAxis, width: int) -> str:
    """Numbers under the axis, each near its place; one that would touch its neighbour is left out."""
    row = [" "] * width
    free = 0
    for value in axis.ticks():
        text = number(value)
        start = min(max(round(axis.share(value) * (width - 1)) - len(text) // 2, 0), width - len(text))
        if start >= free and start >= 0:
            row[start : start + len(text)] = text
            free = start + len(text) + 2
    return "".join(row)


def _caption(line: PlotLine, up: PlotAxis, width: int) -> str:
    across = f"{line.x_label} (log scale)" if line.log_x else line.x_label
    above = f"{line.y_label} (log scale)" if up.log and line.y_label else line.y_label
    return neutral(f"{above} against {across}" if above else across, width)
