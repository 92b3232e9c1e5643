"""How long the checks take on a long run: `python -m benchmarks.judging`.

The run is synthetic: every documented signal at every one of 500 layers, a row for each of 100,000
steps where a signal is recorded on every step and 2,000 samples where it is sampled. All checks run,
one after the other; the slowest are named.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.checks import catalog
from clew.checks.run_view import RunView
from clew.checks.runner import ask, judge
from clew.records.site import Site

EVERY_STEP = ("loss", "grad.norm", "lr", "wall", "step.time", "batch.size", "memory.rss", "events.pattern")
STATISTICS = ("mean", "std", "min", "max", "norm", "zeros", "nonfinite")
PARAMETERS = tuple(f"{kind}.{s}" for kind in ("gradient", "weight", "update") for s in STATISTICS)
ACTIVATIONS = tuple(f"activation.{s}" for s in (*STATISTICS, "dead_fraction", "saturated"))
SAMPLES = 2_000


@dataclass(frozen=True)
class Fact:
    kind: str
    step: int
    data: dict[str, Any]


class LongRun:
    """A run of a deep network in which everything is recorded and nothing is wrong."""

    end: dict[str, Any] | None = None
    events: Sequence[Fact] = ()

    def __init__(self, steps: int, layers: int) -> None:
        self.last_step = steps - 1
        self._layers = [f"blocks.{n}.linear" for n in range(layers)]
        self._all = np.arange(steps)
        self._sampled = np.unique(np.linspace(0, steps - 1, SAMPLES).astype(np.int64))
        random = np.random.default_rng(0)
        self._noise = 1.0 + 0.05 * random.standard_normal(steps)
        self._some = self._noise[self._sampled]
        self.facts = [Fact("model", 0, self._model()), Fact("pattern", 0, {"id": 0, "pattern": "zfbs"})]

    def _model(self) -> dict[str, Any]:
        modules = [{"path": p, "class": "Linear", "file": "net.py", "line": 9} for p in self._layers]
        parameters = [
            {"name": f"{p}.weight", "module": p, "param": "weight", "shape": [256, 256], "numel": 65536}
            for p in self._layers
        ]
        return {"root": "model", "class": "Net", "modules": modules, "parameters": parameters}

    def signal_names(self) -> list[str]:
        return [*EVERY_STEP, *PARAMETERS, *ACTIVATIONS, "update.ratio"]

    def series(self, name: str) -> Iterator[tuple[Site, npt.NDArray[Any], npt.NDArray[Any]]]:
        if name in EVERY_STEP:
            falling = 1.0 + 2.0 * np.exp(-self._all / len(self._all) * 5)
            yield Site(op="backward", phase="train"), self._all, falling * self._noise
        elif name in PARAMETERS or name == "update.ratio":
            for path in self._layers:
                yield Site(path, param="weight", root="model", phase="train"), self._sampled, self._some
        elif name in ACTIVATIONS:
            for path in self._layers:
                yield Site(path, op="relu", root="model", phase="train"), self._sampled, 0.1 * self._some


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judging", description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--layers", type=int, default=500)
    options = parser.parse_args(arguments)
    run = LongRun(options.steps, options.layers)
    began = time.perf_counter()
    verdict = judge(RunView(run))
    total = time.perf_counter() - began
    taken = sorted(((_seconds(check, run), check.name) for check in catalog.everything()), reverse=True)
    print(f"{verdict.asked} checks, {options.steps:,} steps, {options.layers} layers: {total:.2f} s in all")
    for seconds, name in taken[:8]:
        print(f"{seconds:8.3f} s  {name}")
    for entry in verdict.not_judged:
        print(f"not judged: {entry.check}: {entry.reason}")


def _seconds(check: Any, run: LongRun) -> float:
    began = time.perf_counter()
    ask(check, RunView(run))
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
