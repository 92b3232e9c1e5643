"""Samples of the user's data in the terminal: images, text, and waveforms as lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from clew.records.finding import Exhibit
from clew.records.json_values import numbers
from clew.render.images import Image, fitted, grey, image_of
from clew.render.line_plot import GUTTER, WIDTH, PlotLine, plot_rows
from clew.render.number_text import number
from clew.render.safe_text import neutral, neutral_lines
from clew.render.screen import Screen

if TYPE_CHECKING:
    from rich.text import Text

MOST = 6  # samples, unless all are requested
ALONE, TOGETHER = 32, 20  # columns of an image: of one or two, and of more
GAP = 2
RAMP = " .:-=+*#%@"  # dark to bright, where there is no colour
MOST_LINES = 6  # of a text
MOST_NUMBERS = 24


def draw_exhibits(
    screen: Screen, exhibits: Sequence[Exhibit], *, full: bool, indent: int, column: int
) -> None:
    """All of them below the label `samples`."""
    shown = exhibits if full else exhibits[:MOST]
    pictures = [(e, image) for e in shown if e.kind == "image" and (image := image_of(e.data))]
    label = "samples"
    if pictures:
        for row in gallery(screen, pictures, screen.width - indent - column):
            screen.row(row, indent=indent, label=label, column=column)
            label = ""
    drawn = [exhibit for exhibit, _ in pictures]
    for exhibit in (e for e in shown if not any(e is d for d in drawn)):
        screen.block(neutral(exhibit.caption, 200), indent=indent, label=label, column=column)
        label = ""
        for line in _lines(screen, exhibit, screen.width - indent - column):
            screen.row(screen.text(line, "cyan"), indent=indent, column=column)
    if len(shown) < len(exhibits):
        more = screen.text(f"and {len(exhibits) - len(shown)} more", "dim")
        screen.block(more, indent=indent, column=column)


def gallery(
    screen: Screen, pictures: Sequence[tuple[Exhibit, Image]], room: int, wide: int | None = None
) -> list[Text]:
    """Images side by side, as many as fit, each with its caption below."""
    wide = min(wide or (TOGETHER if len(pictures) > 2 else ALONE), room)
    across = max((room + GAP) // (wide + GAP), 1)
    rows: list[Text] = []
    for first in range(0, len(pictures), across):
        cells = [_cell(screen, exhibit, image, wide) for exhibit, image in pictures[first : first + across]]
        for parts in zip_longest(*cells):
            row = [part if part is not None else screen.text() for part in parts]
            for part in row[:-1]:
                part.pad_right(wide + GAP - part.cell_len)
            rows.append(screen.text().join(row))
    return rows


def _cell(screen: Screen, exhibit: Exhibit, image: Image, wide: int) -> list[Text]:
    small = fitted(image, wide, wide)
    picture = _in_colour(small) if screen.coloured else [screen.text(row) for row in _in_grey(small)]
    caption = wrap(neutral(exhibit.caption, 120), wide)
    return [*picture, *(screen.text(line, "dim") for line in caption)]


def _pairs(image: Image) -> list[tuple[int, int]]:
    """Two rows of pixels are as high as one character."""
    return [(n, min(n + 1, len(image) - 1)) for n in range(0, len(image), 2)]


def _in_colour(image: Image) -> list[Text]:
    """An upper half block: its own colour above, the background colour below."""
    from rich.color import Color
    from rich.style import Style
    from rich.text import Text

    rows = []
    for upper, lower in _pairs(image):
        row = Text(end="")
        for above, below in zip(image[upper], image[lower], strict=True):
            row.append("▀", Style(color=Color.from_rgb(*above), bgcolor=Color.from_rgb(*below)))
        rows.append(row)
    return rows


def _in_grey(image: Image) -> list[str]:
    rows = []
    for upper, lower in _pairs(image):
        levels = [
            (grey(above) + grey(below)) // 2 for above, below in zip(image[upper], image[lower], strict=True)
        ]
        rows.append("".join(RAMP[level * len(RAMP) // 256] for level in levels))
    return rows


def _lines(screen: Screen, exhibit: Exhibit, room: int) -> list[str]:
    if exhibit.kind == "text":
        lines = [piece for line in neutral_lines(str(exhibit.data)) for piece in wrap(line, room - 2)]
        return [f"  {line}" for line in lines[:MOST_LINES]]
    if exhibit.kind == "wave":
        line = PlotLine.wave("", exhibit.data)
        return plot_rows(line, min(WIDTH, room - GUTTER), 4, plain=screen.glyphs.plain)
    return [f"  {row}" for row in rows_of_numbers(exhibit.data, room - 2)]


def rows_of_numbers(data: Any, room: int) -> list[str]:
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], (list, tuple)):
        return [_row_of_numbers(row, room) for row in data[:MOST_LINES]]
    return [_row_of_numbers(data, room)]


def _row_of_numbers(data: Any, room: int) -> str:
    """As many as fit."""
    values = [number(v) for v in numbers(data)]
    row = ""
    for count, value in enumerate(values[:MOST_NUMBERS]):
        longer = f"{row}  {value}" if row else value
        if len(longer) > room - 8:
            return f"{row}  … {len(values) - count} more"
        row = longer
    return row if len(values) <= MOST_NUMBERS else f"{row}  … {len(values) - MOST_NUMBERS} more"
