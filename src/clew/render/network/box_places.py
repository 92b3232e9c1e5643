"""Positions of the boxes of a level: columns computed once for closed boxes, wider where one is open.

`grid_of` is the layout: it is computed here, once, and sent to the browser. `fit` makes
columns and rows as wide and high as the boxes in them, as a table does; ui/src/draw/graph_grid.ts does
the same where a click opens a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from clew.render.network.box_rows import BoxRows

GAP_X, BESIDE = 20.0, 12.0  # between boxes; between a passage and its neighbour
GAP_Y, HIGHEST_GAP = 28.0, 72.0
STEEPNESS = 0.08  # a gap grows with the sideways extent of its lines: flat lines can't be distinguished
PASSES = 12
ROUNDS = 6  # passes of straightening: what moved makes room for others
MANY = 4000  # places of a level; beyond, a third of the passes must do: nobody follows every line there
STRAIGHT = 8.0  # weight of a bent passage relative to a box that is not below its neighbours
EDGE, APART = 12.0, 12.0  # lines end this far from the corners of a box, and from each other


@dataclass(frozen=True)
class Grid:
    """The places of a level, boxes first, then passages: rows, columns, and the lines between them."""

    boxes: int
    rows: list[list[int]]
    x: list[float]  # centres of the places, while all boxes are closed
    lines: list[tuple[int, int, float]]  # from place to place, and how far from the centre it ends

    @property
    def row(self) -> list[int]:
        """For each place: the number of its row."""
        found = [0] * len(self.x)
        for number, places in enumerate(self.rows):
            for place in places:
                found[place] = number
        return found


@dataclass(frozen=True)
class Places:
    """The final positions once it is known which boxes are open: centres, and tops and bottoms of rows."""

    x: list[float]
    tops: list[float]
    bottoms: list[float]
    width: float

    @property
    def height(self) -> float:
        return self.bottoms[-1] if self.bottoms else 0.0


def grid_of(rows: BoxRows, widths: Sequence[float]) -> Grid:
    """`widths` are those of the closed boxes; passages have none."""
    boxes = len(widths)
    wide = [*widths, *([0.0] * (sum(map(len, rows.rows)) - boxes))]
    x = [round(at, 1) for at in _Columns(rows, wide, boxes).settled()]
    bare = Grid(boxes, rows.rows, x, [])
    ends = _ends(rows, x, wide, boxes, bare.row)
    lines = [(a, b, round(ends[a, b] - x[b], 1) if (a, b) in ends else 0.0) for a, b, _ in rows.lines]
    return Grid(boxes, rows.rows, x, lines)


def fit(grid: Grid, widths: Sequence[float], heights: Sequence[float]) -> Places:
    """Make room for boxes of these sizes: each column stays one column."""
    wide = [*widths, *([0.0] * (len(grid.x) - grid.boxes))]
    x = _widened(grid, wide)
    left = min((x[p] - wide[p] / 2 for p in range(len(wide))), default=0.0)
    x = [at - left for at in x]
    tops, bottoms = _down(grid, heights, x)
    return Places(x, tops, bottoms, max((x[p] + wide[p] / 2 for p in range(len(wide))), default=0.0))


def _widened(grid: Grid, wide: list[float]) -> list[float]:
    """Columns pushed apart from the left, and from the right; halfway between the two all have room."""
    columns = sorted(set(grid.x))
    number = {at: n for n, at in enumerate(columns)}
    needs: list[tuple[int, int, float]] = []  # for two columns: their minimal distance
    for row in grid.rows:
        for a, b in pairwise(row):
            needs.append((number[grid.x[a]], number[grid.x[b]], _apart(a, b, wide, grid.boxes)))
    needs += [(n, n + 1, right - left) for n, (left, right) in enumerate(pairwise(columns))]
    pushed = columns[:1] + [float("-inf")] * (len(columns) - 1)
    for a, b, need in sorted(needs):
        pushed[b] = max(pushed[b], pushed[a] + need)
    pulled = [float("inf")] * (len(columns) - 1) + pushed[-1:]
    for a, b, need in sorted(needs, key=lambda n: -n[1]):
        pulled[a] = min(pulled[a], pulled[b] - need)
    return [(pushed[number[at]] + pulled[number[at]]) / 2 for at in grid.x]


class _Columns:
    """The centres of the places of a level while all boxes are closed."""

    def __init__(self, rows: BoxRows, wide: list[float], boxes: int) -> None:
        self._rows, self._boxes = rows.rows, boxes
        self._apart = [[_apart(a, b, wide, boxes) for a, b in pairwise(row)] for row in rows.rows]
        self._above: list[list[int]] = [[] for _ in wide]
        self._below: list[list[int]] = [[] for _ in wide]
        rank = {place: number for number, row in enumerate(rows.rows) for place in row}
        for a, b, _ in rows.lines:
            top, bottom = (a, b) if rank[a] < rank[b] else (b, a)
            self._above[bottom].append(top)
            self._below[top].append(bottom)
        self._x = [0.0] * len(wide)

    def settled(self) -> list[float]:
        """Each place as near to its neighbours as those beside it allow, then paths are straightened."""
        for number, row in enumerate(self._rows):
            self._press(number, [(0.0, 1.0)] * len(row))
        if all(len(row) == 1 for row in self._rows):
            return self._x
        numbers = range(len(self._rows))
        passes = PASSES if len(self._x) <= MANY else PASSES // 3
        for turn in range(passes):
            sides = [self._below] if turn % 2 else [self._above]
            if turn >= passes - 2:
                sides = [self._above, self._below]
            for number in reversed(numbers) if turn % 2 else numbers:
                row = self._rows[number]
                self._press(number, [self._wanted(p, [o for s in sides for o in s[p]]) for p in row])
        self._straighten()
        return self._x

    def _press(self, number: int, wanted: list[tuple[float, float]]) -> None:
        """Places of a row as near as possible to where they want to be; with each, how much it counts."""
        centres = pressed([at for at, _ in wanted], [weight for _, weight in wanted], self._apart[number])
        for place, centre in zip(self._rows[number], centres, strict=True):
            self._x[place] = centre

    def _wanted(self, place: int, others: list[int]) -> tuple[float, float]:
        """The mean of its neighbours; for a passage, that of the passages before and after it."""
        x, boxes = self._x, self._boxes
        if not others:
            return x[place], 0.1
        if place >= boxes:
            passages = [o for o in others if o >= boxes]
            others = passages or others
            return sum(x[o] for o in others) / len(others), STRAIGHT if passages else 2.0
        weights = [2.0 if o >= boxes else 1.0 for o in others]
        return sum(x[o] * w for o, w in zip(others, weights, strict=True)) / sum(weights), 1.0

    def _straighten(self) -> None:
        """Passages of one line, and boxes in single file, are exactly below each other if there is room."""
        x = self._x
        left: dict[int, tuple[int, float]] = {}  # per place: neighbour on that side, minimal distance
        right: dict[int, tuple[int, float]] = {}
        for row, gaps in zip(self._rows, self._apart, strict=True):
            for a, b, gap in zip(row, row[1:], gaps, strict=False):
                right[a], left[b] = (b, gap), (a, gap)
        files = sorted(self._files(), key=len, reverse=True)
        for _ in range(ROUNDS if len(x) <= MANY else ROUNDS // 3):
            self._align(files)
            for file in files:
                low = max((x[left[p][0]] + left[p][1] for p in file if p in left), default=float("-inf"))
                high = min((x[right[p][0]] - right[p][1] for p in file if p in right), default=float("inf"))
                if low <= high:
                    ends = (*self._above[file[0]], *self._below[file[-1]])
                    beyond = [x[o] for o in ends] or [x[p] for p in file]
                    at = min(max(sum(beyond) / len(beyond), low), high)
                    for place in file:
                        x[place] = at

    def _align(self, files: list[list[int]]) -> None:
        """Every file towards its own mean: boxes yield to passages, which are longer."""
        wanted = {}
        for file in files:
            mean = sum(self._x[p] for p in file) / len(file)
            weight = STRAIGHT if file[0] >= self._boxes else float(min(len(file), 4))
            wanted.update(dict.fromkeys(file, (mean, weight)))
        for number, row in enumerate(self._rows):
            self._press(number, [wanted[place] for place in row])

    def _files(self) -> list[list[int]]:
        boxes = self._boxes
        following: dict[int, int] = {}
        for place, others in enumerate(self._below):
            alike = [o for o in others if o >= boxes] if place >= boxes else others
            if len(alike) == 1 and len(self._above[alike[0]]) == 1 and (place < boxes) == (alike[0] < boxes):
                following[place] = alike[0]
        files = []
        for start in set(range(len(self._below))) - set(following.values()):
            file = [start]
            while file[-1] in following:
                file.append(following[file[-1]])
            files.append(file)
        return files


def _apart(a: int, b: int, wide: list[float], boxes: int) -> float:
    gap = GAP_X if a < boxes and b < boxes else BESIDE
    return wide[a] / 2 + gap + wide[b] / 2


def pressed(wanted: Sequence[float], weights: Sequence[float], apart: Sequence[float]) -> list[float]:
    """The places nearest to the wanted ones (least squares) that keep their order and distances."""
    offsets = [0.0]
    for gap in apart:
        offsets.append(offsets[-1] + gap)
    groups: list[list[float]] = []  # mean, weight, count: those that touch each other move as one
    for want, weight, offset in zip(wanted, weights, offsets, strict=False):
        groups.append([want - offset, weight, 1.0])
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            mean, more, many = groups.pop()
            into = groups[-1]
            into[0] = (into[0] * into[1] + mean * more) / (into[1] + more)
            into[1] += more
            into[2] += many
    means = [mean for mean, _, many in groups for _ in range(int(many))]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]


def _ends(
    rows: BoxRows, x: list[float], wide: list[float], boxes: int, row: list[int]
) -> dict[tuple[int, int], float]:
    """Lines into a box end side by side at its top, in the order in which they arrive."""
    into: dict[int, list[int]] = {}
    for a, b, _ in rows.lines:
        if b < boxes and row[a] < row[b]:
            into.setdefault(b, []).append(a)
    ends: dict[tuple[int, int], float] = {}
    for box, sources in into.items():
        sources.sort(key=lambda s: x[s])
        half = max(wide[box] / 2 - EDGE, 0.0)
        gap = min(APART, 2 * half / max(len(sources) - 1, 1))
        wanted = [min(max(x[s], x[box] - half), x[box] + half) for s in sources]
        at = pressed(wanted, [1.0] * len(sources), [gap] * (len(sources) - 1))
        shift = max(x[box] - half - at[0], 0.0) or min(x[box] + half - at[-1], 0.0)
        ends.update({(s, box): place + shift for s, place in zip(sources, at, strict=True)})
    return ends


def _down(grid: Grid, heights: Sequence[float], x: list[float]) -> tuple[list[float], list[float]]:
    row = grid.row
    sideways = [0.0] * len(grid.rows)
    for a, b, end in grid.lines:
        upper = min(row[a], row[b])
        sideways[upper] = max(sideways[upper], abs(x[a] - x[b] - end))
    tops, bottoms, y = [], [], 0.0
    for number, places in enumerate(grid.rows):
        tops.append(y)
        y += max((heights[p] for p in places if p < len(heights)), default=0.0)
        bottoms.append(y)
        y += min(GAP_Y + STEEPNESS * sideways[number], HIGHEST_GAP)
    return tops, bottoms
