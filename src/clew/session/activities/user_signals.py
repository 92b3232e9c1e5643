"""The user's own signals: functions called on sampled steps whose numbers are recorded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.records import signals
from clew.records.extensions import CannotRegister, Extensions
from clew.records.facts.run_facts import CustomSignalFact
from clew.records.site import Site
from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from clew.hooks.entry.guard import Guard
    from clew.hooks.seams.torch_hooks import Seams
    from clew.hooks.steps.watcher import Watcher

NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


@dataclass(frozen=True)
class SampledStep:
    """What a signal is computed from: the step just before the parameters are updated."""

    step: int
    models: Mapping[str, nn.Module]  # the root modules, by their names in the run
    optimizers: tuple[Optimizer, ...]


Collect = Callable[[SampledStep], Any]


@dataclass(frozen=True)
class UserSignal:
    """A name, what it means, and how to compute it: a number, or a number for each module's path."""

    name: str
    collect: Collect
    unit: str = ""  # "s", "B", "share" (0 to 1), "count", or empty for a number without a unit
    meaning: str = ""


def as_signal(given: Any, name: str, unit: str = "", meaning: str = "") -> UserSignal:
    """Create a signal from a function, or accept an existing one."""
    if isinstance(given, UserSignal):
        return given
    if not callable(given):
        raise CannotRegister(f"a signal is a function of a step, not {type(given).__name__}")
    if not NAME.fullmatch(name):
        raise CannotRegister(f"a signal's name is lower-case words joined by dots, not {name!r}")
    if signals.find(name) is not None:
        raise CannotRegister(f"{name} is one of Clew's own signals; choose another name")
    return UserSignal(name, given, unit, meaning or (given.__doc__ or "").strip().partition("\n")[0])


SIGNALS: Extensions[UserSignal] = Extensions("clew.signals", lambda given, name: as_signal(given, name))


class UserSignals(Activity):
    """Computes each signal on each sampled step, when gradients exist and parameters are not yet updated."""

    name = "signals"

    def wire(self, watcher: Watcher, guard: Guard, seams: Seams) -> None:
        """Signals may be registered at any time, so they are looked up on each sampled step."""
        from clew.hooks.entry.sink import SiteTables  # imports numpy

        self._watcher = watcher
        self._guard = guard
        self._probes: dict[str, Callable[[SampledStep], None]] = {}
        self._tables = SiteTables(self._session.writer)
        self._last = -1
        self._installed = list(SIGNALS.installed())
        for name, reason in SIGNALS.broken().items():
            self._session.report_incident(f"the signal {name} {reason}")
        watcher.before_update.append(guard.inner(self.name, self._collect))

    def _collect(self) -> None:
        """Once per step, which may have several optimizers."""
        if self._watcher.step == self._last or not (SIGNALS.registered or self._installed):
            return
        self._last = self._watcher.step
        step = self._sampled_step()
        for name, signal in SIGNALS.all().items():
            if name not in self._probes:
                self._probes[name] = self._probe(signal)
            self._probes[name](step)

    def _sampled_step(self) -> SampledStep:
        watcher = self._watcher
        roots = [(root.name, root.module()) for root in watcher.models.roots]
        optimizers = [state.optimizer() for state in watcher.optimizers.states]
        return SampledStep(
            watcher.step,
            {name: module for name, module in roots if module is not None},
            tuple(optimizer for optimizer in optimizers if optimizer is not None),
        )

    def _probe(self, signal: UserSignal) -> Callable[[SampledStep], None]:
        """Guard one signal: a failure switches only this one off, and the random generators are restored."""
        import torch

        from clew.measure.rng import keep_rng

        known = CustomSignalFact(signal.name, signal.unit, signal.meaning)  # for readers who do not have it
        known.write(self._session.writer, self._watcher.step)

        def collect(step: SampledStep) -> None:
            with keep_rng(), torch.no_grad():
                found = signal.collect(step)
            places = found if isinstance(found, Mapping) else {"": found}
            for place, value in places.items():
                table = self._tables.table([signal.name], Site(module=str(place) or None))
                self._session.writer.row(table, step.step, (float(value),))

        return self._guard.inner(f"signal {signal.name}", collect)
