"""Hidden layers, and whether the training that they are part of made progress."""

from __future__ import annotations

from collections.abc import Iterator

from clew.checks.evidence.chance_loss import chance_level
from clew.checks.evidence.loss_trend import only_loss, start_and_end
from clew.checks.run_view import RunView
from clew.checks.series import Series

LAYERS = ("Linear", "Conv1d", "Conv2d", "Conv3d")
PROGRESS = 0.8  # share of its start, or of chance, that a loss falls below when training works
STEPS = 40  # losses below which nobody can tell


def hidden_layers(run: RunView, signal: str) -> Iterator[Series]:
    """The signal at every linear and convolution layer but the last of its model, in forward order."""
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
