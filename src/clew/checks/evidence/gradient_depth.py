"""Gradients of the weights along the depth of a model, relative to the weights themselves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from clew.checks.run_view import RunView
from clew.checks.series import BoolArray, FloatArray, IntArray, Series
from clew.records import signals
from clew.records.signal_types import Signal
from clew.records.site import Site


@dataclass(frozen=True, eq=False)
class DepthProfile:
    """The gradients of one model over a few sampled steps: layers in forward order × steps."""

    sites: tuple[Site, ...]
    steps: IntArray
    relative: FloatArray  # norm of the gradient over norm of the weight

    def decades(self) -> FloatArray:
        """Per step, by how many powers of ten the gradient grows from the first to the last layer.

        A least-squares line over all layers but the last: the output layer's gradient is often
        large by itself, and scatter between neighbours (queries and values, say) is no trend.
        """
        logs = np.log10(self.relative[:-1])
        place = np.linspace(-0.5, 0.5, len(logs))
        return np.asarray(place @ (logs - logs.mean(axis=0)) / (place @ place))

    def typical(self) -> FloatArray:
        """Per layer, the median over the steps."""
        return np.asarray(np.median(self.relative, axis=1))

    def series(self, values: FloatArray, signal: Signal) -> Series:
        return Series(signal.name, self.sites[0], self.steps, values)


def first_over_weight(run: RunView) -> float:
    """The norm of the first gradient over that of the weight, of the median weight; NaN if unknown."""
    relative = [
        float(g.values[0] / w.values[0])
        for site, g in run.series(signals.GRADIENT.norm)
        if is_weight(run, site)
        and (w := run.of_parameter(signals.WEIGHT.norm, run.key(site)))
        and w.values[0] > 0
    ]
    return median(relative) if relative else float("nan")


@dataclass(frozen=True)
class ComparableLayers:
    """What the layers of a model must have for their gradients to be compared along its depth."""

    least: int = 3  # layers; with fewer, there is no depth along which a gradient could shrink or grow
    present: float = 0.9  # share of the sampled steps in which a layer must have a gradient

    def profiles(self, run: RunView, cut: Callable[[Series], Series]) -> Iterator[DepthProfile]:
        """A profile of each model that is deep enough, over the samples that `cut` keeps."""
        by_root: dict[str, list[tuple[Site, Series, Series]]] = {}
        for site, gradient in run.series(signals.GRADIENT.norm):
            weight = run.of_parameter(signals.WEIGHT.norm, run.key(site)) if is_weight(run, site) else None
            if weight is not None:
                by_root.setdefault(run.key(site)[0], []).append((site, cut(gradient), cut(weight)))
        for rows in by_root.values():
            rows.sort(key=lambda row: (run.depth(row[0]), *_cell(row[0].param or "")))
            profile = self._profile(rows)
            if profile:
                yield profile

    def _profile(self, rows: Sequence[tuple[Site, Series, Series]]) -> DepthProfile | None:
        rows = _sampled_together(rows)
        if len(rows) < self.least or not len(rows[0][1]):
            return None
        gradients = np.stack([g.values for _, g, _ in rows]).astype(np.float64)
        weights = np.stack([w.values for _, _, w in rows]).astype(np.float64)
        known = np.isfinite(gradients) & np.isfinite(weights) & (gradients > 0) & (weights > 0)
        # A gradient of exactly zero is a dead, frozen or skipped layer, or a zero-initialised branch.
        layers = known.mean(axis=1) >= self.present
        steps: BoolArray = known[layers].all(axis=0)
        if layers.sum() < self.least or not steps.any():
            return None
        sites = tuple(site for (site, _, _), kept in zip(rows, layers, strict=True) if kept)
        relative = gradients[layers][:, steps] / weights[layers][:, steps]
        return DepthProfile(sites, rows[0][1].steps[steps], relative)


def is_weight(run: RunView, site: Site) -> bool:
    """A matrix or kernel; not a bias, a gain, or an embedding, whose unused rows have no gradient."""
    layer = run.layer_of(site)
    return (
        "weight" in (site.param or "") and run.ndim(site) >= 2 and not (layer and "Embedding" in layer.kind)
    )


def _cell(param: str) -> tuple[int, str]:
    """Recurrent layers keep several cells in one module: weight_ih_l0, weight_ih_l1, …"""
    found = re.search(r"_l(\d+)", param)
    return (int(found[1]) if found else 0), param


def _sampled_together(rows: Sequence[tuple[Site, Series, Series]]) -> list[tuple[Site, Series, Series]]:
    """The rows that were recorded at the same steps as most others."""
    keys = [(g.steps.tobytes(), w.steps.tobytes()) for _, g, w in rows]
    counts = Counter(a for a, b in keys if a == b)
    if not counts:
        return []
    common = counts.most_common(1)[0][0]
    return [row for row, key in zip(rows, keys, strict=True) if key == (common, common)]
