"""Hidden layers, and which layer passes its output to which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clew.checks.evidence.chance_loss import chance_level
from clew.checks.evidence.loss_trend import only_loss, start_and_end
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records.codec import read
from clew.records.facts.model_facts import StructureFact
from clew.records.finding import Severity
from clew.records.signal_types import Signal

LAYERS = ("Linear", "Conv1d", "Conv2d", "Conv3d")
PROGRESS = 0.8  # share of its start, or of chance, that a loss falls below when training works
STEPS = 40  # losses; fewer do not show whether training works


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


def no_progress(run: RunView) -> bool:
    """Whether the loss is known to be about where it began, or no better than chance."""
    loss = only_loss(run)
    if loss is None or len(loss) < STEPS:
        return False
    start, end = start_and_end(loss)
    level = chance_level(run)
    return end >= PROGRESS * start or (level is not None and end >= PROGRESS * level)


def normalises(run: RunView) -> bool:
    return any("Norm" in layer.kind for model in run.models.values() for layer in model.layers)


def scale_severity(run: RunView) -> Severity:
    """Of outputs out of scale: advice where training makes progress all the same, or a layer normalises."""
    return Severity.WARNING if no_progress(run) and not normalises(run) else Severity.ADVICE


@dataclass(frozen=True)
class LayerPair:
    """Two affine layers: the second gets the output of the first, and no other layer does."""

    root: str = ""
    first: str = ""
    then: str = ""
    kinds: tuple[str, ...] = ()
    widths: tuple[int, ...] = ()  # into the first, between, out of the second
    kernels: tuple[tuple[int, ...], ...] = ()
    grouped: bool = False
    through: tuple[str, ...] = ()  # dropout and batch normalisation in between


@dataclass(frozen=True)
class Dropout:
    """A dropout, and what gets its output."""

    root: str = ""
    path: str = ""
    p: float = 0.0
    module: bool = False  # a layer; else a call of `F.dropout` in the forward of `path`
    norm: str | None = None  # the batch normalisation that gets its output
    loss: bool = False  # the loss gets its output
    file: str | None = None  # of the call
    line: int | None = None


@dataclass(frozen=True)
class Bias:
    """A bias right before a normalisation that removes it."""

    layer: str = ""
    norm: str = ""


@dataclass(frozen=True)
class Squashing:
    """A sigmoid or tanh, in these modules, whose output is the input of a layer."""

    op: str = ""
    modules: tuple[str, ...] = ()
    into: str = ""


def pairs(run: RunView) -> Iterator[LayerPair]:
    for fact in _newest(run):
        yield from (read(LayerPair, {**row, "root": fact.root}) for row in fact.pairs)


def dropouts(run: RunView) -> Iterator[Dropout]:
    for fact in _newest(run):
        yield from (read(Dropout, {**row, "root": fact.root}) for row in fact.dropouts)


def biases(run: RunView) -> Iterator[tuple[str, str, str]]:
    """Root, layer with a bias, and the normalisation behind it."""
    for fact in _newest(run):
        yield from ((fact.root, bias.layer, bias.norm) for bias in (read(Bias, row) for row in fact.biases))


def feeding(run: RunView) -> dict[tuple[str, str, str], str]:
    """The layers that get the output of a squashing function, by its root, module and op."""
    found = ((fact.root, read(Squashing, row)) for fact in _newest(run) for row in fact.squashing)
    return {(root, module, one.op): one.into for root, one in found for module in one.modules}


def _newest(run: RunView) -> Iterable[StructureFact]:
    """The last `structure` fact of every root."""
    return {fact.root: fact for fact in run.known(StructureFact)}.values()
