"""Forks a writer process for every run folder named on stdin; the tests kill them.

Each writer says its pid, and after every flush how many rows are surely in the log.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from clew.records.site import Site
from clew.store.read.run_folders import create_run, rank_folder
from clew.store.write.log_writer import LogWriter

ROWS = 7  # per flush


def say(word: str, number: int) -> None:
    os.write(1, f"{word} {number}\n".encode())


def write_until_killed(root: Path) -> None:
    run = create_run(root, {"script": "train.py"}, run_id="run")
    writer = LogWriter(rank_folder(run, 0), on_failure=sys.exit, flush_interval=0.001, segment_bytes=30_000)
    layers = [writer.site(Site(module=f"layers.{i}")) for i in range(20)]
    loss = writer.table(["loss"], [writer.site(Site(phase="train"))])
    stats = writer.table(["weight.mean"], layers, "f4")
    assert writer.flush()
    say("pid", os.getpid())
    step = 0
    while True:
        for _ in range(ROWS):
            writer.row(loss, step, [step * 0.5])
            writer.row(stats, step, np.full(20, step, "f4"))
            step += 1
        writer.fact("pattern", step, {"rows": step})
        if writer.flush():
            say("flushed", step)


for line in sys.stdin:
    child = os.fork()
    if not child:
        write_until_killed(Path(line.rstrip("\n")))
    os.waitpid(child, 0)
    say("dead", child)
