"""A loop of a forward is drawn once: steps that follow each other, look alike and are wired alike."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

FEWEST = 3  # turns; two steps alike are as clear when both are drawn
LONGEST = 100  # things in one turn of a loop

Wires = Mapping[int, Sequence[Hashable]]  # of each thing: what it gets its inputs from


def loops_of(things: Sequence[int], looks: Sequence[Hashable], wires: Wires) -> list[list[list[int]]]:
    """Of each loop its turns, and of each turn its things; `things` are in the order of execution."""
    found = []
    start = 0
    while start < len(things):
        best: list[list[int]] = []
        for length in range(1, min(LONGEST, (len(things) - start) // FEWEST) + 1):
            if (
                looks[start] != looks[start + length]
                or len(best) * len(best[0] if best else ()) >= len(things) - start
            ):
                continue
            turns = _turns(things, looks, wires, start, length)
            if len(turns) >= FEWEST and len(turns) * length > len(best) * len(best[0] if best else ()):
                best = turns
        if best:
            found.append(best)
            start += len(best) * len(best[0])
        else:
            start += 1
    return found


def _turns(
    things: Sequence[int], looks: Sequence[Hashable], wires: Wires, start: int, length: int
) -> list[list[int]]:
    """As many turns as look alike and are wired alike."""
    turns = [list(things[start : start + length])]
    wiring: list[set[Hashable]] | None = None
    while True:
        begin = start + len(turns) * length
        if any(looks[begin + n : begin + n + 1] != looks[start + n : start + n + 1] for n in range(length)):
            break
        turn = list(things[begin : begin + length])
        mine = _wiring(turn, turns[-1], wires)
        if wiring is None:
            first = _wiring(turns[0], [], wires)
            if not _from_the_last(mine) or [_within(w) for w in first] != [_within(w) for w in mine]:
                break
            wiring = mine
        elif wiring != mine:
            break
        turns.append(turn)
    return turns


def _wiring(turn: list[int], last: list[int], wires: Wires) -> list[set[Hashable]]:
    here = {thing: ("here", n) for n, thing in enumerate(turn)}
    before = {thing: ("last", n) for n, thing in enumerate(last)}
    return [
        {here.get(w) or before.get(w) or ("far", w) for w in wires.get(thing, ())}  # type: ignore[call-overload]
        for thing in turn
    ]


def _within(wires: set[Hashable]) -> set[Hashable]:
    return {w for w in wires if isinstance(w, tuple) and w[0] == "here"}


def _from_the_last(wiring: list[set[Hashable]]) -> bool:
    """Whether a turn needs the one before it: else they stand side by side and are no loop."""
    return any(isinstance(w, tuple) and w[0] == "last" for wires in wiring for w in wires)
