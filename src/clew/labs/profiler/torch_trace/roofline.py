"""The roofline: how much work an op does at least, and how fast this machine could do it.

The peak performance of the machine (a matrix product and a copy) is measured once and cached. That
runs after training has ended, on its own tensors, and draws no random numbers.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from clew.records.step_costs import Roof

SIZES = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "long int": 8, "long": 8, "int": 4,
    "short": 2, "signed char": 1, "unsigned char": 1, "bool": 1, "c10::complex<float>": 8,
    "c10::complex<double>": 16,
}  # fmt: skip
MOST_SHAPES = 8  # of one op that are written out
LONGEST = 120  # characters of the arguments

# They return another view of memory, or uninitialised memory: nothing is read or written.
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
    """`[32, 64] [64, 10]`: the shapes of the tensors, and lists of tensors, among the arguments."""
    given = zip(event.shapes(), event.dtypes(), strict=False)  # anything but tensors has an empty shape
    listed = [_shape(shape) for shape, kind in given if kind in SIZES or _nested(shape)]
    more = ["…"] if len(listed) > MOST_SHAPES else []
    return " ".join(listed[:MOST_SHAPES] + more)


def _nested(shape: Any) -> bool:
    return bool(shape) and isinstance(shape[0], (list, tuple))


def _shape(shape: Any) -> str:
    if _nested(shape):
        return f"{len(shape)} × {_shape(shape[0])}" if len(shape) > 1 else _shape(shape[0])
    return f"[{', '.join(str(n) for n in shape)}]"


def arguments_of(event: Any) -> str:
    """The arguments that are not tensors and not omitted: `[1, 1], [0, 0], False, 1`."""
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
    sizes = _tensor_sizes(event)
    if not sizes:
        return 0.0
    return sum(sizes) + _written(name, event, sizes)


def _tensor_sizes(event: Any) -> list[float]:
    """Bytes of each tensor among the arguments."""
    sizes = []
    for shape, kind in zip(event.shapes(), event.dtypes(), strict=False):
        if _nested(shape):
            sizes += [4.0 * math.prod(one) for one in shape]  # torch does not report the dtype
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
    """The shape of a matrix product."""
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
    """As torch counts them (a multiply-add is two), and for attention, which it does not count."""
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


WIDTH = 512  # of the matrices: large enough to reach the limit, small enough to be quick
FLOATS = 1 << 22  # of the tensor that is copied: larger than the caches it is read through
SECONDS = 0.1  # for each of the two


def roof(cache: Path | None = None) -> Roof:
    """The peak performance of this machine with the current number of threads."""
    threads = torch.get_num_threads()
    key = f"{platform.node()} {os.cpu_count()} {torch.__version__} {threads}"
    known = _read(cache).get(key) if cache is not None else None
    if isinstance(known, list) and len(known) == 2 and all(isinstance(v, (int, float)) for v in known):
        return Roof(float(known[0]), float(known[1]), threads)
    found = measure(threads)
    if cache is not None:
        _write(cache, {**_read(cache), key: [found.flops, found.bytes]})
    return found


def available_cores() -> int:
    """The cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on every system
        return os.cpu_count() or 1


def measure(threads: int) -> Roof:
    """The best of several repetitions: other processes can only make it slower."""
    with torch.no_grad():
        left = torch.ones(WIDTH, WIDTH)
        right, product = torch.ones(WIDTH, WIDTH), torch.empty(WIDTH, WIDTH)
        source, target = torch.ones(FLOATS), torch.empty(FLOATS)
        matrices = _best(lambda: torch.mm(left, right, out=product))
        copies = _best(lambda: target.copy_(source))
    return Roof(2.0 * WIDTH**3 / matrices, 2.0 * FLOATS * 4 / copies, threads)


def _best(work: Callable[[], Any]) -> float:
    work()
    best, ends = float("inf"), perf_counter() + SECONDS
    while True:
        began = perf_counter()
        work()
        best = min(best, perf_counter() - began)
        if perf_counter() >= ends:
            return max(best, 1e-9)


def _read(cache: Path) -> dict[str, Any]:
    try:
        data = json.loads(cache.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _write(cache: Path, data: dict[str, Any]) -> None:
    """If the cache can't be written, the next run measures again."""
    partial = cache.with_name(f".{cache.name}.{os.getpid()}.partial")
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(data), encoding="utf-8")
        partial.replace(cache)
    except OSError:
        partial.unlink(missing_ok=True)


def share(flops: float, moved: float, seconds: float, best: Roof | None) -> float | None:
    """The share of the peak: the minimal time for the work, over the time it took."""
    if best is None or seconds <= 0 or (not flops and not moved):
        return None
    least = max(flops / best.flops, moved / best.bytes)
    return min(least / seconds, 1.0)
