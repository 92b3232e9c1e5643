"""A run as the checks see it, whether it is still in progress or was read from disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from clew.checks.needs import Need, One, fact_kind, options, text_of
from clew.checks.series import Series
from clew.records.events import ExceptionEvent, TypedEvent, events_of
from clew.records.facts.document_facts import ProfileFact
from clew.records.facts.experiment_facts import DONE, PREFIX, ExperimentFact
from clew.records.facts.fact import FactInMemory, TypedFact
from clew.records.facts.model_facts import LayerRow, ModelFact, ParametersFact
from clew.records.facts.step_facts import OptimizerFact
from clew.records.finding import Exhibit
from clew.records.signal_types import Signal
from clew.records.site import Site
from clew.records.step_costs import Profile

Made = TypeVar("Made")
F = TypeVar("F", bound=TypedFact)
E = TypeVar("E", bound=TypedEvent)
X = TypeVar("X", bound=ExperimentFact)


class FactLike(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def step(self) -> int: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


class RunSource(Protocol):
    """What a run must provide; the store's `RunData` does."""

    @property
    def facts(self) -> Sequence[FactLike]: ...
    @property
    def events(self) -> Sequence[FactLike]: ...
    @property
    def last_step(self) -> int: ...
    @property
    def end(self) -> Mapping[str, Any] | None: ...
    def signal_names(self) -> Iterable[str]: ...
    def series(self, name: str) -> Iterator[tuple[Site, npt.NDArray[Any], npt.NDArray[Any]]]: ...


ParameterKey = tuple[str, str, str]  # root, module, param


class RunView:
    """A view of a run at one moment: create a new one when the run has grown."""

    def __init__(self, source: RunSource, ranks: Mapping[int, RunSource] | None = None) -> None:
        self._source = source
        self._ranks = ranks or {}  # all processes, including this one
        self._facts: dict[str, list[FactLike]] = {}  # by kind, in the order in which the kinds first came
        for fact in source.facts:
            if isinstance(fact, FactInMemory) or isinstance(fact.data, Mapping):
                self._facts.setdefault(fact.kind, []).append(fact)
        self._known: dict[type[TypedFact], list[Any]] = {}  # those that a check has asked for
        self._series: dict[str, list[tuple[Site, Series]]] = {}
        self._by_parameter: dict[str, dict[ParameterKey, Series]] = {}
        self._memory: dict[str, Any] = {}

    @property
    def source(self) -> RunSource:
        """What the view reads."""
        return self._source

    def once(self, key: str, make: Callable[[RunView], Made]) -> Made:
        """The result of `make` for this view, computed once for all checks."""
        if key not in self._memory:
            self._memory[key] = make(self)
        made: Made = self._memory[key]
        return made

    @cached_property
    def other_ranks(self) -> Mapping[int, RunView]:
        """What the other processes of the run have recorded, where that can be read here."""
        return {n: RunView(source) for n, source in self._ranks.items() if source is not self._source}

    @property
    def steps(self) -> int:
        """The number of steps in the run."""
        return max(self._source.last_step + 1, 0)

    @property
    def finished(self) -> bool:
        return self._source.end is not None

    @cached_property
    def _signals(self) -> frozenset[str]:
        return frozenset(self._source.signal_names())

    def has(self, need: Need) -> bool:
        """Whether a signal or a kind of fact was recorded, or one of several."""
        return any(self._has(option) for option in options(need))

    def _has(self, option: One) -> bool:
        kind = fact_kind(option)
        return text_of(option) in self._signals if kind is None else bool(self._facts.get(kind))

    def names(self, prefix: str) -> list[str]:
        """The recorded signals whose name begins so, in order."""
        return sorted(name for name in self._signals if name.startswith(prefix))

    def series(self, signal: str | Signal, phase: str | None = None) -> Iterator[tuple[Site, Series]]:
        """The signal at every site that has values; a site without a phase matches every phase."""
        name = signal if isinstance(signal, str) else signal.name
        if name not in self._series:
            self._series[name] = [
                (site, Series(name, site, steps.astype(np.int64, copy=False), values))
                for site, steps, values in self._source.series(name)
                if len(values)
            ]
        for site, series in self._series[name]:
            if phase is None or site.phase in (None, phase):
                yield site, series

    def longest(self, signal: str | Signal, phase: str | None = None) -> int:
        """The most values that the signal has at one site."""
        return max((len(series) for _, series in self.series(signal, phase)), default=0)

    def at_site(self, signal: str | Signal, site: Site) -> Series | None:
        """The signal at one site."""
        return next((series for other, series in self.series(signal) if other == site), None)

    def of_parameter(self, signal: str | Signal, key: ParameterKey) -> Series | None:
        """The signal of one parameter."""
        name = signal if isinstance(signal, str) else signal.name
        if name not in self._by_parameter:
            self._by_parameter[name] = {self.key(site): s for site, s in self.series(name)}
        return self._by_parameter[name].get(key)

    def key(self, site: Site) -> ParameterKey:
        return self._root(site), site.module or "", site.param or ""

    def facts(self, kind: str) -> list[FactLike]:
        return list(self._facts.get(kind, ()))

    def known(self, kind: type[F]) -> list[F]:
        """The facts of a kind; a field that is missing or damaged has its default."""
        read = self._known.get(kind)
        if read is None:
            recorded = self._facts.get(kind.fact_kind, ())
            read = self._known[kind] = [_read(kind, fact) for fact in recorded]
        return list(read)

    def fact_kinds(self, prefix: str) -> list[str]:
        """The kinds of facts whose name begins so, in the order in which they first came."""
        return [kind for kind in self._facts if kind.startswith(prefix)]

    def experiments(self, name: str) -> list[ExperimentFact]:
        """What the experiment of this name recorded, each time it was run."""
        return [ExperimentFact.read(fact.data, fact.step) for fact in self.facts(f"{PREFIX}{name}")]

    def experiment(self, name: str) -> Mapping[str, Any] | None:
        """The result of the experiment of this name; None if it was not run or has no result."""
        done = [fact for fact in self.experiments(name) if fact.status == DONE]
        return done[-1].data if done else None

    def outcome(self, kind: type[X]) -> X | None:
        """The result of an experiment of Clew's; None if it was not run or has no result."""
        done = [fact for fact in self.known(kind) if fact.status == DONE]
        return done[-1] if done else None

    def exhibits(self, name: str) -> tuple[Exhibit, ...]:
        """The samples that the experiment of this name has shown."""
        recorded = self.experiments(name)
        return recorded[-1].exhibits if recorded else ()

    def unanswered(self, name: str) -> str | None:
        """Why the experiment of this name gave no result, if it was run and gave none."""
        recorded = self.experiments(name)
        if not recorded or recorded[-1].status == DONE:
            return None
        reason = recorded[-1].reason or "the experiment gave no result"
        return f"{reason}; {recorded[-1].hint}" if recorded[-1].hint else reason

    def profile(self) -> Profile | None:
        """The profile of the steps, if `clew profile` has recorded one."""
        facts = self.known(ProfileFact)
        return facts[-1].content if facts else None

    def events(self, kind: str) -> list[FactLike]:
        """The events whose kind has this name, as they were recorded."""
        return [e for e in self._source.events if e.kind == kind]

    def happened(self, kind: type[E]) -> list[E]:
        """The events of a kind; a field that is missing or damaged has its default."""
        return events_of(kind, self._source.events)

    def raised(self, words: str) -> list[Site]:
        """The user's lines at which an exception with these words was raised."""
        found = self.happened(ExceptionEvent)
        return [Site(file=e.user_file, line=e.user_line) for e in found if words in e.message]

    @cached_property
    def models(self) -> dict[str, ModelFact]:
        """The newest `model` fact of every root."""
        return {m.root: m for m in self.known(ModelFact)}

    @cached_property
    def parameters(self) -> dict[str, ParametersFact]:
        """The newest `parameters` fact of every root."""
        return {p.root: p for p in self.known(ParametersFact)}

    @cached_property
    def optimizers(self) -> list[OptimizerFact]:
        return self.known(OptimizerFact)

    @cached_property
    def _several(self) -> bool:
        """Whether several models have parameters; a loss module without any does not make names ambiguous."""
        return sum(1 for model in self.models.values() if model.dims) > 1

    def _root(self, site: Site) -> str:
        if site.root is None and len(self.models) == 1:
            return next(iter(self.models))
        return site.root or ""

    def model_of(self, site: Site) -> ModelFact | None:
        return self.models.get(self._root(site))

    @cached_property
    def _layers(self) -> dict[tuple[str, str], tuple[int, LayerRow]]:
        return {
            (root, layer.path): (order, layer)
            for root, model in self.models.items()
            for order, layer in enumerate(model.layers)
        }

    def layer_of(self, site: Site) -> LayerRow | None:
        found = self._layers.get((self._root(site), site.module or ""))
        return found[1] if found and site.module is not None else None

    def depth(self, site: Site) -> int:
        """Position in the forward pass; unknown layers come last."""
        found = self._layers.get((self._root(site), site.module or ""))
        return found[0] if found else len(self._layers)

    def ndim(self, site: Site) -> int:
        """Dimensions of the site's parameter; 0 if unknown."""
        model = self.model_of(site)
        return model.dims.get((site.module or "", site.param or ""), 0) if model else 0

    def module_name(self, site: Site) -> str | None:
        """The module as a person would name it, with its root if there are several."""
        if site.module is None:
            return None
        root, model = self._root(site), self.model_of(site)
        if site.module == "":
            if self._several and root:
                return root
            return model.kind if model and model.kind else site.root or "the model"
        return f"{root}.{site.module}" if self._several and root else site.module

    def name(self, site: Site) -> str:
        """Module, parameter or call, for a message."""
        module = self.module_name(site)
        if module is None:
            return site.op or "the run"
        if site.param:
            return f"{module}.{site.param}"
        layer = self.layer_of(site)
        own = layer is not None and layer.kind.lower() == (site.op or "")
        return f"{site.op} in {module}" if site.op and not own else module  # an nn.ReLU is its own op

    def locate(self, site: Site) -> Site:
        """The site with its display name, and with the line that created the layer if it has none."""
        named = replace(site, module=self.module_name(site))
        if site.file is not None or site.module is None:
            return named
        place = self._made_at(site)
        return replace(named, file=place.file, line=place.line) if place else named

    def _made_at(self, site: Site) -> LayerRow | ModelFact | None:
        """The layer, or the nearest one around it that the user's own code created."""
        path = site.module or ""
        while path:
            layer = self.layer_of(replace(site, module=path))
            if layer and layer.file:
                return layer
            path = path.rpartition(".")[0]
        return self.model_of(site)


def _read(kind: type[F], fact: FactLike) -> F:
    """The fact as its dataclass; one of this process need not be decoded."""
    if isinstance(fact, FactInMemory) and isinstance(fact.fact, kind):
        return fact.fact
    return kind.read(fact.data, fact.step)
