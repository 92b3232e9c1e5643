"""Loss calls: their inputs, and what produced those."""

from __future__ import annotations

from collections.abc import Iterator

from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records import signals
from clew.records.facts.loss_facts import OutputFact
from clew.records.signal_types import Signal
from clew.records.site import Line, Site

CLASSES = ("cross_entropy", "nll_loss")
BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
REGRESSION = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")

Place = Line


def outputs(run: RunView, kinds: tuple[str, ...]) -> Iterator[tuple[Site, OutputFact]]:
    """The loss calls of these kinds, one for each place, if all their inputs were made in the same way."""
    by_place: dict[tuple[str, Place], list[OutputFact]] = {}
    for output in run.known(OutputFact):
        if output.kind in kinds:
            by_place.setdefault((output.kind, (output.file, output.line)), []).append(output)
    for (kind, (file, line)), found in by_place.items():
        if len({(o.made_by, o.logged, o.dim) for o in found}) == 1:
            yield Site(op=kind, file=file, line=line, phase="train"), found[0]


def series_at(run: RunView, signal: Signal, site: Site) -> Series | None:
    """A signal of the loss call at this place."""
    for other, series in run.series(signal):
        if (other.op, other.file, other.line) == (site.op, site.file, site.line):
            return series
    return None


def sampled(run: RunView, signal: Signal, kinds: tuple[str, ...]) -> int:
    """The most samples that the signal has at a loss call of these kinds."""
    return max((len(s) for site, s in run.series(signal) if site.op in kinds), default=0)


def last_layer(run: RunView, *kinds: str) -> Site | None:
    """The layer that made the output, which is the one that ran last, if it is of this class."""
    ran = [site for site, _ in run.series(signals.ACTIVATION.mean) if run.layer_of(site) is not None]
    if not ran:
        return None
    last = max(ran, key=run.depth)
    layer = run.layer_of(last)
    return Site(module=last.module, root=last.root) if layer and layer.kind in kinds else None
