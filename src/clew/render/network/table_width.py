"""Fits a table into the width available: shortens names and shapes first, drops columns last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clew.render.safe_text import ELLIPSIS, cut

GAP = 2
NAME_SHARE = 0.5  # of the width, at most, for the module tree
LEAST_NAME, LEAST_SHAPE = 20, 16  # columns below which neither can be read
SHORTEST_KIND = 6  # of a class's name, before the module's own is cut


@dataclass(frozen=True)
class Fit:
    """Widths of the name, of the column that wraps and of those that are shown; what had to go."""

    name: int
    shape: int
    shown: list[int]
    gone: list[int]


def fitted(width: int, name: int, widths: Sequence[int], wraps: int, ranks: Sequence[int]) -> Fit:
    """`widths` are the columns' own, of which number `wraps` may be narrower; the highest rank goes first."""
    shown, gone = list(range(len(widths))), list[int]()
    while True:
        others = sum(widths[i] + GAP for i in shown if i != wraps)
        room = width - others - GAP
        name_least, shape_least = min(name, LEAST_NAME), min(widths[wraps], LEAST_SHAPE)
        if name_least + shape_least <= room or len(shown) == 1:
            break
        lost = max((i for i in shown if i != wraps), key=lambda i: ranks[i])
        shown.remove(lost)
        gone.append(lost)
    shape = min(widths[wraps], max(room - min(name, int(width * NAME_SHARE)), shape_least))
    return Fit(max(min(name, room - shape, int(width * NAME_SHARE)), name_least), shape, shown, sorted(gone))


def short_name(indent: str, head: str, kind: str, width: int) -> str:
    """The class gives way before the name, and of a name its end says more: `…decoder.layers.0`."""
    room = width - len(indent) - len(head)
    if len(kind) <= room or not kind:
        whole = f"{indent}{head}{kind}"
        return whole if len(whole) <= width else _tail(indent, head, width)
    if room >= 2 + SHORTEST_KIND:
        return f"{indent}{head}{cut(kind, room)}"
    return f"{indent}{head}" if room >= 0 else _tail(indent, head, width)


def _tail(indent: str, head: str, width: int) -> str:
    indent = indent[: max(width - 12, 0)]
    return f"{indent}{ELLIPSIS}{head[-max(width - len(indent) - 1, 1) :]}"


def wrapped(shape: str, times: str, width: int) -> list[str]:
    """A long shape on several lines, each later one beginning with the sign between two sizes."""
    if len(shape) <= width:
        return [shape]
    between = f" {times} " if f" {times} " in shape else times
    first, *others = shape.split(between)
    lines = [first]
    for size in others:
        longer = f"{lines[-1]}{between}{size}"
        if len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(f"{times}{' ' if len(between) > 1 else ''}{size}")
    return [cut(line, width) for line in lines]
