"""`--graph`: the models are drawn in the first steps, one more forward each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.parts.part import Activity

if TYPE_CHECKING:
    from clew.attach.guard import Guard
    from clew.attach.seams import Seams
    from clew.attach.watcher import Watcher
    from clew.parts.graph_recording import GraphRecorder


class GraphActivity(Activity):
    """See `graph_recording`, which needs torch."""

    name = "graph"
    _recorder: GraphRecorder | None = None

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Draw before each of the first updates."""
        from clew.parts.graph_recording import GraphRecorder
        from clew.show.json_out import write_json

        self._recorder = GraphRecorder(watcher, self._session.path / "traces", write_json)
        watcher.before_update = guard.inner(self.name, self._recorder)

    def close(self) -> None:
        """Say which models were left out."""
        if self._recorder is not None:
            self._recorder.close()
