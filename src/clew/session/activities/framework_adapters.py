"""Adapters of training frameworks, each attached when the program imports its framework."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from clew.hooks.entry.after_import import AfterImport
from clew.records.extensions import CannotRegister, Extensions, must_be_named
from clew.records.facts.run_facts import FrameworkFact
from clew.session.active_session import active
from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher
    from clew.session.session import Session


class FrameworkRun:
    """What an adapter can do with the run: name models, pass on metrics and settings, guard its hooks."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name

    def introduce(self, *things: Any) -> None:
        """Name models and optimizers before they are first used."""
        self._session.introduce(*things)

    def log(self, values: Mapping[str, Any]) -> None:
        """Record metrics that the framework computed, at the step that they belong to."""
        self._session.guarded(f"framework {self._name}", lambda: self._session.user_log.log(values))

    def config(self, values: Mapping[str, Any]) -> None:
        """Record hyperparameters that the framework knows."""
        self._session.guarded(f"framework {self._name}", lambda: self._session.user_log.config(values))

    def guarded(self, function: Any) -> Any:
        """Guard a hook that is passed to the framework: it never raises, and returns None."""
        return self._session.guard.probe(f"framework {self._name}", function)


class FrameworkAdapter(Protocol):
    """Knows one framework. `detach()` is optional, and removes what `attach` has installed."""

    name: str
    module: str  # its import shows that the program uses the framework

    def attach(self, run: FrameworkRun) -> None:
        """The module has just been imported, or a run has begun after that."""


def as_framework(given: Any) -> FrameworkAdapter:
    """Accept an adapter, or its class."""
    adapter = given() if isinstance(given, type) else given
    for member in ("name", "module", "attach"):
        if not hasattr(adapter, member):
            raise CannotRegister(f"a framework adapter has name, module and attach(run); {member} is missing")
    must_be_named("a framework", adapter.name)
    found: FrameworkAdapter = adapter
    return found


FRAMEWORKS: Extensions[FrameworkAdapter] = Extensions("clew.frameworks", lambda given, _: as_framework(given))


def register_framework(given: Any) -> None:
    """Attach it in every run of this process whose program imports the framework."""
    adapter = as_framework(given)
    FRAMEWORKS.add(adapter.name, adapter)


class FrameworkAdapters(Activity):
    """Waits until the frameworks are imported."""

    name = "frameworks"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._waiting: list[AfterImport] = []
        self._attached: dict[str, FrameworkAdapter] = {}

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Adapters may also be registered later, by the program."""
        for name, reason in FRAMEWORKS.broken().items():
            self._session.report_incident(f"the framework adapter {name} {reason}")
        FRAMEWORKS.listeners.append(self._wait)
        for name, adapter in FRAMEWORKS.all().items():
            self._wait(name, adapter)

    def _wait(self, name: str, adapter: FrameworkAdapter) -> None:
        def imported() -> None:
            if active() is not self._session:  # a forked child: the run belongs to the parent
                return
            self._session.guarded(f"framework {name}", lambda: self._attach(adapter))

        waiting = AfterImport(adapter.module, imported)
        self._waiting.append(waiting)
        waiting.install()

    def _attach(self, adapter: FrameworkAdapter) -> None:
        version = getattr(sys.modules.get(adapter.module), "__version__", None)
        fact = FrameworkFact(adapter.name, None if version is None else str(version))
        fact.write(self._session.writer, self._session.step)
        self._attached[adapter.name] = adapter
        adapter.attach(FrameworkRun(self._session, adapter.name))

    def stop(self) -> None:
        """The run is over: remove everything that adapters have installed."""
        if self._wait in FRAMEWORKS.listeners:
            FRAMEWORKS.listeners.remove(self._wait)
        for waiting in self._waiting:
            waiting.remove()
        for name, adapter in self._attached.items():
            detach = getattr(adapter, "detach", None)
            if detach is not None:
                self._session.guarded(f"framework {name}", detach)
