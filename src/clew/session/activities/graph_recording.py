"""`--graph`: records the graph of each model in the first steps, with one extra forward each.

It happens once per model, just before the first update: the step's own graph has been freed by then and the
parameters are not yet updated. The forward runs with real values, never with fake tensors: what the program
caches of it (a table of positions) must be what it would have cached anyway.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from clew.records.facts.model_facts import GraphRecordedFact
from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from clew.hooks.collect_layers.trained_models import Root
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.replay_inputs import Call
    from clew.hooks.steps.watcher import Watcher
    from clew.records.network import Graph
    from clew.session.session import Session

LAST_STEP = 8  # models are waited for up to this step: with several, each gets its turn


class GraphRecording(Activity):
    """Runs before each update of a sampled step; records the graphs, or why there is none."""

    name = "graph"
    _watcher: Watcher

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._done: set[int] = set()
        self._failed: dict[int, tuple[str, str]] = {}  # of a root's index: its name, and why
        self._closed = False

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Record graphs before each of the first updates."""
        self._watcher = watcher
        watcher.before_update.append(guard.inner(self.name, self._before_update))

    def _before_update(self) -> None:
        if self._closed:
            return
        began = perf_counter()
        for call in self._watcher.holding.calls:
            root = self._watcher.models.root_of(call[0])
            if root is not None and root.index not in self._done:
                self._record(root, call)
        if self._watcher.step >= LAST_STEP:
            self.close()
        self._watcher.sampler.excuse(perf_counter() - began)

    def close(self) -> None:
        """No more models will come: record which were left out."""
        self._closed = True
        for name, reason in self._failed.values():
            self._write(GraphRecordedFact(name, written=False, reason=reason))
        self._failed = {}

    def _record(self, root: Root, call: Call) -> None:
        from clew.render.verdict_json import write_json

        found = self._graph(call)
        if isinstance(found, str):
            self._failed[root.index] = (root.name, found)
            return
        self._failed.pop(root.index, None)
        self._done.add(root.index)
        path = f"traces/graph-{root.index + 1}.json" if root.index else "traces/graph.json"
        write_json(self._session.path / path, {**found.to_json(), "root": root.name})
        self._write(GraphRecordedFact(root.name, written=True, path=path, nodes=len(found.nodes)))

    def _graph(self, call: Call) -> Graph | str:
        """The graph of a forward, or why there is none; torch is imported by now."""
        from clew.hooks.steps.replay_inputs import DERIVED
        from clew.hooks.steps.step_machine import distributed
        from clew.labs.network.network_graph import graph_of_held_call
        from clew.labs.network.shape_errors.shape_error import ForwardError
        from clew.labs.replay.replay_alarm import SEVERAL
        from clew.labs.snapshot.snapshot import Autocast
        from clew.measure.rng import Rng

        _, args, kwargs = call
        if distributed():
            return SEVERAL
        if any(value is DERIVED for value in (*args, *kwargs.values())):
            return "its input was computed by another model in the step and is no longer available"
        holding = self._watcher.holding
        with self._watcher.machine.unwatched():
            try:
                return graph_of_held_call(call, Rng(*holding.rng), Autocast("cpu", *holding.autocast))
            except ForwardError as error:
                return f"running its forward again failed: {error.shape_error.error}"

    def _write(self, fact: GraphRecordedFact) -> None:
        fact.write(self._watcher.sink, self._watcher.step)
