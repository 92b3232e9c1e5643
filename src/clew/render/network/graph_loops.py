"""Draws a loop in a forward once: consecutive steps that are identical and connected alike."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

FEWEST = 3  # iterations; two are just as clear when both are drawn
LONGEST = 100  # nodes in one iteration of a loop

Wires = Mapping[int, Sequence[Hashable]]  # for each node: the sources of its inputs


def loops_of(things: Sequence[int], patterns: Sequence[Hashable], wires: Wires) -> list[list[list[int]]]:
    """The iterations of each loop, and the nodes of each iteration; `things` are in execution order."""
    found = []
    wiring = Wiring(things, wires)
    start = 0
    while start < len(things):
        best: list[list[int]] = []
        covered = 0  # nodes in the best loop
        for length in range(1, min(LONGEST, (len(things) - start) // FEWEST) + 1):
            if patterns[start] != patterns[start + length] or covered >= len(things) - start:
                continue
            turns = _turns(things, patterns, wiring, start, length)
            if len(turns) >= FEWEST and len(turns) * length > covered:
                best, covered = turns, len(turns) * length
        if best:
            found.append(best)
        start += covered or 1
    return found


def _turns(
    things: Sequence[int], patterns: Sequence[Hashable], wires: Wiring, start: int, length: int
) -> list[list[int]]:
    """As many iterations as look alike and are connected alike."""
    turns = 1
    second = start + length
    first = patterns[start:second]
    while patterns[(begin := start + turns * length) : begin + length] == first:
        if turns == 1:
            if not wires.are_same_within(start, second, length) or not wires.needs_the_last(second, length):
                break
        elif any(wires.of(begin, n, length) != wires.of(second, n, length) for n in range(length)):
            break
        turns += 1
    return [list(things[start + n * length : start + (n + 1) * length]) for n in range(turns)]


class Wiring:
    """Where the nodes of an iteration get their inputs: from this one, the previous one, or elsewhere."""

    def __init__(self, things: Sequence[int], wires: Wires) -> None:
        self._at: dict[Hashable, int] = {thing: place for place, thing in enumerate(things)}
        self._sources = [wires.get(thing, ()) for thing in things]

    def of(self, begin: int, n: int, length: int) -> set[Hashable]:
        """For one node of the iteration that begins there, which is not the first one."""
        return {self._relative(source, begin, length) for source in self._sources[begin + n]}

    def are_same_within(self, begin: int, other: int, length: int) -> bool:
        """Whether the nodes of two iterations have the same inputs from their own iteration."""
        return all(self._within(begin, n, length) == self._within(other, n, length) for n in range(length))

    def _within(self, begin: int, n: int, length: int) -> set[int]:
        places = (self._at.get(source, -1) - begin for source in self._sources[begin + n])
        return {place for place in places if 0 <= place < length}

    def needs_the_last(self, begin: int, length: int) -> bool:
        """Whether an iteration needs the previous one: else they are parallel and not a loop."""
        return any(
            -length <= self._at.get(source, -1 - begin - length) - begin < 0
            for sources in self._sources[begin : begin + length]
            for source in sources
        )

    def _relative(self, source: Hashable, begin: int, length: int) -> Hashable:
        place = self._at.get(source)
        if place is None or not -length <= place - begin < length:
            return "far", source
        return place - begin
