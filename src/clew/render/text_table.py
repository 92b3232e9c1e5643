"""A table on a screen: picks the columns that fit, and gives one of them the remaining width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clew.render.safe_text import ELLIPSIS, cut
from clew.render.screen import Screen

GAP = 2
NARROWEST = 14  # of the flexible column


@dataclass(frozen=True)
class Column:
    """`drop` orders the columns that are dropped when there is no room: the highest first, 0 never."""

    title: str
    left: bool = False
    flexible: bool = False
    drop: int = 0
    style: str = ""
    least: int = NARROWEST  # of a flexible one, before others are dropped


def draw_table(
    screen: Screen, columns: Sequence[Column], rows: Sequence[Sequence[str]], *, indent: int = 0
) -> None:
    """Columns without any entry are left out, as are those that don't fit."""
    cells = [[_sayable(screen, cell) for cell in row] for row in rows]
    kept = [n for n, c in enumerate(columns) if c.flexible or any(row[n] for row in cells)]
    natural = {n: max(_wide(row[n]) for row in [*cells, [c.title for c in columns]]) for n in kept}
    widths = _fitted(columns, natural, screen.width - indent)
    titles = [column.title for column in columns]
    _draw_row(screen, columns, widths, titles, indent, heading=True)
    for row in cells:
        _draw_row(screen, columns, widths, row, indent)


def _fitted(columns: Sequence[Column], natural: dict[int, int], room: int) -> dict[int, int]:
    """Widths by column number; columns that don't fit are dropped, then the flexible one is cut."""
    kept = dict(natural)
    flexible = next(n for n in kept if columns[n].flexible)
    least = min(natural[flexible], columns[flexible].least)
    while _needed(kept) - kept[flexible] + least > room and any(columns[n].drop for n in kept):
        del kept[max(kept, key=lambda n: columns[n].drop)]
    left = room - (_needed(kept) - kept[flexible])
    kept[flexible] = max(min(kept[flexible], left), 1)
    return kept


def _needed(widths: dict[int, int]) -> int:
    return sum(widths.values()) + GAP * (len(widths) - 1)


def _draw_row(
    screen: Screen,
    columns: Sequence[Column],
    widths: dict[int, int],
    cells: Sequence[str],
    indent: int,
    *,
    heading: bool = False,
) -> None:
    parts = [
        screen.text(_set(screen, cells[n], width, columns[n].left), "dim" if heading else columns[n].style)
        for n, width in widths.items()
    ]
    line = screen.join(*parts, gap=" " * GAP)
    line.truncate(screen.width - indent)  # on a screen too narrow for the required columns
    screen.row(line, indent=indent)


def _set(screen: Screen, cell: str, width: int, left: bool) -> str:
    """Exactly this many terminal columns."""
    space = " " * (width - _wide(cell))
    if _wide(cell) > width:
        return fitted(screen, cell, width)
    return cell + space if left else space + cell


def fitted(screen: Screen, text: str, width: int) -> str:
    """Text in exactly this many columns: cut in the middle; wide characters count with their drawn width."""
    from rich.cells import set_cell_size

    text = _sayable(screen, text)
    if _wide(text) > width:
        text = cut(text, width)
    if screen.glyphs.plain:
        text = text.replace(ELLIPSIS, "~")  # one column, as the other
    return set_cell_size(text, width)


def _sayable(screen: Screen, text: str) -> str:
    """What the stream can encode, before it is measured."""
    if not screen.glyphs.plain:
        return text
    return screen.text(text.replace("µ", "u").replace("×", "x").replace(ELLIPSIS, "~")).plain


def _wide(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
