"""A large run, as Clew's log and as TensorBoard's event files: the same numbers in both.

Eight points in ten are from signals of every step (loss, gradient norm, times, …); the others are
statistics of twenty layers at sampled steps.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.records.site import Site
from clew.store.read.run_folders import create_run, rank_folder
from clew.store.write.frames import MAGIC, encode_json, joined
from clew.store.write.row_blocks import encode_block

Floats = npt.NDArray[np.float64]

EVERY_STEP = ("loss", "grad.norm", "lr", "wall", "step.time", "time.forward", "time.backward", "memory.rss")
STATISTICS = ("mean", "std", "min", "max", "norm", "zeros", "nonfinite")
PARAMETERS = tuple(f"{kind}.{s}" for kind in ("gradient", "weight", "update") for s in STATISTICS)
LAYERS = 20
BLOCK = 10_000  # rows written at once
SPIKE = 1e3  # one step of a million: a viewer that samples at random loses it


@dataclass(frozen=True)
class Table:
    """Rows of one shape: some signals at some sites."""

    signals: tuple[str, ...]
    sites: tuple[Site, ...]
    steps: npt.NDArray[np.int64]
    values: Floats  # steps × (sites × signals)
    dtype: str

    @property
    def points(self) -> int:
        return self.values.size


def tables(points: int) -> list[Table]:
    """About `points` numbers in all, always the same."""
    random = np.random.default_rng(0)
    steps = np.arange(max(points * 8 // 10 // len(EVERY_STEP), 100))
    rows = _every_step(steps, random)
    step_site = Site(op="backward", file="train.py", line=7, phase="train")
    samples = max(points * 2 // 10 // (LAYERS * len(PARAMETERS)), 10)
    sampled = np.unique(np.linspace(0, len(steps) - 1, samples).astype(np.int64))
    sites = tuple(
        Site(module=f"blocks.{n}", param="weight", root="net", phase="train") for n in range(LAYERS)
    )
    statistics = np.abs(random.lognormal(-4, 0.5, (len(sampled), LAYERS * len(PARAMETERS))))
    return [
        Table(EVERY_STEP, (step_site,), steps, rows, "f8"),
        Table(PARAMETERS, sites, sampled, statistics, "f4"),
    ]


def _every_step(steps: npt.NDArray[np.int64], random: np.random.Generator) -> Floats:
    share = steps / len(steps)
    noise = random.lognormal(0, 0.1, (len(steps), len(EVERY_STEP)))
    rows = np.empty((len(steps), len(EVERY_STEP)))
    rows[:, 0] = (0.1 + 2.2 * np.exp(-6 * share)) * noise[:, 0]
    rows[:, 1] = 0.5 * noise[:, 1]
    rows[:, 2] = 1e-3 * (1 - 0.9 * share)
    rows[:, 4:7] = np.array([0.02, 0.008, 0.01]) * noise[:, 4:7]
    rows[:, 3] = np.cumsum(rows[:, 4])
    rows[:, 7] = 2e9 + 1e8 * share
    rows[len(rows) * 7 // 10, 0] = SPIKE
    return rows


def write_clew(root: Path, made: list[Table]) -> Path:
    """The run folder, with the bytes that the writer would have written."""
    run = create_run(root, {"script": "train.py", "name": "large"})
    folder = rank_folder(run, 0)
    folder.mkdir()
    with open(folder / "events-000001.seg", "wb") as file:
        file.write(MAGIC + joined([_model()]))
        for number, table in enumerate(made):
            file.write(joined(_payloads(number, table)))
        last = int(made[0].steps[-1])
        end = {"t": "end", "state": "finished", "step": last, "wall": time.time(), "loss": 0.1}
        file.write(joined([encode_json(end)]))
    return run


def _model() -> bytes:
    modules = [{"path": f"blocks.{n}", "class": "Linear", "file": "net.py", "line": 9} for n in range(LAYERS)]
    parameters = [
        {
            "name": f"blocks.{n}.weight",
            "module": f"blocks.{n}",
            "param": "weight",
            "shape": [256, 256],
            "numel": 65536,
        }
        for n in range(LAYERS)
    ]
    data = {"root": "net", "class": "Net", "modules": modules, "parameters": parameters}
    return encode_json({"t": "fact", "kind": "model", "step": 0, "data": data})


def _payloads(number: int, table: Table) -> Iterator[bytes]:
    ids = [number * 1000 + n for n in range(len(table.sites))]
    for ident, site in zip(ids, table.sites, strict=True):
        yield encode_json({"t": "site", "id": ident, "site": site.to_json()})
    declared = {"t": "table", "id": number, "dtype": table.dtype, "signals": table.signals, "sites": ids}
    yield encode_json(declared)
    for at in range(0, len(table.steps), BLOCK):
        steps: Any = table.steps[at : at + BLOCK]
        part: Any = table.values[at : at + BLOCK]
        yield encode_block(number, [(steps, part)], table.dtype, part.shape[1])
