"""Run folders for the tests of the store, made with the real writer or byte by byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from clew.records.site import Site
from clew.store.read.run_folders import create_run, rank_folder
from clew.store.write.frames import MAGIC, encode_json, joined
from clew.store.write.log_writer import LogWriter
from clew.store.write.row_blocks import encode_block

LOSS = Site(op="backward", file="train.py", line=7, phase="train")


def new_run(root: Path, **meta: object) -> Path:
    return create_run(root, {"script": "train.py", **meta})


def open_writer(run: Path, failures: list[str] | None = None, **options: object) -> LogWriter:
    told = [] if failures is None else failures
    options.setdefault("flush_interval", 0.01)
    return LogWriter(rank_folder(run, 0), on_failure=told.append, **options)


def record_losses(run: Path, losses: list[float], *, end: str | None = "finished") -> None:
    writer = open_writer(run)
    table = writer.table(["loss"], [writer.site(LOSS)])
    for step, loss in enumerate(losses):
        writer.row(table, step, [loss])
    if end is None:
        assert writer.flush()
        writer.abandon()
    else:
        writer.close(end, 0)


def declarations(dtype: str = "f8", signals: tuple[str, ...] = ("loss",), sites: int = 1) -> list[bytes]:
    names = [{"t": "site", "id": i, "site": {"module": f"m{i}"}} for i in range(sites)]
    table = {"t": "table", "id": 0, "dtype": dtype, "signals": signals, "sites": list(range(sites))}
    return [encode_json(record) for record in (*names, table)]


def block(steps: np.ndarray, values: np.ndarray, dtype: str = "f8") -> bytes:
    return encode_block(0, [(steps, values)], dtype, values.shape[1])


def write_segment(run: Path, payloads: list[bytes], number: int = 1, rank: int = 0) -> Path:
    folder = rank_folder(run, rank)
    folder.mkdir(exist_ok=True)
    path = folder / f"events-{number:06d}.seg"
    path.write_bytes(MAGIC + joined(payloads))
    return path


def append_payloads(segment: Path, payloads: list[bytes]) -> None:
    with open(segment, "ab") as file:
        file.write(joined(payloads))


def only_series(data: object, name: str) -> tuple[Site, np.ndarray, np.ndarray]:
    (found,) = data.series(name)  # type: ignore[attr-defined]
    return found
