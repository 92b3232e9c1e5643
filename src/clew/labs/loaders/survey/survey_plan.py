"""Which samples of a dataset are read, and in which order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from torch.utils.data import default_collate

from clew.labs.loaders.pipeline import MAP, Pipeline
from clew.labs.loaders.survey.copied_samples import BLOCK

BATCHES = 64  # as the sampler puts them together, that are looked at
DELIVERED = 0.25  # of the samples, that are spent on them
FEWEST_BATCHES = 4  # unless these are all that may be read
LONG_BLOCK = 64  # samples read in a row where all are


def length_of(pipeline: Pipeline) -> int | None:
    try:
        return pipeline.length if pipeline.kind == MAP else None
    except Exception:  # noqa: BLE001 - the dataset's own
        return None


def first_batches(pipeline: Pipeline, limit: int) -> list[list[int]]:
    """Indices of the first batches of an epoch, as far as they are worth their reading."""
    found: list[list[int]] = []
    try:
        for batch in itertools.islice(pipeline.indices(), BATCHES):
            found.append([int(i) for i in batch])
            read = sum(map(len, found))
            if read >= limit or (read >= DELIVERED * limit and len(found) >= FEWEST_BATCHES):
                break
    except Exception:  # noqa: BLE001 - a sampler of the user's own, or indices that are no numbers
        return found
    return found


def spread(total: int, count: int) -> list[int]:
    """So many indices, evenly spaced."""
    return sorted({int(n) for n in np.linspace(0, total - 1, min(count, total))}) if total > 0 else []


def plan(total: int, limit: int | None, batches: Sequence[Sequence[int]]) -> list[int]:
    """Indices to read: blocks in a random order, and what the sampler draws first."""
    drawn = np.random.Generator(np.random.PCG64(11))
    if limit is None or total <= limit:
        blocks = [range(n, min(n + LONG_BLOCK, total)) for n in range(0, total, LONG_BLOCK)]
    else:
        count = max(limit // BLOCK, 1)
        edges = np.linspace(0, total - BLOCK, count + 1)
        starts = [int(a + drawn.random() * (b - a)) for a, b in itertools.pairwise(edges)]
        blocks = [range(start, start + BLOCK) for start in starts]
    first = [i for batch in batches for i in batch if 0 <= i < total]
    order = drawn.permutation(len(blocks))
    return list(dict.fromkeys([*first, *(i for n in order for i in blocks[n])]))


def is_stacked(pipeline: Pipeline) -> bool:
    return pipeline.collate is default_collate and (pipeline.batch_size or 1) > 1
