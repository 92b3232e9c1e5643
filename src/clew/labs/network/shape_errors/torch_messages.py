"""Parses torch's own error message into expected and given, for operands that no line names."""

from __future__ import annotations

import re
from collections.abc import Callable

from clew.labs.network.shape_errors.call_expectations import view_mismatch
from clew.labs.network.shape_errors.mismatch import Mismatch, sizes_text

Found = re.Match[str]


def message_mismatch(error: BaseException) -> Mismatch | None:
    """What torch says, in Clew's words; None for a message that is not known."""
    text = str(error)
    for pattern, read in _MESSAGES:
        found = re.search(pattern, text)
        if found is not None:
            return read(found)
    return None


def _product(found: Found) -> Mismatch:
    n, m, k, p = found.groups()
    text = f"the inner sizes must be equal: {m} against {k}"
    return Mismatch("shape", f"… × {m} @ {m} × …", f"{n}×{m} @ {k}×{p}", text)


def _broadcast(found: Found) -> Mismatch:
    a, b, dim = found.groups()
    return Mismatch("shape", f"equal sizes, or 1, in dimension {dim}", f"{a} against {b}")


def _joined(found: Found) -> Mismatch:
    dim, wanted, got, number = found.groups()
    return Mismatch("shape", f"size {wanted}, equal except in dimension {dim}", f"{got} in tensor {number}")


def _ranks(found: Found) -> Mismatch:
    return Mismatch("shape", f"{found[1]} dimensions, like the first", found[2])


def _stacked(found: Found) -> Mismatch:
    first, other, number = found[1], found[2], found[3]
    return Mismatch("shape", f"{_sizes(first)}, like the first", f"{_sizes(other)} at index {number}")


def _batches(found: Found) -> Mismatch:
    return Mismatch("shape", f"{_sizes(found[1])} × …", f"{_sizes(found[2])} × … as the second operand")


def _viewed(found: Found) -> Mismatch | None:
    return view_mismatch([int(s) for s in re.findall(r"-?\d+", found[1])], int(found[2]))


def _expanded(found: Found) -> Mismatch:
    expected = f"{found[2]}, or a size of 1, in dimension {found[3]}"
    return Mismatch("shape", expected, f"a requested size of {found[1]}")


def _strided(found: Found) -> Mismatch:
    text = (
        "a transposed tensor can't be viewed in another shape without a copy: use .reshape(…) "
        "instead of .view(…)"
    )
    return Mismatch("shape", "contiguous memory", "a transposed or sliced tensor", text)


def _place(found: Found) -> Mismatch:
    index, dim, size = found.groups()
    return Mismatch("index", f"an index from 0 to {int(size) - 1} in dimension {dim}", index)


def _dimension(found: Found) -> Mismatch:
    low, high, got = found.groups()
    return Mismatch("shape", f"a dimension from {low} to {high}", got)


def _split(found: Found) -> Mismatch:
    return Mismatch(
        "shape", f"parts that add up to {found[1]}", f"parts of {_sizes(found[2]).replace('×', ', ')}"
    )


def _sizes(text: str) -> str:
    return sizes_text(int(s) for s in re.findall(r"\d+", text))


_MESSAGES: tuple[tuple[str, Callable[[Found], Mismatch | None]], ...] = (
    (r"shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", _product),
    (
        r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at .*dimension (\d+)",
        _broadcast,
    ),
    (r"except in dimension (\d+)\. Expected size (\d+) but got size (\d+) for tensor number (\d+)", _joined),
    (r"must have same number of dimensions: got (\d+) and (\d+)", _ranks),
    (r"stack expects each .*got (\[.*?\]) at entry 0 and (\[.*?\]) at entry (\d+)", _stacked),
    (r"first two dimensions of batch2 tensor to be: (\[.*?\]) but got: (\[.*?\])", _batches),
    (r"shape '(\[.*?\])' is invalid for input of size (\d+)", _viewed),
    (
        r"expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\) at .*dimension (\d+)",
        _expanded,
    ),
    (r"view size is not compatible with input tensor's size and stride", _strided),
    (r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)", _place),
    (r"expected to be in range of \[(-?\d+), (-?\d+)\], but got (-?\d+)", _dimension),
    (r"split_sizes to sum exactly to (\d+) .*split_sizes=(\[.*?\])", _split),
)
