"""Runs built by hand: what the checks see, without torch, a disk or a training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clew.checks.base import Check
from clew.checks.run_view import RunView
from clew.records.finding import Finding
from clew.records.site import Site

NOWHERE = Site()
LOSS = Site(op="backward", file="train.py", line=30, phase="train")
STEP = Site(op="step", file="train.py", line=31)
LOSS_CALL = Site(op="cross_entropy", file="train.py", line=29, phase="train")


@dataclass(frozen=True)
class Fact:
    kind: str
    step: int
    data: dict[str, Any]


class FakeRun:
    """As the store's RunData, filled one call at a time."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.events: list[Fact] = []
        self.end: dict[str, Any] | None = None
        self.last_step = -1
        self._columns: dict[str, dict[Site, tuple[list[int], list[float]]]] = {}

    def signal(
        self, name: str, values: Sequence[float], site: Site = NOWHERE, steps: Sequence[int] | None = None
    ) -> FakeRun:
        """Append values at consecutive steps from 0 on, or at the given ones."""
        column = self._columns.setdefault(name, {}).setdefault(site, ([], []))
        column[0].extend(range(len(values)) if steps is None else steps)
        column[1].extend(values)
        self.last_step = max([self.last_step, *column[0]])
        return self

    def fact(self, kind: str, step: int = 0, /, **data: Any) -> FakeRun:
        self.facts.append(Fact(kind, step, data))
        return self

    def experiment(self, name: str, /, **data: Any) -> FakeRun:
        """What the experiment for the check of this name found."""
        return self.fact(f"experiment.{name}", status="done", data=data)

    def model(self, *layers: tuple[str, str], root: str = "model", kind: str = "Net") -> FakeRun:
        """Layers as (path, class) in forward order, made on lines 10, 11, …, each with weight and bias."""
        modules = [
            {"path": path, "class": name, "file": "net.py", "line": 10 + n}
            for n, (path, name) in enumerate(layers)
        ]
        parameters = [
            {"name": f"{path}.{param}", "module": path, "param": param, "shape": [8] * ndim}
            for path, _ in layers
            for param, ndim in (("weight", 2), ("bias", 1))
        ]
        self.fact("model", root=root, file="train.py", line=9, modules=modules, parameters=parameters)
        self.facts[-1].data["class"] = kind
        return self

    def parameters(self, *items: dict[str, Any], root: str = "model", **data: Any) -> FakeRun:
        return self.fact("parameters", 3, root=root, items=list(items), **data)

    def signal_names(self) -> list[str]:
        return list(self._columns)

    def series(self, name: str) -> Iterator[tuple[Site, np.ndarray, np.ndarray]]:
        for site, (steps, values) in self._columns.get(name, {}).items():
            yield site, np.array(steps, dtype=np.int64), np.array(values, dtype=np.float64)

    def view(self) -> RunView:
        return RunView(self)


def parameter(module: str, param: str = "weight", **more: Any) -> dict[str, Any]:
    """A parameter that is trained as it should be, but for what `more` says."""
    usual = {
        "name": f"{module}.{param}",
        "module": module,
        "param": param,
        "ndim": 2,
        "requires_grad": True,
        "has_grad": True,
        "optimizer": 0,
        "loaded": False,
        "init_like": True,
    }
    return {**usual, **more}


def weight(path: str, root: str = "model") -> Site:
    return Site(module=path, root=root, param="weight")


def findings(check: Check, run: FakeRun) -> list[Finding]:
    """What the check says of a run that has all that it needs."""
    view = run.view()
    missing = [need for need in check.needs if not view.has(need)]
    assert not missing, f"the run lacks {missing}"
    with np.errstate(all="ignore"):
        return list(check.diagnose(view))
