"""The samples that a survey shows: a pair of copies, an outlier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from clew.labs.loaders.field_values import Leaf
from clew.labs.loaders.look.sample_reader import Reader
from clew.labs.loaders.survey.dataset_labels import label_of
from clew.labs.loaders.token_decoder import TokenDecoder
from clew.labs.snapshot.sample_exhibits import shown
from clew.records.dataset_survey import INPUT, LABEL, Between, DatasetSurvey, Duplicates
from clew.records.finding import Exhibit

MOST_OUTLIERS = 4
MOST_TEXT = 400  # characters


def exhibits_of(
    reader: Reader, survey: DatasetSurvey, roles: Mapping[str, str]
) -> tuple[dict[str, Any], ...]:
    """The exhibits of one split. Must be called inside `Pipeline.reading()`."""
    found: list[dict[str, Any]] = []
    for about, copies in (("exact", survey.exact), ("near", survey.near)):
        for pair in copies.pairs[:1]:
            both = (pair.first, pair.second) if about == "near" or copies.conflicting else (pair.first,)
            note = "" if len(both) == 2 else f"the same as sample {pair.second}"
            found += [e for index in both for e in _shown(reader, index, about, roles, note)]
    for outlier in survey.outliers[:MOST_OUTLIERS]:
        found += _shown(reader, outlier.index, "outlier", roles, outlier.why)
    return tuple(found)


def exhibits_between(
    made: Between, one: Reader | None, other: Reader | None, roles: Mapping[str, str]
) -> tuple[dict[str, Any], ...]:
    """The first pair of two splits."""
    if one is None or other is None:
        return ()
    found: list[dict[str, Any]] = []
    for about, copies in (("exact", made.exact), ("near", made.near)):
        found += _pair(made, copies, about, one, other, roles)
    return tuple(found)


def _pair(
    made: Between, copies: Duplicates, about: str, one: Reader, other: Reader, roles: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    for pair in copies.pairs[:1]:
        with one.pipeline.reading():
            yield from _shown(one, pair.first, about, roles, f"in {made.first}")
        with other.pipeline.reading():
            yield from _shown(other, pair.second, about, roles, f"in {made.second}")


def _shown(
    reader: Reader, index: int, about: str, roles: Mapping[str, str], note: str
) -> Iterator[dict[str, Any]]:
    try:
        leaves = reader.read_for_comparing(index) or reader.read(index)
    except Exception:  # noqa: BLE001 - the dataset's own; there is nothing to show then
        return
    inputs = [leaf for name, leaf in leaves.items() if roles.get(name, INPUT) == INPUT]
    main = max(inputs, key=lambda leaf: int(np.prod(leaf.shape)), default=None)
    label = label_of(next((leaf for name, leaf in leaves.items() if roles.get(name) == LABEL), None))
    drawn = _drawn(main, TokenDecoder(reader.pipeline)) if main is not None else None
    if drawn is None:
        return
    said = [f"sample {index}", f"labelled {label}" if label is not None else "", note]
    caption = ", ".join(part for part in said if part)
    yield {"about": about, "index": index, **Exhibit(drawn[0], caption, drawn[1]).to_json()}


def _drawn(leaf: Leaf, decoder: TokenDecoder) -> tuple[str, Any] | None:
    if leaf.text is not None:
        return "text", str(leaf.text)[:MOST_TEXT]
    if leaf.array is None or not leaf.array.size:
        return None
    if leaf.kind == "tokens":
        words = decoder.text([int(v) for v in leaf.array.reshape(-1)[:MOST_TEXT]])
        if words is not None:
            return "text", words[:MOST_TEXT]
    return shown(torch.from_numpy(np.array(leaf.array)))
