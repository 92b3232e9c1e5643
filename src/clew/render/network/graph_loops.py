"""Draws a loop in a forward once: consecutive steps that are identical and connected alike."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

FEWEST = 3  # turns; two steps alike are as clear when both are drawn
LONGEST = 100  # things in one turn of a loop

Wires = Mapping[int, Sequence[Hashable]]  # of each thing: what it gets its inputs from


def loops_of(things: Sequence[int], looks: Sequence[Hashable], wires: Wires) -> list[list[list[int]]]:
    """Of each loop its turns, and of each turn its things; `things` are in the order of execution."""
    found = []
    wiring = Wiring(things, wires)
    start = 0
    while start < len(things):
        best: list[list[int]] = []
        for length in range(1, min(LONGEST, (len(things) - start) // FEWEST) + 1):
            if (
                looks[start] != looks[start + length]
                or len(best) * len(best[0] if best else ()) >= len(things) - start
            ):
                continue
            turns = _turns(things, looks, wiring, start, length)
            if len(turns) >= FEWEST and len(turns) * length > len(best) * len(best[0] if best else ()):
                best = turns
        if best:
            found.append(best)
            start += len(best) * len(best[0])
        else:
            start += 1
    return found


def _turns(
    things: Sequence[int], looks: Sequence[Hashable], wires: Wiring, start: int, length: int
) -> list[list[int]]:
    """As many turns as look alike and are wired alike."""
    turns = 1
    second = start + length
    while _alike(looks, start, start + turns * length, length):
        begin = start + turns * length
        if turns == 1:
            if not wires.are_same_within(start, second, length) or not wires.needs_the_last(second, length):
                break
        elif any(wires.of(begin, n, length) != wires.of(second, n, length) for n in range(length)):
            break
        turns += 1
    return [list(things[start + n * length : start + (n + 1) * length]) for n in range(turns)]


def _alike(looks: Sequence[Hashable], start: int, begin: int, length: int) -> bool:
    return begin + length <= len(looks) and all(looks[begin + n] == looks[start + n] for n in range(length))


class Wiring:
    """Where the things of a turn get their inputs from: this turn or the last one, or far away."""

    def __init__(self, things: Sequence[int], wires: Wires) -> None:
        self._at: dict[Hashable, int] = {thing: place for place, thing in enumerate(things)}
        self._sources = [wires.get(thing, ()) for thing in things]

    def of(self, begin: int, n: int, length: int) -> set[Hashable]:
        """Of one thing of the turn that begins there, which is not the first one."""
        return {self._told(source, begin, length) for source in self._sources[begin + n]}

    def are_same_within(self, begin: int, other: int, length: int) -> bool:
        """Whether the things of two turns get the same from their own turn."""
        return all(self._within(begin, n, length) == self._within(other, n, length) for n in range(length))

    def _within(self, begin: int, n: int, length: int) -> set[int]:
        places = (self._at.get(source, -1) - begin for source in self._sources[begin + n])
        return {place for place in places if 0 <= place < length}

    def needs_the_last(self, begin: int, length: int) -> bool:
        """Whether a turn needs the one before it: else they stand side by side and are no loop."""
        return any(
            -length <= self._at.get(source, -1 - begin - length) - begin < 0
            for sources in self._sources[begin : begin + length]
            for source in sources
        )

    def _told(self, source: Hashable, begin: int, length: int) -> Hashable:
        place = self._at.get(source)
        if place is None or not -length <= place - begin < length:
            return "far", source
        return place - begin
