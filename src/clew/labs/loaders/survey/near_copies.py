"""Finds copies among samples: exact ones by hash, near ones by sketch, confirmed on the samples.

A near copy is a pair much closer than both are to their other neighbours. No fixed distance works for both
images of digits, where neighbours are always close, and photographs, where they never are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.labs.loaders.field_values import Leaf, main_input
from clew.labs.loaders.survey.content_hash import hash_content, sketch
from clew.records.dataset_survey import INPUT

TABLES = 24  # of hashes
WINDOW = 6  # samples of one hash that each is compared with
REFERENCE = 1500  # samples from which the typical distance of neighbours is measured
NEIGHBOUR = 10  # the neighbour that defines what is typical, among as many samples as are compared
NEAR = 0.1  # of that distance. In data of 3 dimensions 1 pair in 1,000 is that close, of 6 in 1,000,000
FEWEST_DIMENSIONS = 4.0  # below which points lie close by chance
ALIKE = 0.8  # share of shingles that two texts have in common
MOST_COMPARED = 20_000
RICH_VALUES = 16  # values of an image or waveform
RICH_TOKENS = 8
RICH_TEXT = 20  # characters

Matrix = npt.NDArray[np.float32]
Keys = npt.NDArray[np.uint64]


@dataclass
class Sketches:
    """What is kept about the samples of a split, in reading order."""

    indices: list[int] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)  # indices in the dataset inside a Subset
    hashes: list[bytes] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    rich: list[bool] = field(default_factory=list)  # contains enough that a copy is no coincidence
    method: str = ""  # of the sketches
    sketches: list[npt.NDArray[Any]] = field(default_factory=list)
    sketched: list[int] = field(default_factory=list)  # positions that have one

    def add(
        self, index: int, origin: int, leaves: Mapping[str, Leaf], roles: Mapping[str, str], label: str
    ) -> None:
        """The next sample."""
        main = main_input(leaves, roles)
        inputs = [leaf for name, leaf in leaves.items() if roles.get(name, INPUT) == INPUT]
        rich = main is not None and any(is_rich(leaf) for leaf in inputs)
        self.indices.append(index)
        self.origins.append(origin)
        self.hashes.append(hash_content(inputs))
        self.labels.append(label)
        self.rich.append(rich)
        made = sketch(main) if rich and main is not None and len(self.sketches) < MOST_COMPARED else None
        if made is not None and self.method in ("", made[0]):
            self.method = made[0]
            self.sketches.append(made[1])
            self.sketched.append(len(self.indices) - 1)


def is_rich(leaf: Leaf) -> bool:
    """Whether it contains enough that a copy is no coincidence."""
    if leaf.text is not None:
        return len(leaf.text) >= RICH_TEXT
    array = leaf.array
    if array is None or array.size < 2:
        return False
    if leaf.kind == "tokens":
        return array.size >= RICH_TOKENS and len(np.unique(array)) >= RICH_TOKENS // 2
    if leaf.kind != "vector" and array.size < RICH_VALUES:
        return False
    return bool((array != array.reshape(-1)[0]).any())


Match = tuple[int, int, float]  # positions, and how far apart


def exact_groups(hashes: Sequence[bytes], wanted: Iterable[int]) -> list[list[int]]:
    """Positions of samples with the same content, two or more together."""
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    for position in wanted:
        groups[hashes[position]].append(position)
    return [group for group in groups.values() if len(group) > 1]


def near_pairs(sketches: Sketches, others: Sketches | None = None) -> tuple[list[Match], str]:
    """Pairs of positions that are near copies but not exact ones, and why there is no answer.

    With `others` the first position of a pair is in `sketches`, the second in `others`.
    """
    if sketches.method == "" or (others is not None and others.method != sketches.method):
        return [], "samples of this kind can't be compared"
    if sketches.method == "shingles":
        return _near_texts(sketches, others), ""
    return _near_points(sketches, others)


# -- texts --


def _near_texts(sketches: Sketches, others: Sketches | None) -> list[Match]:
    rows, owners = _stacked(sketches, others)
    first = len(sketches.sketched) if others is not None else None
    found: dict[tuple[int, int], float] = {}
    for a, b in _candidates(_bands_of_texts(rows), first):
        shares = (rows[a] == rows[b]).mean(1)
        for i, j, share in zip(a[shares >= ALIKE], b[shares >= ALIKE], shares[shares >= ALIKE], strict=True):
            if owners[i] != owners[j]:
                found[int(i), int(j)] = 1 - float(share)
    return [_match(*pair, apart, sketches, others) for pair, apart in sorted(found.items())]


def _bands_of_texts(rows: Any) -> Iterator[tuple[Keys, Keys]]:
    """Four smallest hashes each: texts that share most shingles share all four in some band."""
    factors = np.array([1, 31, 961, 29791], np.uint64)
    for band in range(0, rows.shape[1], len(factors)):
        with np.errstate(over="ignore"):
            keys = (rows[:, band : band + len(factors)] * factors).sum(1, dtype=np.uint64)
        yield keys, rows[:, band - 1]


# -- images and vectors --


def _near_points(sketches: Sketches, others: Sketches | None) -> tuple[list[Match], str]:
    sizes = {s.size for s in (*sketches.sketches, *(others.sketches if others else ()))}
    if len(sizes) != 1:
        return [], "the samples have different sizes" if sizes else "nothing was compared"
    rows, owners = _stacked(sketches, others)
    points = _normalised(rows.astype(np.float32), sketches.method)
    if len(points) < 3 * NEIGHBOUR:
        return [], f"needs {3 * NEIGHBOUR} samples, has {len(points)}"
    neighbours = _NeighbourDistances(points)
    if neighbours.dimensions < FEWEST_DIMENSIONS:
        return (
            [],
            f"the data has about {neighbours.dimensions:.0f} dimensions: samples are close to each "
            "other by chance",
        )
    found: dict[tuple[int, int], float] = {}
    for a, b in _candidates(_bands_of_points(points), len(sketches.sketched) if others is not None else None):
        apart = np.linalg.norm(points[a] - points[b], axis=1)
        close = apart <= NEAR * neighbours.largest
        for i, j, distance in zip(a[close].tolist(), b[close].tolist(), apart[close].tolist(), strict=True):
            if (i, j) not in found and owners[i] != owners[j]:
                found[i, j] = distance / max(min(neighbours.distance(i), neighbours.distance(j)), 1e-12)
    near = sorted(pair for pair, relative in found.items() if relative <= NEAR)
    return [_match(*pair, found[pair], sketches, others) for pair in near], ""


class _NeighbourDistances:
    """How far a sample is from its neighbours, measured on some of the samples."""

    def __init__(self, points: Matrix) -> None:
        self._points = points
        chosen = np.random.Generator(np.random.PCG64(3)).permutation(len(points))[:REFERENCE]
        self._some = points[np.sort(chosen)]
        self._rank = max(1, round(NEIGHBOUR * len(self._some) / len(points)))
        self._known: dict[int, float] = {}
        self.dimensions, self.largest = self._measured()

    def _measured(self) -> tuple[float, float]:
        """Intrinsic dimension (TwoNN: Facco et al., 2017), and the largest distance to a neighbour."""
        ratios, distances = [], []
        for n in range(0, len(self._some), max(len(self._some) // 300, 1)):
            near = np.sort(_distances(self._some[n], self._some))
            near = near[near > 1e-6 * max(float(near[-1]), 1e-12)]
            if len(near) > self._rank:
                distances.append(float(near[self._rank]))
            if len(near) > 1:
                ratios.append(float(near[1] / near[0]))
        logs = np.log(np.sort(ratios)[: max(int(0.9 * len(ratios)), 1)]) if ratios else np.zeros(1)
        mean = float(logs.mean())
        # Of a cut-off exponential distribution; copies make the largest ratios, hence the cut.
        return (0.744 / mean if mean > 0 else 0.0), max(distances, default=0.0)

    def distance(self, position: int) -> float:
        if position not in self._known:
            near = _distances(self._points[position], self._some)
            apart = np.sort(near[near > 0])  # itself, and its exact copies
            rank = min(self._rank, len(apart) - 1)
            self._known[position] = float(apart[rank]) if len(apart) else 0.0
        return self._known[position]


def _distances(point: Matrix, others: Matrix) -> Matrix:
    apart: Matrix = np.sqrt(((others - point) ** 2).sum(1))
    return apart


def _normalised(rows: Matrix, method: str) -> Matrix:
    """Images without their brightness and contrast; vectors with every feature on one scale."""
    if method == "picture":
        centred = rows - rows.mean(1, keepdims=True)
        size = np.linalg.norm(centred, axis=1, keepdims=True)
        unit: Matrix = centred / np.maximum(size, 1e-6)
        return unit
    middle = np.median(rows, axis=0)
    spread = rows.std(0)
    scaled: Matrix = np.clip((rows - middle) / np.where(spread > 0, spread, 1.0), -20, 20)
    return scaled


def _bands_of_points(points: Matrix) -> Iterator[tuple[Keys, Matrix]]:
    """Signs of projections on random directions (SimHash: Charikar, 2002), a few for each table."""
    drawn = np.random.Generator(np.random.PCG64(7))
    centred = points - points.mean(0)
    bits = max(8, len(points).bit_length())
    weights = (np.uint64(1) << np.arange(bits, dtype=np.uint64)).astype(np.uint64)
    for _ in range(TABLES):
        planes = drawn.standard_normal((points.shape[1], bits + 1)).astype(np.float32)
        projected = centred @ planes
        yield ((projected[:, :bits] > 0) * weights).sum(1, dtype=np.uint64), projected[:, bits]


# -- both --


def _candidates(
    tables: Iterable[tuple[Keys, npt.NDArray[Any]]], first: int | None
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Rows with the same hash in some table, each with the next few in the order of a further number.

    With `first`, pairs of a row before it and one from there on.
    """
    for keys, further in tables:
        order = np.lexsort((further, keys))
        for shift in range(1, min(WINDOW, len(order) - 1) + 1):
            one, other = order[:-shift], order[shift:]
            same = keys[one] == keys[other]
            a, b = np.minimum(one, other)[same], np.maximum(one, other)[same]
            if first is not None:
                across = (a < first) & (b >= first)
                a, b = a[across], b[across]
            if len(a):
                yield a, b


def _stacked(sketches: Sketches, others: Sketches | None) -> tuple[npt.NDArray[Any], list[bytes]]:
    """The rows of both, and the hash of each."""
    both = [sketches] if others is None else [sketches, others]
    rows = np.stack([row for one in both for row in one.sketches])
    return rows, [one.hashes[n] for one in both for n in one.sketched]


def _match(a: int, b: int, apart: float, sketches: Sketches, others: Sketches | None) -> Match:
    if others is None:
        return sketches.sketched[a], sketches.sketched[b], apart
    return sketches.sketched[a], others.sketched[b - len(sketches.sketched)], apart
