"""A session's hold on torch: waits until torch is imported, attaches the watcher and wires the activities."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from clew.hooks.entry.after_import import AfterImport
from clew.hooks.entry.guard import INJECT
from clew.records.facts.run_facts import VersionsFact

if TYPE_CHECKING:
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.session.session import Session


class TorchAttachment:
    """`watcher` and `seams` are None until torch has been imported."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._importing = AfterImport("torch", lambda: session.guarded("attach", self._attach))
        self._named: list[Any] = []  # models and optimizers given before there is a watcher
        self.watcher: Watcher | None = None
        self.seams: Seams | None = None

    def wait(self) -> None:
        """Attach as soon as torch is imported, which may be now."""
        self._importing.install()

    def stop_waiting(self) -> None:
        """The run is over: torch may be imported without us."""
        self._importing.remove()

    @property
    def missing(self) -> bool:
        """The program imported torch in vain: it is not installed."""
        return self._importing.not_found

    def _attach(self) -> None:
        from clew.hooks.seams.torch_hooks import Seams
        from clew.hooks.steps.watcher import Watcher

        session, torch = self._session, sys.modules["torch"]
        guard, options = session.guard, session.options
        VersionsFact(str(torch.__version__), torch.get_num_threads()).write(session.writer, 0)
        watcher = Watcher(session.writer, guard, budget=options.budget, every_step=options.every_step)
        self.watcher, self.seams = watcher, Seams(watcher, guard)
        watcher.limit = options.steps
        watcher.between_steps.append(session.judge.stop_if_asked)
        for activity in session.activities:
            activity.wire(watcher, guard, self.seams)
        self.seams.install()
        for activity in session.activities:
            activity.attached(guard)
        self.introduce(*self._named)
        if os.environ.get(INJECT) == "list":
            session.say("probes: " + " ".join(session.probes()))

    def introduce(self, *things: Any) -> None:
        """Name models and optimizers before they are first used."""
        if self.watcher is None:
            self._named.extend(things)
            return
        for thing in things:
            self.watcher.introduce(thing)

    def detach(self) -> None:
        """Nothing of Clew's is left in torch."""
        if self.seams is not None:
            self.seams.remove()
        for activity in self._session.activities:
            activity.detached()

    def reattach(self) -> None:
        """After a pause."""
        if self.seams is not None:
            self.seams.install()
