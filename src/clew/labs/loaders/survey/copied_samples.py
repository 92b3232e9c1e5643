"""Copied samples within a split and between two splits, from their hashes and sketches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch.utils.data import ConcatDataset, Subset

from clew.labs.loaders.survey.near_copies import Match, Sketches, exact_groups, near_pairs
from clew.records.dataset_survey import CopiedPair, Duplicates

MOST_PAIRS = 20
SIDE_BY_SIDE = 16  # distance of indices up to which two samples are neighbours
NARROW = 256  # columns of a table whose values are counted one by one
BLOCK = 8  # samples with successive indices that are read together, where not all are read


def within(kept: Sketches, samples: int, total: int | None, meant: str) -> tuple[Duplicates, Duplicates]:
    """Exact and near copies within a split."""
    rich = [n for n, enough in enumerate(kept.rich) if enough]
    groups = exact_groups(kept.hashes, sorted(rich, key=kept.indices.__getitem__))
    pairs = [(group[0], other, 0.0) for group in groups for other in group[1:]]
    share = samples / total if total else 1.0
    exact = Duplicates(
        method="content",
        compared=len(rich),
        copies=len(pairs),
        groups=len(groups),
        conflicting=sum(_conflicts(kept, group) for group in groups),
        neighbours=_side_by_side(kept, pairs),
        natural=_by_chance(kept) * len(kept.sketches) ** 2 / 2,
        share=_estimate(kept, pairs, share, total or samples),
        meant=meant,
        pairs=_listed(kept, kept, _conflicting_first(kept, pairs)),
    )
    return exact, _near_within(kept, share, total or samples, meant)


def _near_within(kept: Sketches, share: float, total: int, meant: str) -> Duplicates:
    if len(kept.sketched) < 2:
        return Duplicates(reason="no comparable samples")
    matches, reason = near_pairs(kept)
    later = {b for _, b, _ in matches}
    return Duplicates(
        method=kept.method,
        compared=len(kept.sketched),
        reason=reason,
        copies=len(later),
        groups=len(_joined(matches)),
        conflicting=sum(_differ(kept.labels[a], kept.labels[b]) for a, b, _ in matches),
        neighbours=_side_by_side(kept, matches),
        share=_estimate(kept, matches, share, total),
        meant=meant,
        pairs=_listed(kept, kept, sorted(matches, key=lambda m: m[2])),
    )


def between(first: Sketches, second: Sketches, coverage: float) -> tuple[Duplicates, Duplicates]:
    """Which samples of the second split are in the first, exactly and nearly."""
    known = {h: n for n, h in reversed(list(enumerate(first.hashes))) if first.rich[n]}
    rich = [n for n, enough in enumerate(second.rich) if enough]
    pairs = [(known[second.hashes[n]], n, 0.0) for n in rich if second.hashes[n] in known]
    exact = _compared("content", pairs, first, second, len(rich), coverage)
    if len(first.sketched) < 2 or len(second.sketched) < 2:
        return exact, Duplicates(reason="no comparable samples")
    matches, reason = near_pairs(first, second)
    seen = {n for _, n, _ in pairs}
    matches = sorted((m for m in matches if m[1] not in seen), key=lambda m: m[2])
    return exact, _compared(first.method, matches, first, second, len(second.sketched), coverage, reason)


def _compared(
    method: str,
    pairs: Sequence[Match],
    first: Sketches,
    second: Sketches,
    compared: int,
    coverage: float,
    reason: str = "",
) -> Duplicates:
    copies = len({b for _, b, _ in pairs})
    conflicting = sum(_differ(first.labels[a], second.labels[b]) for a, b, _ in pairs)
    return Duplicates(
        method=method,
        compared=compared,
        reason=reason,
        copies=copies,
        groups=copies,
        conflicting=conflicting,
        natural=_by_chance(first) * len(first.hashes) * compared,
        share=min(copies / compared / max(coverage, 1e-9), 1.0) if compared else 0.0,
        pairs=_listed(first, second, pairs),
    )


def _estimate(kept: Sketches, pairs: Sequence[Match], read: float, total: int) -> float:
    """The share of all samples that are copies: each pair also counts for samples that were not read.

    Both samples of a pair are read by chance (`read` each), or together if they are in one block.
    """
    if not pairs or not total:
        return 0.0
    apart = np.array([abs(kept.indices[a] - kept.indices[b]) for a, b, _ in pairs])
    together = np.clip(1 - apart / BLOCK, 0.0, 1.0)
    chance = read * together + read**2 * (1 - together)
    return min(float((1 / np.maximum(chance, 1e-12)).sum()) / total, 1.0)


def _by_chance(kept: Sketches) -> float:
    """How often two rows of a table are equal if its columns are independent."""
    rows = kept.sketches
    if kept.method != "features" or len(rows) < 2 or len({r.size for r in rows}) != 1:
        return 0.0
    if rows[0].size > NARROW:
        return 0.0
    table, together = np.stack(rows), 0.0
    for column in table.T:
        _, counts = np.unique(column, return_counts=True)
        together += float(np.log(((counts / len(table)) ** 2).sum()))
    return float(np.exp(together))


def _differ(a: str, b: str) -> bool:
    return a != "" and b not in ("", a)


def _conflicts(kept: Sketches, group: Sequence[int]) -> bool:
    return len({kept.labels[n] for n in group if kept.labels[n] != ""}) > 1


def _conflicting_first(kept: Sketches, pairs: Sequence[Match]) -> list[Match]:
    return sorted(pairs, key=lambda m: not _differ(kept.labels[m[0]], kept.labels[m[1]]))


def _side_by_side(kept: Sketches, pairs: Sequence[Match]) -> int:
    where = kept.origins or kept.indices
    return sum(abs(where[a] - where[b]) <= SIDE_BY_SIDE for a, b, _ in pairs)


def _listed(first: Sketches, second: Sketches, pairs: Sequence[Match]) -> tuple[CopiedPair, ...]:
    ordered = [
        (a, b, d) if first is not second or first.indices[a] < first.indices[b] else (b, a, d)
        for a, b, d in pairs[:MOST_PAIRS]
    ]
    return tuple(
        CopiedPair(first.indices[a], second.indices[b], first.labels[a], second.labels[b], round(d, 4))
        for a, b, d in ordered
    )


def _joined(matches: Sequence[Match]) -> list[set[int]]:
    """Sets of samples that are connected by pairs."""
    sets: list[set[int]] = []
    for a, b, _ in matches:
        touched = [s for s in sets if a in s or b in s]
        sets = [s for s in sets if s not in touched] + [set().union({a, b}, *touched)]
    return sets


def meant_copies(dataset: Any) -> str:
    """Why a dataset contains samples several times on purpose; empty if it does not."""
    for _ in range(4):
        if isinstance(dataset, ConcatDataset):
            parts = [id(part) for part in dataset.datasets]
            if len(set(parts)) < len(parts):
                return "a ConcatDataset contains the same dataset several times"
        if isinstance(dataset, Subset) and len(set(map(str, dataset.indices))) < len(dataset.indices):
            return "a Subset lists the same indices several times"
        inner = getattr(dataset, "__dict__", {}).get("dataset")
        if inner is None:
            return ""
        dataset = inner
    return ""


def chosen_of(dataset: Any) -> tuple[Any, list[int] | None]:
    """The dataset inside Subsets, and the index in it of every sample; None: the same."""
    chosen: list[int] | None = None
    while isinstance(dataset, Subset):
        try:
            own = [int(i) for i in dataset.indices]
            chosen = own if chosen is None else [own[i] for i in chosen]
        except (TypeError, ValueError, IndexError):  # keys that are no numbers
            return dataset, None
        dataset = dataset.dataset
    return dataset, chosen
