"""What is compared with raw training: Clew in two modes, torch's anomaly mode, and peers."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch

from benchmarks.workloads import Workload
from clew.api.attach import attach

WARM_UP = 40  # steps: Clew looks at the first 32 one by one, on credit
CREDIT = 5.0  # seconds after which the credit for a young run is used up: what stays is measured


@dataclass
class Contender:
    """A tool that watches a run; `step` replaces the workload's own while it is on."""

    on: Callable[[], None]
    off: Callable[[], None]
    step: Callable[[], None]


def _nothing() -> None:
    return


@contextmanager
def raw(work: Workload) -> Iterator[Contender]:
    """The control: raw against raw."""
    yield Contender(_nothing, _nothing, work.step)


@contextmanager
def _clew(work: Workload, every_step: bool) -> Iterator[Contender]:
    with tempfile.TemporaryDirectory() as folder:
        session = attach(run_root=folder, budget=0.02, every_step=every_step, quiet=True)
        attached = True

        def switch(wanted: bool) -> None:
            nonlocal attached
            if wanted != attached:
                (session.resume if wanted else session.pause)()
                attached = wanted

        try:
            begin, steps = perf_counter(), 0
            while steps < WARM_UP or perf_counter() - begin < CREDIT:
                work.step()
                steps += 1
            yield Contender(lambda: switch(True), lambda: switch(False), work.step)
        finally:
            session.close()


@contextmanager
def clew_default(work: Workload) -> Iterator[Contender]:
    """What `clew run` does."""
    with _clew(work, every_step=False) as contender:
        yield contender


@contextmanager
def clew_every_step(work: Workload) -> Iterator[Contender]:
    """Statistics of every layer on every step: activations, gradients, parameters."""
    with _clew(work, every_step=True) as contender:
        yield contender


@contextmanager
def anomaly(work: Workload) -> Iterator[Contender]:
    """`torch.autograd.set_detect_anomaly(True)`."""

    def switch(wanted: bool) -> None:
        torch.autograd.set_detect_anomaly(wanted)

    try:
        yield Contender(lambda: switch(True), lambda: switch(False), work.step)
    finally:
        torch.autograd.set_detect_anomaly(False)


@contextmanager
def tensorboard(work: Workload) -> Iterator[Contender]:
    """Histograms of every parameter and its gradient on every step."""
    # By name: torch's module needs the tensorboard package, which need not be here.
    summary_writer = importlib.import_module("torch.utils.tensorboard").SummaryWriter

    with tempfile.TemporaryDirectory() as folder:
        writer = summary_writer(folder)
        watching, count = False, 0

        def switch(wanted: bool) -> None:
            nonlocal watching
            watching = wanted

        def step() -> None:
            nonlocal count
            work.step()
            if not watching:
                return
            count += 1
            for name, parameter in work.model.named_parameters():
                writer.add_histogram(name, parameter, count)
                writer.add_histogram(f"{name}.grad", parameter.grad, count)

        yield Contender(lambda: switch(True), lambda: switch(False), step)
        writer.close()


@contextmanager
def wandb(work: Workload) -> Iterator[Contender]:
    """`wandb.watch(model, log="all", log_freq=1)`, offline, logging once per step."""
    peer = importlib.import_module("wandb")

    os.environ["WANDB_SILENT"] = "true"
    with tempfile.TemporaryDirectory() as folder:
        run = peer.init(mode="offline", dir=folder, project="overhead")
        watching = False

        def switch(wanted: bool) -> None:
            nonlocal watching
            if wanted and not watching:
                peer.watch(work.model, log="all", log_freq=1)
            elif watching and not wanted:
                peer.unwatch(work.model)
            watching = wanted

        def step() -> None:
            work.step()
            if watching:
                run.log({"step": 1})

        yield Contender(lambda: switch(True), lambda: switch(False), step)
        run.finish()


@contextmanager
def torchmortem(work: Workload) -> Iterator[Contender]:
    """Its default autopsy: most signals on every step."""
    peer = importlib.import_module("torchmortem")
    logging.getLogger("torchmortem").setLevel(logging.ERROR)
    autopsy: Any = None

    def on() -> None:
        nonlocal autopsy
        if autopsy is None:
            autopsy = peer.Autopsy(work.model)
            autopsy.attach()

    def off() -> None:
        nonlocal autopsy
        if autopsy is not None:
            autopsy.detach()
        autopsy = None

    def step() -> None:
        work.step()
        if autopsy is not None:
            autopsy.step(loss=1.0)

    yield Contender(on, off, step)
    off()


COLUMNS = {
    "raw/raw": raw,
    "clew (default)": clew_default,
    "clew --every-step": clew_every_step,
    "set_detect_anomaly": anomaly,
}
PEERS = {"tensorboard": tensorboard, "wandb": wandb, "torchmortem": torchmortem}


def missing(name: str) -> bool:
    """Whether a peer is missing."""
    return importlib.util.find_spec(name) is None
