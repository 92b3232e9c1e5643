"""Positions of the boxes of a level: columns computed once for closed boxes, wider where one is open.

`grid_of` is the layout: it is worked out here, once, and the browser gets it ready made. `fit` makes
columns and rows as wide and high as the boxes in them, as a table does; ui/src/draw/graph_grid.ts does
the same where a click opens a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from clew.render.network.box_rows import BoxRows

GAP_X, BESIDE = 20.0, 12.0  # between boxes; between a passage and what stands beside it
GAP_Y, HIGHEST_GAP = 28.0, 72.0
STEEPNESS = 0.08  # a gap grows with how far its lines go sideways: flat lines can't be told apart
PASSES = 12
ROUNDS = 6  # of straightening: what moved makes room for others
MANY = 4000  # places of a level beyond which a third of that must do: nobody follows every line there
STRAIGHT = 8.0  # how much more a bent passage counts than a box that is not below its neighbours
EDGE, APART = 12.0, 12.0  # lines end this far from the corners of a box, and from each other


@dataclass(frozen=True)
class Grid:
    """The places of a level, boxes first, then passages: rows, columns, and the lines between them."""

    boxes: int
    rows: list[list[int]]
    x: list[float]  # middles of the places, while all boxes are closed
    lines: list[tuple[int, int, float]]  # from place to place, and how far from the middle it ends

    @property
    def row(self) -> list[int]:
        """Of each place: the number of its row."""
        found = [0] * len(self.x)
        for number, places in enumerate(self.rows):
            for place in places:
                found[place] = number
        return found


@dataclass(frozen=True)
class Places:
    """Where all stands once it is known which boxes are open: middles, and tops and bottoms of rows."""

    x: list[float]
    tops: list[float]
    bottoms: list[float]
    width: float

    @property
    def height(self) -> float:
        return self.bottoms[-1] if self.bottoms else 0.0


def grid_of(rows: BoxRows, widths: Sequence[float]) -> Grid:
    """`widths` are of the closed boxes; passages have none."""
    boxes = len(widths)
    wide = [*widths, *([0.0] * (sum(map(len, rows.rows)) - boxes))]
    x = [round(at, 1) for at in _across(rows, wide, boxes)]
    bare = Grid(boxes, rows.rows, x, [])
    ends = _ends(rows, x, wide, boxes, bare.row)
    lines = [(a, b, round(ends[a, b] - x[b], 1) if (a, b) in ends else 0.0) for a, b, _ in rows.lines]
    return Grid(boxes, rows.rows, x, lines)


def fit(grid: Grid, widths: Sequence[float], heights: Sequence[float]) -> Places:
    """Make room for boxes of these sizes: what stands in one column stays in one column."""
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
    needs: list[tuple[int, int, float]] = []  # of two columns: how far apart they must be
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


def _across(rows: BoxRows, wide: list[float], boxes: int) -> list[float]:
    """Each place as near to its neighbours as those beside it let it be, then ways made straight."""
    x = [0.0] * len(wide)
    apart = [[_apart(a, b, wide, boxes) for a, b in pairwise(r)] for r in rows.rows]
    for row, gaps in zip(rows.rows, apart, strict=True):
        for place, at in zip(row, pressed([0.0] * len(row), [1.0] * len(row), gaps), strict=True):
            x[place] = at
    if all(len(row) == 1 for row in rows.rows):
        return x
    above, below = _neighbours(rows, len(wide))
    numbers = range(len(rows.rows))
    passes = PASSES if len(wide) <= MANY else PASSES // 3
    for turn in range(passes):
        sides = (above, below) if turn >= passes - 2 else (below,) if turn % 2 else (above,)
        for n in reversed(numbers) if turn % 2 else numbers:
            wishes = [_wanted(p, [o for s in sides for o in s[p]], x, boxes) for p in rows.rows[n]]
            middles = pressed([w for w, _ in wishes], [w for _, w in wishes], apart[n])
            for place, middle in zip(rows.rows[n], middles, strict=True):
                x[place] = middle
    _straighten(rows, x, apart, above, below, boxes)
    return x


def _neighbours(rows: BoxRows, places: int) -> tuple[list[list[int]], list[list[int]]]:
    rank = {p: n for n, row in enumerate(rows.rows) for p in row}
    above: list[list[int]] = [[] for _ in range(places)]
    below: list[list[int]] = [[] for _ in range(places)]
    for a, b, _ in rows.lines:
        top, bottom = (a, b) if rank[a] < rank[b] else (b, a)
        above[bottom].append(top)
        below[top].append(bottom)
    return above, below


def _straighten(
    rows: BoxRows,
    x: list[float],
    apart: list[list[float]],
    above: list[list[int]],
    below: list[list[int]],
    boxes: int,
) -> None:
    """Passages of one line, and boxes in single file, stand exactly below each other where there is room."""
    left: dict[int, tuple[int, float]] = {}  # of each place: its neighbour on that side, and how far at least
    right: dict[int, tuple[int, float]] = {}
    for row, gaps in zip(rows.rows, apart, strict=True):
        for a, b, gap in zip(row, row[1:], gaps, strict=False):
            right[a], left[b] = (b, gap), (a, gap)
    files = sorted(_files(above, below, boxes), key=len, reverse=True)
    for _ in range(ROUNDS if len(x) <= MANY else ROUNDS // 3):
        _lean(rows, files, x, apart, boxes)
        for file in files:
            low = max((x[left[p][0]] + left[p][1] for p in file if p in left), default=float("-inf"))
            high = min((x[right[p][0]] - right[p][1] for p in file if p in right), default=float("inf"))
            if low <= high:
                beyond = [x[o] for o in (*above[file[0]], *below[file[-1]])] or [x[p] for p in file]
                at = min(max(sum(beyond) / len(beyond), low), high)
                for place in file:
                    x[place] = at


def _lean(
    rows: BoxRows, files: list[list[int]], x: list[float], apart: list[list[float]], boxes: int
) -> None:
    """Every file towards its own mean: boxes give way to passages, which are longer."""
    wanted = {}
    for file in files:
        mean = sum(x[p] for p in file) / len(file)
        wanted.update(dict.fromkeys(file, (mean, STRAIGHT if file[0] >= boxes else float(min(len(file), 4)))))
    for row, gaps in zip(rows.rows, apart, strict=True):
        at = pressed([wanted[p][0] for p in row], [wanted[p][1] for p in row], gaps)
        for place, middle in zip(row, at, strict=True):
            x[place] = middle


def _files(above: list[list[int]], below: list[list[int]], boxes: int) -> list[list[int]]:
    following: dict[int, int] = {}
    for place, others in enumerate(below):
        alike = [o for o in others if o >= boxes] if place >= boxes else others
        if len(alike) == 1 and len(above[alike[0]]) == 1 and (place < boxes) == (alike[0] < boxes):
            following[place] = alike[0]
    files = []
    for start in set(range(len(below))) - set(following.values()):
        file = [start]
        while file[-1] in following:
            file.append(following[file[-1]])
        files.append(file)
    return files


def _apart(a: int, b: int, wide: list[float], boxes: int) -> float:
    gap = GAP_X if a < boxes and b < boxes else BESIDE
    return wide[a] / 2 + gap + wide[b] / 2


def _wanted(place: int, others: list[int], x: list[float], boxes: int) -> tuple[float, float]:
    """The mean of its neighbours; a passage goes by the passages before and after it."""
    if not others:
        return x[place], 0.1
    if place >= boxes:
        passages = [o for o in others if o >= boxes]
        others = passages or others
        return sum(x[o] for o in others) / len(others), STRAIGHT if passages else 2.0
    weights = [2.0 if o >= boxes else 1.0 for o in others]
    return sum(x[o] * w for o, w in zip(others, weights, strict=True)) / sum(weights), 1.0


def pressed(wanted: Sequence[float], weights: Sequence[float], apart: Sequence[float]) -> list[float]:
    """The places nearest to the wanted ones (least squares) that keep their order and distances."""
    offsets = [0.0]
    for gap in apart:
        offsets.append(offsets[-1] + gap)
    groups: list[list[float]] = []  # mean, weight, how many: those that press on each other move as one
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
    """Lines into a box end side by side at its top, in the order in which they come."""
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
