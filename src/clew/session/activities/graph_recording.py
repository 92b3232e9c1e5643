"""`clew run --graph`: the graph of a model, from its first training forward run again on the side.

It happens once for each model, just before the first update: the step's own graph has been freed by
then and the parameters are intact. The forward is run with real values, never with stand-ins: what
the program keeps of it (a cached table of positions) must be what it would have kept anyway.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from torch.nn.modules import module as global_hooks

from clew.hooks.steps.pause import distributed, unwatched
from clew.hooks.steps.replay_inputs import DERIVED, Call
from clew.hooks.steps.trained_models import Root
from clew.labs.network.network_graph import graph_of_call
from clew.labs.network.shape_errors.shape_error import ForwardError
from clew.labs.network.trace.traced_forward import unwrapped
from clew.labs.replay.replay_alarm import SEVERAL
from clew.labs.snapshot.held_step import Autocast, Rng
from clew.labs.snapshot.undisturbed import is_users, undisturbed
from clew.records.facts.model_facts import GraphRecordedFact
from clew.records.network import Graph

if TYPE_CHECKING:
    from clew.hooks.steps.watcher import Watcher

LAST_STEP = 8  # up to which models are waited for: with several, each has its turn
_REGISTRIES = ("_global_forward_pre_hooks", "_global_forward_hooks")

Write = Callable[[Path, dict[str, Any]], None]


class GraphRecorder:
    """Called before each update of a sampled step; says in the log what it wrote, or why it did not."""

    def __init__(self, watcher: Watcher, folder: Path, write: Write) -> None:
        self._watcher = watcher
        self._folder = folder
        self._write = write
        self._done: set[int] = set()
        self._failed: dict[int, tuple[str, str]] = {}

    def __call__(self) -> None:
        began = perf_counter()
        for call in self._watcher.holding.calls:
            root = self._watcher.models.root_of(call[0])
            if root is not None and root.index not in self._done:
                self._look(root, call)
        if self._watcher.step >= LAST_STEP:
            self.close()
        self._watcher.sampler.excused += perf_counter() - began

    def close(self) -> None:
        """No more models will come: say which were left out."""
        self._watcher.before_update = None
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
            return "what it is given is computed with gradients in the step, and not kept"
        holding = self._watcher.holding
        model = unwrapped(module)
        autocast = Autocast("cpu", *holding.autocast)
        owners = list(module.modules())
        alone = undisturbed(owners, Rng(*holding.rng), autocast)
        with unwatched(self._watcher), _without_global_hooks(), alone:
            try:
                return graph_of_call(model, args, kwargs)
            except ForwardError as error:
                return f"run again, its forward failed: {error.mishap.error}"

    def _say(self, fact: GraphRecordedFact) -> None:
        fact.write(self._watcher.sink, self._watcher.step)


@contextlib.contextmanager
def _without_global_hooks() -> Iterator[None]:
    """Hooks that the program hung on all modules may count or collect: they have had their call."""
    taken: list[tuple[dict[int, Any], dict[int, Any]]] = []
    for name in _REGISTRIES:
        hooks: dict[int, Any] = getattr(global_hooks, name)
        before = dict(hooks)
        for key in [k for k, hook in hooks.items() if is_users(hook)]:
            del hooks[key]
        taken.append((hooks, before))
    try:
        yield
    finally:
        for hooks, before in taken:
            hooks.clear()
            hooks.update(before)
