"""Attaches a session to torch as soon as it is imported: the watcher, the seams and the activities."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from clew.hooks.entry.after_import import AfterImport
from clew.hooks.entry.guard import INJECT
from clew.records.facts.run_facts import VersionsFact
from clew.render.run_summary import NO_STEP

if TYPE_CHECKING:
    from clew.hooks.seams.torch_hooks import Seams
    from clew.session.session import Session


class TorchAttachment:
    """Sets the session's `watcher` and `seams` once torch has been imported."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._importing = AfterImport("torch", lambda: session.guarded("attach", self._attach))
        self._introduced: list[Any] = []  # models and optimizers given before there is a watcher

    def wait(self) -> None:
        """Attach as soon as torch is imported, which may be now."""
        self._importing.install()

    def stop_waiting(self) -> None:
        """The run is over: do nothing when torch is imported."""
        self._importing.remove()

    def _attach(self) -> None:
        from clew.hooks.seams.torch_hooks import Seams
        from clew.hooks.steps.watcher import Watcher

        session, torch = self._session, sys.modules["torch"]
        guard, options = session.guard, session.options
        VersionsFact(str(torch.__version__), torch.get_num_threads()).write(session.writer, 0)
        watcher = Watcher(session.writer, guard, budget=options.budget, every_step=options.every_step)
        seams = Seams(watcher, guard)
        session.watcher, session.seams = watcher, seams
        watcher.stop_before(options.steps)
        watcher.between_steps.append(session.judge.stop_if_asked)
        for activity in session.activities:
            activity.wire(watcher, guard, seams)
        self._install(seams)
        self.introduce(*self._introduced)
        if os.environ.get(INJECT) == "list":
            session.say("probes: " + " ".join(session.probes()))

    def introduce(self, *things: Any) -> None:
        """Name models and optimizers before they are first used."""
        watcher = self._session.watcher
        if watcher is None:
            self._introduced.extend(things)
            return
        for thing in things:
            watcher.introduce(thing)

    def detach(self) -> None:
        """Remove everything of Clew's from torch."""
        if self._session.seams is not None:
            self._session.seams.remove()
        for activity in self._session.activities:
            activity.detached()

    def reattach(self) -> None:
        """After a pause."""
        if self._session.seams is not None:
            self._install(self._session.seams)

    def _install(self, seams: Seams) -> None:
        seams.install()
        for activity in self._session.activities:
            activity.attached(self._session.guard)

    def why_idle(self) -> str:
        """Why there is nothing to check."""
        if self._importing.not_found:
            return "the script needs torch, which is not installed here: pip install torch"
        return "the script never imported torch" if self._session.watcher is None else NO_STEP
