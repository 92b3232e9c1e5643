"""Pieces of hand-built runs that the checks of the data family share."""

from __future__ import annotations

from typing import Any

from fake_run import FakeRun

from clew.records.site import Site

INPUT = Site("", "input[0]", phase="train", root="model")
EVAL_INPUT = Site("", "input[0]", phase="eval", root="model")
ROOT = Site("", phase="train", root="model")
EVAL = Site("", phase="eval", root="model")
LOSS_CALL = Site(op="cross_entropy", file="train.py", line=29, phase="train")
LOOP = ("train.py", 20)  # where the training loader is iterated over


def loader(run: FakeRun, index: int = 0, line: int = 20, **more: Any) -> FakeRun:
    """A loader of 640 samples in batches of 32, shuffled."""
    usual = {"index": index, "file": "train.py", "line": line, "batch_size": 32, "num_workers": 0}
    usual |= {"shuffle": True, "sampler": "RandomSampler", "dataset": "Images", "length": 640}
    return run.fact("loader", **{**usual, **more})


def fed(run: FakeRun, loader_index: int | None = 0) -> FakeRun:
    """A training forward got its batch from this loader."""
    data = {"phase": "train", "root": "model", "loader": loader_index, "names": []}
    return run.fact("fed", **data, file="train.py", line=28)


def labels(run: FakeRun, counts: list[list[int]], step: int = 31) -> FakeRun:
    """How often each class came, and was predicted right."""
    return run.fact("labels", step, kind="cross_entropy", file="train.py", line=29, counts=counts)
