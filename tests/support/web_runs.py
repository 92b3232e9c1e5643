"""Runs made with the real writer, and the server's app in this process."""

from __future__ import annotations

import functools
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from anyio.from_thread import start_blocking_portal

from clew.records.site import Site
from clew.store.read.run_folders import create_run, rank_folder
from clew.store.write.log_writer import LogWriter
from clew.web.answers.api_answers import ApiAnswers
from clew.web.app import make_app

TOKEN = "t0ken-of-the-tests"
HOSTILE = "<script>alert(1)</script>"
LAYERS = ("encoder.fc2", "encoder.fc1", HOSTILE)  # not in the order of their names
LOSS = Site(op="backward", file="/home/me/train.py", line=7, phase="train")
STEP = Site(op="step", file="/home/me/train.py", line=8, phase="train")


def writer_of(run: Path, rank: int = 0) -> LogWriter:
    failures: list[str] = []

    def fail(line: str) -> None:
        failures.append(line)
        raise AssertionError(line)

    return LogWriter(rank_folder(run, rank), on_failure=fail, flush_interval=0.01)


def begin(writer: LogWriter) -> tuple[int, int, int]:
    """Facts and tables of a small training."""
    modules = [{"path": path, "class": "Linear", "file": "/home/me/net.py", "line": 3} for path in LAYERS]
    parameters = [
        {
            "name": f"{p}.weight",
            "module": p,
            "param": "weight",
            "shape": [4, 4],
            "numel": 16,
            "requires_grad": True,
        }
        for p in LAYERS
    ]
    model = {"root": "net", "class": "Net", "file": "/home/me/net.py", "line": 1}
    writer.fact("model", 0, {**model, "modules": modules, "parameters": parameters})
    loader = {"index": 0, "file": "/home/me/train.py", "line": 5, "batch_size": 8, "length": 80}
    writer.fact("loader", 0, loader)
    writer.fact("fed", 0, {"phase": "train", "loader": 0})
    writer.fact("config", 0, {"source": "argv", "values": {"lr": 0.1, "model": {"depth": 3}}})
    writer.fact("versions", 0, {"torch": "2.13.0"})
    every = writer.table(["loss"], [writer.site(LOSS)])
    steps = writer.table(["grad.norm", "grad.stale", "wall", "step.time", "batch.size"], [writer.site(STEP)])
    sites = [writer.site(Site(module=p, param="weight", root="net", phase="train")) for p in LAYERS]
    statistics = writer.table(["gradient.norm", "gradient.max", "gradient.min"], sites, "f4")
    return every, steps, statistics


def make_run(
    root: Path, steps: int = 200, *, spike: int | None = None, bad: int | None = None, lr: float = 0.1
) -> Path:
    """A run in which gradients are never cleared, with statistics of three layers."""
    run = create_run(root, {"script": "train.py", "versions": {"clew": "0.1.0"}})
    writer = writer_of(run)
    every, per_step, statistics = begin(writer)
    writer.fact("config", 0, {"source": "user", "values": {"lr": lr}})
    metric = writer.table(
        ["metric.accuracy"], [writer.site(Site(op="log", file="/home/me/train.py", line=9))]
    )
    bins = [f"gradient.log2hist.{k:02d}" for k in range(32)]
    site = writer.site(Site(module=LAYERS[0], param="weight", root="net", phase="train"))
    histogram = writer.table(bins, [site], "u1")
    row = np.zeros(32)
    row[10:12] = 128, 127
    for step in range(steps):
        loss = 2.0 - step / steps
        loss = 500.0 if step == spike else float("nan") if step == bad else loss
        writer.row(every, step, [loss])
        writer.row(per_step, step, [1.0 + step, float(step > 0), 0.5 * step, 0.5, 8.0])
        if step % 10 == 0:
            writer.row(statistics, step, [v for n in range(3) for v in (10.0**-n, 0.5, -0.5)])
            writer.row(histogram, step, row)
            writer.row(metric, step, [step / steps])
    writer.close("finished", 0)
    return run


class Client:
    """The app in this process, asked from outside its event loop; the token is in hand unless taken away."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.answers = ApiAnswers.at(root)
        self.app = make_app(self.answers, TOKEN, **options)

    def __enter__(self) -> Client:
        self._stack = ExitStack()
        self._portal = self._stack.enter_context(start_blocking_portal())
        inner: Any = self.app.inner
        lifespan = inner.router.lifespan_context(inner)
        self._stack.enter_context(self._portal.wrap_async_context_manager(lifespan))
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=True)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self._http = httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)
        return self

    def __exit__(self, *_: object) -> None:
        self._portal.call(self._http.aclose)
        self._stack.close()
        self.answers.close()

    def drop_token(self) -> None:
        del self._http.headers["Authorization"]

    def request(self, method: str, address: str, **options: Any) -> httpx.Response:
        return self._portal.call(functools.partial(self._http.request, method, address, **options))

    def get(self, address: str, **options: Any) -> httpx.Response:
        return self.request("GET", address, **options)

    def put(self, address: str, **options: Any) -> httpx.Response:
        return self.request("PUT", address, **options)
