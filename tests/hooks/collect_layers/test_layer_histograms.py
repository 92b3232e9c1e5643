"""Which steps get histograms, and that what is recorded is what numpy makes of the same tensors."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import clew
from clew.hooks.collect_layers.layer_histograms import BINS, FIELDS, Histograms
from clew.hooks.entry.guard import Guard
from clew.measure.deferred_values import Late
from clew.records.site import Site
from clew.store.read.run_reader import open_run


class Sink:
    """Keeps rows in memory."""

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.tables: list[tuple[list[str], list[int]]] = []
        self.rows: list[tuple[int, int, Any]] = []

    def site(self, site: Site) -> int:
        self.sites.append(site)
        return len(self.sites) - 1

    def table(self, signals: Any, sites: Any, dtype: str = "f8") -> int:
        self.tables.append((list(signals), list(sites)))
        return len(self.tables) - 1

    def row(self, table: int, step: int, values: Any) -> None:
        self.rows.append((table, step, values))


def taken(steps: range) -> list[int]:
    sink = Sink()
    histograms = Histograms(sink, Late(), Guard(lambda *_: None))  # type: ignore[arg-type]
    tensor = torch.arange(10.0)
    for step in steps:
        histograms.prepare(step)
        if histograms.wanted:
            histograms.seen("weight", "a", lambda: Site("a"), tensor)
        histograms.commit(step)
    return [step for _, step, _ in sink.rows]


def test_the_first_steps_have_histograms_and_later_ones_at_growing_distances() -> None:
    steps = taken(range(10_000))
    assert steps[:8] == [0, 1, 5, 9, 13, 17, 22, 28]
    assert all(b >= a * 1.25 for a, b in pairwise(steps[6:]))
    assert 25 <= len(steps) <= 35


def test_a_run_of_ten_million_steps_holds_some_sixty() -> None:
    sampled = [*range(64), *(int(64 * 1.05**n) for n in range(1, 246))]
    assert sampled[-1] > 9_000_000
    sink_steps = taken(sampled)  # type: ignore[arg-type]
    assert len(sink_steps) <= 60


def test_a_failing_histogram_is_reported_once_and_harms_nothing() -> None:
    told: list[str] = []
    histograms = Histograms(Sink(), Late(), Guard(lambda name, _: told.append(name)))  # type: ignore[arg-type]
    for _ in range(3):
        histograms.seen("weight", "a", lambda: Site("a"), "not a tensor")
    assert told == ["histograms"]


def read(data: Any, what: str, module: str, param: str | None) -> tuple[np.ndarray, np.ndarray]:
    columns = []
    for field in FIELDS:
        for site, steps, values in data.series(f"{what}.histogram.{field}"):
            if (site.module, site.param) == (module, param):
                columns.append(values)
                seen = steps
    return seen, np.array(columns).T


def test_a_run_holds_what_numpy_makes_of_gradients_weights_and_activations(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wanted: dict[str, list[Any]] = {"weight": [], "gradient": [], "activation": []}
    with clew.attach(run_root=tmp_path, every_step=True, quiet=True) as session:
        for _ in range(14):
            hidden = model[0](inputs := torch.randn(16, 20)).detach().numpy().copy()
            optimizer.zero_grad()
            model(inputs).pow(2).mean().backward()
            wanted["activation"].append(hidden)
            wanted["weight"].append(model[2].weight.detach().numpy().copy())
            wanted["gradient"].append(model[2].weight.grad.numpy().copy())
            optimizer.step()
    data = open_run(session.path).data
    for what, module, param in (
        ("weight", "2", "weight"),
        ("gradient", "2", "weight"),
        ("activation", "0", None),
    ):
        steps, rows = read(data, what, module, param)
        assert steps.tolist()[:4] == [0, 1, 5, 9]
        for step, row in zip(steps, rows, strict=True):
            counts, edges = np.histogram(wanted[what][step], bins=BINS)
            np.testing.assert_allclose(row[:2], (edges[0], edges[-1]), rtol=1e-6)
            assert np.abs(row[2:] - counts).sum() <= 2
