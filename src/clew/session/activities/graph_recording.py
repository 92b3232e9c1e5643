"""`--graph`: records the graph of each model in the first steps, with one extra forward each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.session.activities.graph_recorder import GraphRecorder


class GraphActivity(Activity):
    """See `graph_recorder`, which needs torch."""

    name = "graph"
    _recorder: GraphRecorder | None = None

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Record graphs before each of the first updates."""
        from clew.render.verdict_json import write_json
        from clew.session.activities.graph_recorder import GraphRecorder

        self._recorder = GraphRecorder(watcher, self._session.path / "traces", write_json)
        watcher.before_update = guard.inner(self.name, self._recorder)

    def close(self) -> None:
        """Record which models were left out."""
        if self._recorder is not None:
            self._recorder.close()
