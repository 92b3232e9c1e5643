"""What torch functions expect of their operands: `torch.cat`, `@`, `x.view`, …

Where no line names the operands, torch's own error message says what was expected and given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from torch import Tensor

from clew.labs.network.shape_errors.mismatch import Mismatch, shape_text, sizes_text
from clew.records.plural import counted


@dataclass(frozen=True)
class Operand:
    """Its name on the line, and its value; None if not known without evaluating."""

    name: str
    value: Any

    @property
    def text(self) -> str:
        return f"{self.name} {shape_text(self.value)}"


Rule = Callable[[list[Operand], dict[str, Any]], Mismatch | None]


def _tensors(operands: Sequence[Operand]) -> list[Operand]:
    return [o for o in operands if isinstance(o.value, Tensor)]


def _listed(operands: Sequence[Operand]) -> str:
    return ", ".join(o.text for o in operands)


def _first_two(operands: Sequence[Operand]) -> tuple[Operand, Operand] | None:
    """None if one of them is not known to be a tensor."""
    pair = _tensors(operands[:2])
    return (pair[0], pair[1]) if len(pair) == 2 else None


def _device(left: Operand, right: Operand) -> Mismatch | None:
    a, b = left.value, right.value
    if a.device == b.device or not a.dim() or not b.dim():
        return None
    return Mismatch(
        "device",
        "both on the same device",
        f"{left.name} on {a.device}, {right.name} on {b.device}",
        "" if "meta" in (a.device.type, b.device.type) else _move(left, right),
    )


def _move(left: Operand, right: Operand) -> str:
    return f"move one of them: {right.name} = {right.name}.to({left.name}.device)"


def broadcast_clash(a: Sequence[int], b: Sequence[int]) -> tuple[int, int, int] | None:
    """The first dimension, from the last, in which two shapes do not broadcast, and the sizes."""
    for back, (x, y) in enumerate(zip(reversed(a), reversed(b), strict=False), 1):
        if x != y and 1 not in (x, y):
            return back, x, y
    return None


def elementwise(operands: list[Operand], keywords: dict[str, Any]) -> Mismatch | None:
    """Shapes that do not broadcast."""
    pair = _first_two(operands)
    if pair is None:
        return None
    wrong = _device(*pair)
    clash = broadcast_clash(pair[0].value.shape, pair[1].value.shape)
    if wrong is not None or clash is None:
        return wrong
    back, a, b = clash
    return Mismatch(
        "shape",
        "sizes that are equal, or 1, counted from the last dimension",
        _listed(pair),
        f"they differ in dimension -{back}: {a} against {b}",
    )


def matmul(operands: list[Operand], keywords: dict[str, Any]) -> Mismatch | None:
    """The last size of the first against the second-to-last of the second; batch dimensions broadcast."""
    pair = _first_two(operands)
    if pair is None or not all(o.value.dim() for o in pair):
        return None
    wrong = _device(*pair)
    if wrong is not None:
        return wrong
    (left, a), (right, b) = ((o.name, o.value) for o in pair)
    inner = b.shape[-2] if b.dim() > 1 else b.shape[0]
    if a.shape[-1] != inner:
        fix = "the inner sizes must be equal"
        if b.dim() > 1 and a.shape[-1] == b.shape[-1] and not broadcast_clash(a.shape[:-2], b.shape[:-2]):
            fix = f"transpose the second: {right}.transpose(-2, -1)"
        return Mismatch("shape", f"… × {a.shape[-1]} @ {a.shape[-1]} × …", _listed(pair), fix)
    clash = broadcast_clash(a.shape[:-2], b.shape[:-2])
    if clash is None:
        return None
    text = f"{left} has {counted(clash[1], 'matrix', 'matrices')} there, {right} has {clash[2]}"
    return Mismatch("shape", f"equal sizes, or 1, in dimension -{clash[0] + 2}", _listed(pair), text)


def _mm(operands: list[Operand], keywords: dict[str, Any]) -> Mismatch | None:
    return _of_rank(2, "n × m, m × p", operands) or matmul(operands, keywords)


def _bmm(operands: list[Operand], keywords: dict[str, Any]) -> Mismatch | None:
    wrong = _of_rank(3, "batch × n × m, batch × m × p", operands)
    pair = _first_two(operands)
    if wrong is not None or pair is None:
        return wrong
    if pair[0].value.shape[0] == pair[1].value.shape[0]:
        return matmul(operands, keywords)
    a, b = (o.value.shape[0] for o in pair)
    text = "bmm does not broadcast its batches" + (": @ does" if 1 in (a, b) else "")
    return Mismatch("shape", f"the same batch in both: {a}", _listed(pair), text)


def _of_rank(rank: int, expected: str, operands: list[Operand]) -> Mismatch | None:
    pair = _first_two(operands)
    if pair is None or all(o.value.dim() == rank for o in pair):
        return None
    fits = all(o.value.dim() for o in pair) and matmul(list(pair), {}) is None
    text = f"both must have {rank} dimensions"
    if fits:
        text += f"; {pair[0].name} @ {pair[1].name} takes any number of dimensions"
    return Mismatch("shape", expected, _listed(pair), text)


def _cat(operands: list[Operand], keywords: dict[str, Any]) -> Mismatch | None:
    tensors = _tensors(operands)
    others = [o.value for o in operands if not isinstance(o.value, Tensor)]
    dim = keywords.get("dim", keywords.get("axis", others[0] if others else 0))
    if len(tensors) < 2 or len(others) > 1 or type(dim) is not int:
        return None
    first = tensors[0]
    rank = first.value.dim()
    if any(o.value.dim() != rank for o in tensors):
        text = "they must have the same number of dimensions"
        expected = f"{counted(rank, 'dimension')}, as {first.name} has"
        return Mismatch("shape", expected, _listed(tensors), text)
    if not -rank <= dim < rank:
        return None  # torch says it well
    for other in tensors[1:]:
        found = _cat_pair(first, other, dim % rank, alone=len(tensors) == 2)
        if found is not None:
            return found
    return None


def _cat_pair(first: Operand, other: Operand, dim: int, alone: bool) -> Mismatch | None:
    sizes = list(zip(first.value.shape, other.value.shape, strict=True))
    differ = [n for n, (a, b) in enumerate(sizes) if a != b]
    wrong = [n for n in differ if n != dim]
    if not wrong:
        return None
    text = "they differ in " + ", ".join(f"dimension {n}: {sizes[n][0]} against {sizes[n][1]}" for n in wrong)
    if alone and len(differ) == 1:
        text += f"; they can be joined along that one: dim={wrong[0]}"
    return Mismatch("shape", f"equal sizes except in dimension {dim}", _listed((first, other)), text)


def _stack(operands: list[Operand], keywords: dict[str, Any]) -> Mismatch | None:
    tensors = _tensors(operands)
    for one, other in pairwise(tensors):
        if one.value.shape != other.value.shape:
            text = "stack adds a new dimension, so all others must be equal"
            return Mismatch("shape", "tensors of the same shape", _listed((one, other)), text)
    return None


def _view(operands: list[Operand], keywords: dict[str, Any]) -> Mismatch | None:
    """The number of elements must stay the same."""
    if not operands or not isinstance(operands[0].value, Tensor):
        return None
    x, sizes = operands[0].value, [o.value for o in operands[1:]]
    if not sizes or any(type(s) is not int for s in sizes):
        return None
    return view_mismatch(sizes, x.numel(), x)


def view_mismatch(sizes: Sequence[int], elements: int, x: Tensor | None = None) -> Mismatch | None:
    """A shape that does not have this many elements."""
    fixed = prod(s for s in sizes if s != -1)
    given = counted(elements, "element")
    if x is not None:
        given = f"{shape_text(x)}, {given}"
    if -1 in sizes:
        if not fixed or elements % fixed == 0:
            return None
        text = f"{elements} is not a multiple of {fixed}"
        if x is not None and x.dim() > 1 and len(sizes) == 2 and sizes[0] == -1:
            rows = sizes_text((x.shape[0], elements // x.shape[0])) if x.shape[0] else ""
            text += f"; x.flatten(1), one row per sample, gives {rows}" if rows else ""
        return Mismatch("shape", f"a multiple of {counted(fixed, 'element')}", given, text)
    if fixed == elements:
        return None
    return Mismatch("shape", f"{counted(fixed, 'element')} for {sizes_text(sizes)}", given)


def _attention(operands: list[Operand], keywords: dict[str, Any]) -> Mismatch | None:
    """Queries against keys, keys against values."""
    known = [*operands, *(Operand(k, keywords[k]) for k in ("query", "key", "value") if k in keywords)]
    if len(_tensors(known[:3])) < 3 or any(o.value.dim() < 2 for o in known[:3]):
        return None
    query, key, value = known[:3]
    q, k, v = query.value.shape, key.value.shape, value.value.shape
    if q[-1] != k[-1]:
        text = f"queries and keys must have the same last size: {q[-1]} against {k[-1]}"
        return Mismatch("shape", f"keys of … × {q[-1]}", _listed((query, key)), text)
    if k[-2] != v[-2]:
        text = f"each key needs one value: {counted(k[-2], 'key')}, {counted(v[-2], 'value')}"
        return Mismatch("shape", f"values of … × {k[-2]} × …", _listed((key, value)), text)
    mask = keywords.get("attn_mask", known[3].value if len(known) > 3 else None)
    if isinstance(mask, Tensor) and broadcast_clash(mask.shape, (q[-2], k[-2])) is not None:
        text = "the mask needs one row per query and one column per key"
        return Mismatch("shape", f"a mask of … × {q[-2]} × {k[-2]}", shape_text(mask), text)
    clash = broadcast_clash(q[:-2], k[:-2])
    if clash is None:
        return None
    text = f"they differ in dimension -{clash[0] + 2}: {clash[1]} against {clash[2]}"
    return Mismatch("shape", "the same batch and heads", _listed((query, key)), text)


_BROADCASTING = ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "pow")
_COMPARING = ("eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum", "logical_and", "logical_or")
RULES: dict[str, Rule] = {
    **dict.fromkeys(("cat", "concat", "concatenate"), _cat),
    "stack": _stack,
    "bmm": _bmm,
    "mm": _mm,
    "matmul": matmul,
    **dict.fromkeys(("view", "reshape"), _view),
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys((*_BROADCASTING, *(f"{n}_" for n in _BROADCASTING), *_COMPARING), elementwise),
}


# -- torch's own messages --

Found = re.Match[str]


def message_mismatch(error: BaseException) -> Mismatch | None:
    """Torch's message in Clew's words; None for an unknown message."""
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
    return Mismatch("shape", f"{counted(int(found[1]), 'dimension')}, like the first", found[2])


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
