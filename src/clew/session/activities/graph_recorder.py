"""Graph recorder for `clew run --graph`: runs a model's first training forward again and records its graph.

It happens once per model, just before the first update: the step's own graph has been freed by then and the
parameters are not yet updated. The forward runs with real values, never with fake tensors: what the program
caches of it (a table of positions) must be what it would have cached anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.steps.pause import distributed, unwatched
from clew.hooks.steps.replay_inputs import DERIVED, Call
from clew.labs.network.network_graph import graph_of_call
from clew.labs.network.shape_errors.shape_error import ForwardError
from clew.labs.network.trace.traced_forward import unwrapped
from clew.labs.replay.replay_alarm import SEVERAL
from clew.labs.snapshot.held_step import Autocast
from clew.labs.snapshot.snapshot import snapshot
from clew.measure.rng import Rng
from clew.records.facts.model_facts import GraphRecordedFact
from clew.records.network import Graph

if TYPE_CHECKING:
    from clew.hooks.steps.watcher import Watcher

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.hooks.steps.watcher import Watcher


LAST_STEP = 8  # models are waited for up to this step: with several, each gets its turn

Write = Callable[[Path, dict[str, Any]], None]


class GraphRecorder:
    """Called before each update of a sampled step; writes to the log what it recorded, or why it did not."""

    def __init__(self, watcher: Watcher, folder: Path, write: Write) -> None:
        self._watcher = watcher
        self._folder = folder
        self._write = write
        self._done: set[int] = set()
        self._failed: dict[int, tuple[str, str]] = {}
        self._closed = False

    def __call__(self) -> None:
        if self._closed:
            return
        began = perf_counter()
        for call in self._watcher.holding.calls:
            root = self._watcher.models.root_of(call[0])
            if root is not None and root.index not in self._done:
                self._look(root, call)
        if self._watcher.step >= LAST_STEP:
            self.close()
        self._watcher.sampler.excused += perf_counter() - began

    def close(self) -> None:
        """No more models will come: record which were left out."""
        self._closed = True
        for name, reason in self._failed.values():
            self._say(GraphRecordedFact(name, written=False, reason=reason))
        self._failed = {}

    def _look(self, root: Root, call: Call) -> None:
        found = self._graph(call)
        if isinstance(found, str):
            self._failed[root.index] = (root.name, found)
            return
        self._failed.pop(root.index, None)
        self._done.add(root.index)
        name = f"graph-{root.index + 1}.json" if root.index else "graph.json"
        self._write(self._folder / name, {**found.to_json(), "root": root.name})
        nodes = len(found.nodes)
        self._say(GraphRecordedFact(root.name, written=True, path=f"traces/{name}", nodes=nodes))

    def _graph(self, call: Call) -> Graph | str:
        module, args, kwargs = call
        if distributed():
            return SEVERAL
        if any(value is DERIVED for value in (*args, *kwargs.values())):
            return "its input is computed with gradients in the step, and is not kept"
        holding = self._watcher.holding
        model = unwrapped(module)
        autocast = Autocast("cpu", *holding.autocast)
        owners = list(module.modules())
        alone = snapshot(owners, rng=Rng(*holding.rng), autocast=autocast)
        with unwatched(self._watcher), alone:
            try:
                return graph_of_call(model, args, kwargs)
            except ForwardError as error:
                return f"running its forward again failed: {error.mishap.error}"

    def _say(self, fact: GraphRecordedFact) -> None:
        fact.write(self._watcher.sink, self._watcher.step)
