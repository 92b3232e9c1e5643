"""The real command in a real process, and runs written by the real writer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clew.records.site import Site
from clew.store.read.run_folders import create_run
from clew.store.write.log_writer import LogWriter

SOURCE = Path(__file__).parents[2] / "src"
FAULTY = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
for step in range(60):
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print("trained")
"""
HEALTHY = FAULTY.replace("    loss.backward()", "    optimizer.zero_grad()\n    loss.backward()")


def clew(
    folder: Path,
    *arguments: str,
    stdin: str = "",
    environment: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """`clew …` in that folder; `before` holds interpreter flags."""
    cleared = {k: v for k, v in os.environ.items() if not k.startswith("CLEW") and k != "COLUMNS"}
    return subprocess.run(
        [sys.executable, *before, "-m", "clew", *arguments],
        cwd=folder,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env={**cleared, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "utf-8", **(environment or {})},
        timeout=300,
        check=False,
    )


def why_json(root: Path, run: str) -> dict[str, Any]:
    """What `clew why --json` says."""
    done = clew(root, "why", "--json", "--dir", str(root), run)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def record(
    root: Path,
    *,
    script: str = "train.py",
    steps: int = 40,
    stale: bool = True,
    state: str | None = "finished",
    facts: Sequence[tuple[str, dict[str, Any]]] = (),
    meta: Mapping[str, Any] | None = None,
) -> Path:
    """A run whose gradients were never zeroed, or were; `state` None leaves it without an end."""
    path = create_run(root, {"script": script, **(meta or {})})
    failures: list[str] = []
    writer = LogWriter(path / "rank00000", on_failure=failures.append)
    site = writer.site(Site(op="step", file="/nowhere/train.py", line=12, phase="train"))
    table = writer.table(["grad.norm", "grad.stale", "grad.backwards", "lr"], [site])
    loss = writer.table(["loss"], [writer.site(Site(op="backward", phase="train"))])
    for kind, data in facts:
        writer.fact(kind, 0, data)
    for step in range(steps):
        writer.row(table, step, (1.0 + step * 0.01, float(stale and step > 0), 1.0, 0.1))
        writer.row(loss, step, (2.0 - step * 0.01,))
    if state is None:
        assert writer.flush()
        writer.abandon()
    else:
        writer.close(state, 0)
    assert not failures
    return path
