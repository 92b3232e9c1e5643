"""From the failing step to the answer: how long a replay takes, as a multiple of the step's own time.

    python -m benchmarks.numerics [mlp cnn gpt]

A weight of the last layer is made so large that its product overflows. The step in which
that happens is timed as a whole: forward, backward, the replay with every operation checked, the saved
repro, and the update. `benchmarks.overhead` measures the cost while all is well, next to that of
`set_detect_anomaly`.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import nn

from benchmarks.contenders import WARM_UP
from benchmarks.workloads import WORKLOADS, Workload
from clew.api.attach import attach
from clew.store.read.run_reader import open_run

TIMED = 15  # ordinary steps, of which the median counts
MULTIPLE, CONSTANT = 20.0, 0.5  # the promise: under 20 steps and half a second


@dataclass(frozen=True)
class Timing:
    """Seconds, and what was found."""

    name: str
    step: float
    failing: float
    culprit: str

    @property
    def answer(self) -> float:
        """How much longer the failing step took than an ordinary one."""
        return max(self.failing - self.step, 0.0)

    @property
    def allowed(self) -> float:
        return MULTIPLE * self.step + CONSTANT


def measure(work: Workload) -> Timing:
    """Train a little, break the model, and time the step that notices."""
    with tempfile.TemporaryDirectory() as folder:
        with attach(run_root=folder, quiet=True) as session:
            for _ in range(WARM_UP):
                work.step()
            usual = statistics.median(_timed(work) for _ in range(TIMED))
            _break(work.model)
            failing = _timed(work)
        assert session.path is not None
        facts = [f.data for f in open_run(session.path).data.facts if f.kind == "culprit"]
    named = next((str(data.get("sentence")) for data in facts if data.get("found")), "not found")
    return Timing(work.name, usual, failing, named)


def _timed(work: Workload) -> float:
    began = perf_counter()
    work.step()
    return perf_counter() - began


def _break(model: nn.Module) -> None:
    last = [m for m in model.modules() if isinstance(m, nn.Linear)][-1]
    with torch.no_grad():
        last.weight.fill_(3e38)


def main() -> None:
    torch.set_num_threads(1)
    names = sys.argv[1:] or list(WORKLOADS)
    print(f"{'':8} {'step':>10} {'answer':>10} {'steps':>8} {'allowed':>10}  culprit")
    for name in names:
        timing = measure(WORKLOADS[name]())
        kept = "" if timing.answer <= timing.allowed else "  TOO SLOW"
        print(
            f"{timing.name:8} {timing.step * 1e3:8.2f} ms {timing.answer * 1e3:7.1f} ms "
            f"{timing.answer / timing.step:8.1f} {timing.allowed * 1e3:7.1f} ms  {timing.culprit}{kept}"
        )


if __name__ == "__main__":
    main()
