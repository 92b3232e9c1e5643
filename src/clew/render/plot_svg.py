"""A line plot as inline SVG, in the colours of the page around it."""

from __future__ import annotations

import math
from html import escape

from clew.render.number_text import number
from clew.render.plot_line import PlotAxis, PlotLine, axes
from clew.render.safe_text import neutral

WIDTH, HEIGHT = 520, 170
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 10, 34  # room for the numbers


def svg(line: PlotLine) -> str:
    """Empty if there is nothing to draw; a gap is where a value is not finite."""
    points = [(x, y) for x, y in zip(line.x, line.y, strict=True) if math.isfinite(x)]
    if not any(math.isfinite(y) for _, y in points):
        return ""
    across, up = axes(line)
    strokes = "".join(_stroke(part, across, up) for part in _parts(points))
    bad = "".join(
        f'<text class="bad" x="{_x(across, x):.1f}" y="{TOP + 10}" text-anchor="middle">×</text>'
        for x, y in points
        if not math.isfinite(y)
    )
    title = escape(neutral(line.title, 200))
    return (
        f'<svg class="clew-plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
        f"<title>{title}</title>{_frame(line, across, up)}{strokes}{bad}</svg>"
    )


def _parts(points: list[tuple[float, float]]) -> list[list[tuple[float, float]]]:
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
    return LEFT + axis.share(value) * (WIDTH - LEFT - RIGHT)


def _y(axis: PlotAxis, value: float) -> float:
    return HEIGHT - BOTTOM - axis.share(value) * (HEIGHT - TOP - BOTTOM)


def _frame(line: PlotLine, across: PlotAxis, up: PlotAxis) -> str:
    floor = HEIGHT - BOTTOM
    axis = f'<path class="axis" d="M{LEFT},{TOP}V{floor}H{WIDTH - RIGHT}"/>'
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
    names = f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{along}</text>'
    place = f"translate(12,{(TOP + floor) / 2}) rotate(-90)"
    turned = f'<text transform="{place}" text-anchor="middle">{height}</text>'
    return axis + below + beside + names + turned
