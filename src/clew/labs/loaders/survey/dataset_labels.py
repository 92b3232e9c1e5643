"""The labels of a dataset: how often each occurs, and whether they are sorted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from clew.labs.loaders.field_values import Leaf
from clew.records.dataset_survey import Count, LabelSurvey, SampleOrder

MOST_CLASSES = 100  # listed one by one
FEW_VALUES = 20  # different whole numbers stored as floats that still count as classes
MANY = 0.5  # different labels per sample: above, they are numbers or names, not classes
EXPECTED = 20  # samples of a class, on average, before it can be called missing


def label_of(leaf: Leaf | None) -> str | None:
    """A sample's single answer as text; None if it has none."""
    if leaf is None or not leaf.is_single:
        return None
    if leaf.text is not None:
        return leaf.text if isinstance(leaf.text, str) else leaf.text.decode("utf-8", "replace")
    assert leaf.array is not None
    if leaf.kind != "number":
        return str(int(leaf.array.argmax()))
    value = float(leaf.array.reshape(-1)[0])
    return str(int(value)) if math.isfinite(value) and value.is_integer() else repr(value)


def labels(field: str, given: Mapping[int, str], of_floats: bool, total: int | None) -> LabelSurvey | None:
    """Statistics of the labels by index; None if there are none."""
    if not given:
        return None
    counts = Counter(given.values())
    if not _are_classes(counts, of_floats):
        return _values(field, given)
    pairs = [(given[i], given[i + 1]) for i in sorted(given) if i + 1 in given]
    switches = float(np.mean([a != b for a, b in pairs])) if pairs else 0.0
    by_chance = 1 - sum((n / len(given)) ** 2 for n in counts.values())
    error = math.sqrt(by_chance * (1 - by_chance) / len(pairs)) if pairs and 0 < by_chance < 1 else 0.0
    enough = total == len(given) or len(given) >= EXPECTED * len(counts)
    return LabelSurvey(
        field=field,
        samples=len(given),
        classes=len(counts),
        counts=tuple(Count(label, n) for label, n in _ordered(counts)[:MOST_CLASSES]),
        missing=_missing(counts) if enough else (),
        neighbours=len(pairs),
        switches=switches,
        by_chance=by_chance,
        deviations=(switches - by_chance) / error if error else 0.0,
    )


def _ordered(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], len(item[0]), item[0]))


def _are_classes(counts: Counter[str], of_floats: bool) -> bool:
    whole = all(_whole(label) is not None for label in counts)
    if of_floats:
        return whole and len(counts) <= FEW_VALUES
    return len(counts) <= max(MANY * counts.total(), 2)


def _whole(label: str) -> int | None:
    try:
        return int(label)
    except ValueError:
        return None


def _missing(counts: Counter[str]) -> tuple[int, ...]:
    numbers = [_whole(label) for label in counts]
    known = {n for n in numbers if n is not None and n >= 0}
    if len(known) != len(numbers) or len(known) < 2 or max(known) >= 4 * len(known):
        return ()
    return tuple(n for n in range(min(known), max(known)) if n not in known)


def _values(field: str, given: Mapping[int, str]) -> LabelSurvey:
    """Targets that are numbers: only their order is reported."""
    try:
        values = {i: float(v) for i, v in given.items()}
    except ValueError:
        return LabelSurvey(field, "value", len(given))
    pairs = [(values[i], values[i + 1]) for i in sorted(values) if i + 1 in values]
    columns = np.array(pairs, dtype=np.float64).T if len(pairs) > 2 else np.zeros((2, 0))
    ok = columns.size > 0 and np.isfinite(columns).all() and (columns.std(axis=1) > 0).all()
    trend = float(np.corrcoef(columns)[0, 1]) if ok else 0.0
    return LabelSurvey(field, "value", len(given), neighbours=len(pairs), trend=trend)


def order(
    sampler: str, shuffled: bool, batches: Sequence[Sequence[int]], given: Mapping[int, str], size: int
) -> SampleOrder:
    """How the classes are ordered in the first batches of an epoch."""
    known = [[given[i] for i in batch if i in given] for batch in batches]
    full = [labels for labels in known if len(labels) >= 2]
    drawn = Counter(label for labels in full for label in labels)
    top, count = drawn.most_common(1)[0] if drawn else ("", 0)
    switches = [np.mean([a != b for a, b in pairwise(row)]) for row in full]
    firsts = [labels[0] for labels in full]
    runs = [a == b for a, b in pairwise(firsts)]
    return SampleOrder(
        sampler=sampler,
        shuffled=shuffled,
        batches=len(full),
        batch_size=size,
        single=sum(len(set(labels)) == 1 for labels in full),
        switches=float(np.median(switches)) if switches else 0.0,
        runs=float(np.mean(runs)) if runs else 0.0,
        top_share=count / drawn.total() if drawn else 0.0,
        top=top,
        dominant_share=float(np.median([Counter(row).most_common(1)[0][1] / len(row) for row in full]))
        if full
        else 0.0,
    )
