"""Peak performance of this machine: a matrix product and a copy, measured once and cached.

Run after training has ended, on tensors of its own. No random numbers are drawn.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from clew.records.step_costs import Roof

WIDTH = 512  # of the matrices: large enough to be at the limit, small enough to be quick
FLOATS = 1 << 22  # of the tensor that is copied: larger than the caches it is read through
SECONDS = 0.1  # for each of the two


def roof(cache: Path | None = None) -> Roof:
    """Of this machine with as many threads as are in use now."""
    threads = torch.get_num_threads()
    key = f"{platform.node()} {os.cpu_count()} {torch.__version__} {threads}"
    known = _read(cache).get(key) if cache is not None else None
    if isinstance(known, list) and len(known) == 2 and all(isinstance(v, (int, float)) for v in known):
        return Roof(float(known[0]), float(known[1]), threads)
    found = measure(threads)
    if cache is not None:
        _write(cache, {**_read(cache), key: [found.flops, found.bytes]})
    return found


def measure(threads: int) -> Roof:
    """The best of some repetitions: others may use the machine, and never make it faster."""
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
    """A cache that can't be written is measured again next time."""
    partial = cache.with_name(f".{cache.name}.{os.getpid()}.partial")
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(data), encoding="utf-8")
        partial.replace(cache)
    except OSError:
        partial.unlink(missing_ok=True)


def share(flops: float, moved: float, seconds: float, best: Roof | None) -> float | None:
    """Of the best: how long the work must take at least, over how long it took."""
    if best is None or seconds <= 0 or (not flops and not moved):
        return None
    least = max(flops / best.flops, moved / best.bytes)
    return min(least / seconds, 1.0)
