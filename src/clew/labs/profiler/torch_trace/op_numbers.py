"""The inputs of an op and its minimal work: shapes, arguments, operations, bytes."""

from __future__ import annotations

import math
from typing import Any

SIZES = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "long int": 8, "long": 8, "int": 4,
    "short": 2, "signed char": 1, "unsigned char": 1, "bool": 1, "c10::complex<float>": 8,
    "c10::complex<double>": 16,
}  # fmt: skip
MOST_SHAPES = 8  # of one op that are written out
LONGEST = 120  # characters of the arguments

# They give another view of memory, or memory without content: nothing is read or written.
_VIEWS = {
    "t", "transpose", "view", "reshape", "_reshape_alias", "as_strided", "expand", "permute", "select",
    "slice", "squeeze", "unsqueeze", "detach", "detach_", "alias", "numpy_T", "unbind", "split", "chunk",
    "narrow", "flatten", "unflatten", "resolve_conj", "resolve_neg", "empty", "empty_like",
    "empty_strided", "new_empty", "resize_", "result_type", "is_nonzero", "item", "_local_scalar_dense",
    "view_as", "expand_as", "lift_fresh", "unsafe_view", "_unsafe_view", "set_", "size", "stride",
    "swapaxes", "movedim", "mT",
}  # fmt: skip
_REDUCTIONS = ("sum", "mean", "norm", "loss", "max", "min", "argmax", "any", "all", "dot", "var", "std")


def shapes_of(event: Any) -> str:
    """`[32, 64] [64, 10]`: of the tensors among the arguments."""
    listed = [_shape(shape) for shape in tensor_shapes(event)]
    more = ["…"] if len(listed) > MOST_SHAPES else []
    return " ".join(listed[:MOST_SHAPES] + more)


def tensor_shapes(event: Any) -> list[Any]:
    """Of each tensor, or list of tensors; what is no tensor has an empty shape and no size."""
    return [s for s, kind in zip(event.shapes(), event.dtypes(), strict=False) if kind in SIZES or _nested(s)]


def _nested(shape: Any) -> bool:
    return bool(shape) and isinstance(shape[0], (list, tuple))


def _shape(shape: Any) -> str:
    if _nested(shape):
        return f"{len(shape)} × {_shape(shape[0])}" if len(shape) > 1 else _shape(shape[0])
    return f"[{', '.join(str(n) for n in shape)}]"


def arguments_of(event: Any) -> str:
    """Those that are no tensors and not left out: `[1, 1], [0, 0], False, 1`."""
    given = [_text(value) for value in event.concrete_inputs() if value is not None and value != ""]
    text = ", ".join(given)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# -- bytes --


def moved_by(name: str, event: Any) -> float:
    """Bytes that the op itself reads and writes, if each is touched once."""
    if name.removeprefix("aten::") in _VIEWS:
        return 0.0
    sizes = tensor_sizes(event)
    if not sizes:
        return 0.0
    return sum(sizes) + _written(name, event, sizes)


def tensor_sizes(event: Any) -> list[float]:
    """Bytes of each tensor among the arguments."""
    sizes = []
    for shape, kind in zip(event.shapes(), event.dtypes(), strict=False):
        if _nested(shape):
            sizes += [4.0 * math.prod(one) for one in shape]  # torch does not say of which type
        elif kind in SIZES:
            sizes.append(float(SIZES[kind] * math.prod(shape)))
    return sizes


def _written(name: str, event: Any, sizes: list[float]) -> float:
    short = name.removeprefix("aten::")
    product = _product_shape(short, [list(s) for s in event.shapes() if not _nested(s)])
    if product is not None:
        return 4.0 * math.prod(product)
    if any(word in short for word in _REDUCTIONS) and "backward" not in short and "softmax" not in short:
        return 0.0
    return max(sizes)


def _product_shape(short: str, shapes: list[list[int]]) -> list[int] | None:
    """Of what a matrix product gives."""
    try:
        if short == "mm" and shapes[0] and shapes[1]:
            return [shapes[0][0], shapes[1][1]]
        if short == "addmm":
            return [shapes[1][0], shapes[2][1]]
        if short in ("bmm", "baddbmm"):
            a, b = (shapes[0], shapes[1]) if short == "bmm" else (shapes[1], shapes[2])
            return [a[0], a[1], b[2]]
        if short == "linear":
            return [*shapes[0][:-1], shapes[1][0]]
    except IndexError:
        return None
    return None


# -- operations --


def flops_of(name: str, event: Any) -> float:
    """As torch counts them (a product and a sum are two), and of attention, where it does not."""
    counted = event.flops()
    if counted:
        return float(counted)
    if name.startswith("aten::_scaled_dot_product") and not name.endswith("attention"):
        return _attention(event, backward=name.endswith("backward"))
    if name == "aten::mkldnn_rnn_layer":
        return _recurrent(event)
    return 0.0


def _attention(event: Any, backward: bool) -> float:
    shapes = [list(s) for s in event.shapes() if len(s) == 4 and not _nested(s)]
    first = 1 if backward else 0  # the gradient comes before query, key and value
    if len(shapes) < first + 3:
        return 0.0
    query, key = shapes[first], shapes[first + 1]
    forward = float(4 * math.prod(query) * key[2])
    return 2.5 * forward if backward else forward


def _recurrent(event: Any) -> float:
    """One layer of an LSTM or GRU: input [time, batch, in], weights [gates × hidden, in] and [.., hidden]."""
    shapes = [list(s) for s in event.shapes() if not _nested(s)]
    if len(shapes) < 3 or len(shapes[0]) != 3 or len(shapes[1]) != 2 or len(shapes[2]) != 2:
        return 0.0
    return float(2 * math.prod(shapes[0][:2]) * (math.prod(shapes[1]) + math.prod(shapes[2])))
