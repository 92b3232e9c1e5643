"""Decodes token ids with a tokenizer or vocabulary found in the dataset, collate or the script."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.labs.snapshot.dataset_stages import datasets_in

if TYPE_CHECKING:
    from clew.labs.loaders.readable_loader import ReadableLoader

TO_WORDS = (
    "itos", "idx_to_word", "idx2word", "id2word", "id_to_word", "index_to_word", "i2w", "idx_to_token",
    "id2token", "id_to_token", "int_to_char", "idx_to_char", "idx2char", "itoc", "int2char",
)  # fmt: skip
TO_NUMBERS = (
    "stoi", "word_to_idx", "word2idx", "word2id", "word_to_id", "word_to_ix", "w2i", "token_to_idx",
    "token2id", "char_to_int", "char_to_idx", "char2idx", "ctoi", "vocab",
)  # fmt: skip
METHODS = ("decode", "convert_ids_to_tokens", "lookup_tokens", "ids_to_tokens")
HOLDERS = ("tokenizer", "processor", "vocab", "vocabulary", "encoder", "dictionary", "codec")
CLASSES = ("classes", "class_names", "categories", "label_names", "id2label", "idx_to_class", "labels_map")
UNKNOWN = "?"

Decode = Callable[[list[int]], str]


class TokenDecoder:
    """What is available to decode a loader's ids; nothing is imported or created."""

    def __init__(self, readable: ReadableLoader) -> None:
        self._owners = list(_owners(readable))
        self._scope = readable.scope
        self._decodes = list(self._found())

    def text(self, numbers: Sequence[int]) -> str | None:
        """As words; None if nothing here can decode these ids."""
        for decode in self._decodes:
            try:
                text = decode(list(numbers))
            except Exception:  # noqa: BLE001 - the user's tokenizer may refuse in any way; another may do
                continue
            if isinstance(text, str) and text.strip():
                return text
        return None

    def class_name(self, number: Any) -> str:
        """The name of a class, if the dataset has it."""
        if isinstance(number, float) and not number.is_integer():
            return ""
        for names in self.attributes(CLASSES):
            if isinstance(names, (list, tuple)) and 0 <= int(number) < len(names):
                return str(names[int(number)])[:40]
            if isinstance(names, Mapping) and int(number) in names:
                return str(names[int(number)])[:40]
        return ""

    def attributes(self, names: Iterable[str]) -> Iterator[Any]:
        """Attributes of the datasets and of the objects that build the batches."""
        for owner in self._owners:
            own = getattr(owner, "__dict__", {})
            for name in names:
                if name in own or name in vars(type(owner)):
                    yield getattr(owner, name, None)

    def _found(self) -> Iterator[Decode]:
        for owner in self._owners:
            yield from _decodes_of(owner)
            for value in _attributes_of(owner, HOLDERS + METHODS + TO_WORDS + TO_NUMBERS):
                yield from _decodes_of(value)
        for name, value in self._scope.items():
            if name == "decode" and callable(value):
                yield functools.partial(_by_method, value)
            elif name.lower() in TO_WORDS + TO_NUMBERS + HOLDERS:
                yield from _decodes_of(value)


def _decodes_of(thing: Any) -> Iterator[Decode]:
    """Ways in which this object can decode ids."""
    if thing is None or isinstance(thing, (str, bytes, type)):
        return
    for name in METHODS:
        method = getattr(thing, name, None)
        if callable(method):
            yield functools.partial(_by_method, method)
    table = _table(thing)
    if table is not None:
        yield functools.partial(_by_table, table)
    for name in TO_WORDS + TO_NUMBERS:
        inner = getattr(thing, name, None)
        inner_table = _table(inner) if inner is not None and not callable(inner) else None
        if inner_table is not None:
            yield functools.partial(_by_table, inner_table)


def _by_method(method: Any, numbers: list[int]) -> str:
    words = method(numbers)
    return words if isinstance(words, str) else " ".join(str(w) for w in words)


def _by_table(table: Mapping[int, str], numbers: list[int]) -> str:
    known = [n for n in numbers if n in table]
    if len(known) < 0.9 * len(numbers):
        raise KeyError("these are not token ids")
    words = [table.get(n, UNKNOWN) for n in numbers]
    letters = all(len(word) == 1 for word in table.values())
    return ("" if letters else " ").join(words)


def _table(thing: Any) -> Mapping[int, str] | None:
    """From id to word, in whichever direction it is stored."""
    if isinstance(thing, (list, tuple)) and thing and all(isinstance(w, str) for w in thing[:1000]):
        return dict(enumerate(thing))
    if not isinstance(thing, Mapping) or not thing:
        return None
    key, value = next(iter(thing.items()))
    if isinstance(key, (int, np.integer)) and isinstance(value, str):
        return {int(k): str(v) for k, v in thing.items()}
    if isinstance(key, str) and isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return {int(v): k for k, v in thing.items() if isinstance(v, (int, np.integer))}
    return None


def _attributes_of(owner: Any, names: Iterable[str]) -> Iterator[Any]:
    own = getattr(owner, "__dict__", None)
    if isinstance(own, dict):
        yield from (own[name] for name in names if name in own)


def _owners(readable: ReadableLoader) -> Iterator[Any]:
    """Datasets, and the objects a collate function refers to."""
    yield from (dataset for dataset, _ in datasets_in(readable.dataset))
    collate = readable.collate
    if isinstance(collate, functools.partial):
        yield from (*collate.args, *collate.keywords.values())
        collate = collate.func
    yield from (one for one in (collate, getattr(collate, "__self__", None)) if one is not None)
    for cell in getattr(collate, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
