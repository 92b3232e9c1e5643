"""The row and order of each box of a level, computed before any width is known.

A line that goes beyond the next row gets a passage, a narrow place of its own, in every row
that it crosses, so that no line runs through a box. Lines of one tensor share their passages, and so
do lines that end in one box: a level with hundreds of them stays as narrow as it can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

SWEEPS = 8  # sweeps down and up; orders hardly change after that
FEW = 400  # places of a level up to which neighbours are also swapped pairwise
MOST_PASSAGES = 40_000  # further lines run behind the boxes: nobody can follow this many

Pair = tuple[int, int]


@dataclass(frozen=True)
class BoxRows:
    """Places by number: those of the boxes first, in order, then those of the passages."""

    rows: list[list[int]]  # from top to bottom, each from left to right
    lines: list[tuple[int, int, int]]  # from place to place, and the number of the edge that it belongs to


def rows_of(
    count: int, edges: Sequence[Pair], first: Sequence[int] = (), last: Sequence[int] = ()
) -> BoxRows:
    """`first` are boxes that stay in the top row, `last` those that stay in the bottom row."""
    ranks = ranks_of(list(range(count)), list(edges))
    _move_down(ranks, edges, set(first))
    for box in last:
        ranks[box] = max(ranks.values())
    lines = _add_passages(count, edges, ranks)
    rows: list[list[int]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    for place, rank in ranks.items():
        rows[rank].append(place)
    pairs = [(a, b) if ranks[a] < ranks[b] else (b, a) for a, b, _ in lines]
    return BoxRows(_Order(rows, pairs).least_crossings(), lines)


def ranks_of(nodes: list[int], edges: list[Pair]) -> dict[int, int]:
    """Longest path from a start, for layered drawing; a cycle is cut where it closes."""
    out: dict[int, list[int]] = {n: [] for n in nodes}
    waiting_for = dict.fromkeys(nodes, 0)
    for a, b in edges:
        out[a].append(b)
        waiting_for[b] += 1
    ranks = dict.fromkeys(nodes, 0)
    ready = [n for n in nodes if not waiting_for[n]]
    left = set(nodes)
    while left:
        if not ready:
            ready = [min(left)]  # everything left is in a cycle
        node = ready.pop()
        if node not in left:
            continue
        left.discard(node)
        for following in out[node]:
            if following in left:
                ranks[following] = max(ranks[following], ranks[node] + 1)
                waiting_for[following] -= 1
                if waiting_for[following] <= 0:
                    ready.append(following)
    return ranks


def _move_down(ranks: dict[int, int], edges: Sequence[Pair], fixed: set[int]) -> None:
    """What is needed late is drawn late, just above its use, unless that makes lines longer."""
    out: dict[int, list[int]] = {}
    into: dict[int, list[int]] = {}
    for a, b in edges:
        if ranks[a] < ranks[b]:
            out.setdefault(a, []).append(b)
            into.setdefault(b, []).append(a)
    for node in sorted(out, key=lambda n: -ranks[n]):
        lowest, now = min(ranks[b] for b in out[node]) - 1, ranks[node]
        if node in fixed or lowest <= now:
            continue
        longer = 0
        for source in into.get(node, ()):
            reach = max((ranks[b] for b in out[source] if b != node), default=0)
            longer += max(0, lowest - max(reach, now))
        if longer <= lowest - now:
            ranks[node] = lowest


def _add_passages(count: int, edges: Sequence[Pair], ranks: dict[int, int]) -> list[tuple[int, int, int]]:
    """Give each passage its rank; returns the lines between boxes and passages, with their edge."""
    far = [(a, b) for a, b in edges if abs(ranks[b] - ranks[a]) > 1]
    leaving, arriving = Counter(a for a, _ in far), Counter(b for _, b in far)
    lines: list[tuple[int, int, int]] = []
    known: dict[tuple[int, bool, int], int] = {}
    drawn: set[Pair] = set()
    for number, (a, b) in enumerate(edges):
        joins = arriving[b] > leaving[a]  # else it branches off from the others with the same source
        step = 1 if ranks[b] > ranks[a] else -1
        way = [a]
        for rank in range(ranks[a] + step, ranks[b], step):
            key = (b if joins else a, joins, rank)
            if key not in known and len(known) < MOST_PASSAGES:
                known[key] = count + len(known)
                ranks[known[key]] = rank
            way += [known[key]] if key in known else []
        for pair in zip(way, [*way[1:], b], strict=True):
            if pair not in drawn:
                drawn.add(pair)
                lines.append((*pair, number))
    return lines


class _Order:
    """The order of places in a row that minimises crossings, by sweeps over their neighbours' means."""

    def __init__(self, rows: list[list[int]], lines: list[Pair]) -> None:
        self._rows = rows
        self._above: dict[int, list[int]] = {}
        self._below: dict[int, list[int]] = {}
        for a, b in lines:
            self._below.setdefault(a, []).append(b)
            self._above.setdefault(b, []).append(a)
        self._at: dict[int, int] = {}
        for row in rows:
            self._settle(row)

    def least_crossings(self) -> list[list[int]]:
        if all(len(row) == 1 for row in self._rows):
            return self._rows
        few = sum(map(len, self._rows)) <= FEW
        start = [list(row) for row in self._rows]
        best, fewest = start, self._crossings()
        for first in (0, 1) if few else (0,):  # from the top or from the bottom: neither is always better
            self._rows = [list(row) for row in start]
            for row in self._rows:
                self._settle(row)
            for sweep in range(first, first + (SWEEPS if few else 2)):
                self._sweep(down=sweep % 2 == 0, swapping=few)
                crossings = self._crossings()
                if crossings < fewest:
                    best, fewest = [list(row) for row in self._rows], crossings
        return best

    def _sweep(self, *, down: bool, swapping: bool) -> None:
        for row in self._rows[1:] if down else self._rows[-2::-1]:
            self._sort(row, self._above if down else self._below)
        if swapping:
            self._swap()

    def _settle(self, row: list[int]) -> None:
        self._at.update({place: number for number, place in enumerate(row)})

    def _sort(self, row: list[int], towards: dict[int, list[int]]) -> None:
        def mean(place: int) -> float:
            others = towards.get(place)
            return sum(self._at[o] for o in others) / len(others) if others else float(self._at[place])

        row.sort(key=mean)
        self._settle(row)

    def _swap(self) -> None:
        for row in self._rows:
            for left in range(len(row) - 1):
                a, b = row[left], row[left + 1]
                if self._crossed(a, b) > self._crossed(b, a):
                    row[left], row[left + 1] = b, a
                    self._at[a], self._at[b] = left + 1, left

    def _crossed(self, left: int, right: int) -> int:
        """Crossings between the lines of two neighbours in this order."""
        return sum(
            self._at[one] > self._at[other]
            for side in (self._above, self._below)
            for one in side.get(left, ())
            for other in side.get(right, ())
        )

    def _crossings(self) -> int:
        """Over all lines between rows: pairs that are in one order above and in the other below."""
        return sum(self._between(row) for row in self._rows if len(row) > 1)

    def _between(self, row: list[int]) -> int:
        ends = [end for place in row for end in sorted(self._at[b] for b in self._below.get(place, ()))]
        return _inversions(ends)


def _inversions(numbers: list[int]) -> int:
    """Counted in a tree of sums, so that a row of thousands is fast."""
    size = max(numbers, default=0) + 1
    seen = [0] * (size + 1)
    found = 0
    for done, number in enumerate(numbers):
        index, before = number + 1, 0
        while index:
            before += seen[index]
            index &= index - 1
        found += done - before
        index = number + 1
        while index <= size:
            seen[index] += 1
            index += index & -index
    return found
