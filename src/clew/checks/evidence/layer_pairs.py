"""Hidden layers, and which layer passes its output to which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clew.checks.evidence.chance_loss import chance_level
from clew.checks.evidence.loss_trend import only_loss, start_and_end
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records.facts.model_facts import DropoutRow, LayerPair, RemovedBias, StructureFact
from clew.records.finding import Severity
from clew.records.signal_types import Signal

LAYERS = ("Linear", "Conv1d", "Conv2d", "Conv3d")


def hidden_layers(run: RunView, signal: Signal) -> Iterator[Series]:
    """The signal at every linear and convolution layer in forward order, without the last of each model."""
    found = [
        (run.depth(site), run.key(site)[0], series)
        for site, series in run.series(signal)
        if site.op is None and (layer := run.layer_of(site)) is not None and layer.kind in LAYERS
    ]
    found.sort(key=lambda hit: hit[0])
    last = {root: depth for depth, root, _ in found}
    yield from (series for depth, root, series in found if depth != last[root])


def normalises(run: RunView) -> bool:
    """Whether any layer normalises: by definition, one whose class says so (`BatchNorm2d`, `RMSNorm`)."""
    return any("Norm" in layer.kind for model in run.models.values() for layer in model.layers)


@dataclass(frozen=True)
class NoProgress:
    """A loss that is about where it began, or no better than chance."""

    left: float = 0.8  # share of the first loss, or of that at chance; when training works, it falls below
    losses: int = 40  # losses; fewer do not show whether training works

    def is_in(self, run: RunView) -> bool:
        """Whether it is known to be so."""
        loss = only_loss(run)
        if loss is None or len(loss) < self.losses:
            return False
        start, end = start_and_end(loss)
        level = chance_level(run)
        return end >= self.left * start or (level is not None and end >= self.left * level)

    def severity(self, run: RunView) -> Severity:
        """Of outputs out of scale: advice where training makes progress all the same, or a layer
        normalises."""
        return Severity.WARNING if self.is_in(run) and not normalises(run) else Severity.ADVICE


def pairs(run: RunView) -> Iterator[tuple[str, LayerPair]]:
    """With the root that each belongs to, as everything below."""
    for fact in _newest(run):
        yield from ((fact.root, pair) for pair in fact.pairs)


def dropouts(run: RunView) -> Iterator[tuple[str, DropoutRow]]:
    for fact in _newest(run):
        yield from ((fact.root, dropout) for dropout in fact.dropouts)


def biases(run: RunView) -> Iterator[tuple[str, RemovedBias]]:
    for fact in _newest(run):
        yield from ((fact.root, bias) for bias in fact.biases)


def feeding(run: RunView) -> dict[tuple[str, str, str], str]:
    """The layers that get the output of a squashing function, by its root, module and op."""
    found = ((fact.root, row) for fact in _newest(run) for row in fact.squashing)
    return {(root, module, row.op): row.into for root, row in found for module in row.modules}


def _newest(run: RunView) -> Iterable[StructureFact]:
    """The last `structure` fact of every root."""
    return {fact.root: fact for fact in run.known(StructureFact)}.values()
