"""Hashes a sample's content, and sketches it in a few bytes so that near copies can be found.

Hashes and sketches are all that is kept of a sample, so that a pass over any dataset stays small.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.labs.loaders.field_values import Array, Leaf

SIDE = 16  # side of the thumbnail that represents an image
FEATURES = 128  # numbers that represent a longer vector
SHINGLE = 3  # tokens or words in a row
HASHES = 64  # smallest hashes of shingles that represent a text
MOST_RUNS = 1 << 14  # shingles of a text
LARGEST = 1 << 16  # values of a sample that are sketched, evenly spaced

Floats = npt.NDArray[np.float32]


def hash_content(leaves: Iterable[Leaf]) -> bytes:
    """A hash of the contents of these fields, with their shapes and dtypes."""
    digest = hashlib.blake2b(digest_size=16)
    for leaf in leaves:
        digest.update(f"{leaf.kind}{leaf.dtype}{leaf.shape};".encode())
        if leaf.array is not None:
            digest.update(np.ascontiguousarray(leaf.array).tobytes())
        elif leaf.text is not None:
            digest.update(leaf.text if isinstance(leaf.text, bytes) else leaf.text.encode("utf-8", "replace"))
    return digest.digest()


def sketch(leaf: Leaf) -> tuple[str, npt.NDArray[Any]] | None:
    """How the field is compared ("picture", "features", "shingles"), and its sketch; None: not at all."""
    if leaf.text is not None:
        words = leaf.text.split() if isinstance(leaf.text, str) else list(leaf.text)
        return _shingles([hash_of(word) for word in words])
    if leaf.array is None or leaf.array.size == 0:
        return None
    if leaf.kind == "tokens":
        return _shingles(leaf.array.reshape(-1).astype(np.uint64).tolist())
    if leaf.kind == "image":
        return "picture", thumbnail(leaf.array)
    return ("features", _features(leaf.array)) if leaf.array.size > 1 else None


def hash_of(word: Any) -> int:
    """Equal in every process, unlike Python's own hash."""
    return int.from_bytes(
        hashlib.blake2b(str(word).encode("utf-8", "replace"), digest_size=8).digest(), "little"
    )


def thumbnail(picture: Array) -> Floats:
    """16 × 16 grey values, each the mean of its part of the image."""
    grey = picture
    if picture.ndim == 3:
        grey = picture.mean(axis=0 if picture.shape[0] in (1, 3, 4) else 2)
    rows = _pooled(np.nan_to_num(grey.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0), 0)
    return _pooled(rows, 1).reshape(-1)


def _pooled(plane: Floats, axis: int) -> Floats:
    """At most 16 rows (or columns), each the mean of those it covers."""
    size = plane.shape[axis]
    if size <= SIDE:
        return plane
    starts = np.arange(SIDE) * size // SIDE
    counts = np.diff(np.append(starts, size)).astype(np.float32)
    sums = np.add.reduceat(plane, starts, axis=axis)
    counts = counts[:, None] if axis == 0 else counts[None, :]
    return (sums / counts).astype(np.float32)


def _features(array: Array) -> Floats:
    """The values of a short vector; of a long one, its projections on random directions."""
    flat = array.reshape(-1)
    flat = flat[:: -(-flat.size // LARGEST)]
    values = np.nan_to_num(flat.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    if values.size <= 2 * FEATURES:
        return values
    projected: Floats = _signs()[:, : values.size].astype(np.float32) @ values
    return projected


@lru_cache(maxsize=1)
def _signs() -> npt.NDArray[np.int8]:
    """Directions of ones and minus ones, from Clew's own generator: the same for all, so that a waveform
    with silence at its end stays the same."""
    drawn = np.random.Generator(np.random.PCG64(5)).integers(0, 2, (FEATURES, LARGEST), dtype=np.int8)
    return (2 * drawn - 1).astype(np.int8)


def _shingles(words: list[int]) -> tuple[str, npt.NDArray[np.uint64]] | None:
    """The smallest hash of all runs of three words, under 64 orders (MinHash: Broder, 1997)."""
    if len(words) < 2 * SHINGLE:
        return None
    tokens = np.array(words[:MOST_RUNS], dtype=np.uint64)
    with np.errstate(over="ignore"):
        runs = sum(
            (_mixed(tokens[n : len(tokens) - SHINGLE + 1 + n] + np.uint64(n)) for n in range(SHINGLE)),
            np.zeros(len(tokens) - SHINGLE + 1, np.uint64),
        )
        runs = np.unique(runs)
        smallest: npt.NDArray[np.uint64] = _mixed(runs[None, :] ^ _ORDERS[:, None]).min(axis=1)
    return "shingles", smallest


def _mixed(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """splitmix64: every bit depends on every other."""
    with np.errstate(over="ignore"):
        z = (z + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: npt.NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed


_ORDERS = _mixed(np.arange(HASHES, dtype=np.uint64))
