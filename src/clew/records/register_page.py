"""Tables of docs/signals.md, generated from the register; `scripts/docs` inserts them between their marks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from clew.records import events
from clew.records.events import TypedEvent
from clew.records.facts import (
    data_experiment_facts,
    document_facts,
    experiment_facts,
    learning_experiment_facts,
    loader_facts,
    loss_facts,
    model_facts,
    nan_facts,
    network_experiment_facts,
    profile_facts,
    run_facts,
    step_facts,
)
from clew.records.facts.experiment_facts import PREFIX, ExperimentFact
from clew.records.facts.fact import TypedFact
from clew.records.signal_types import STATISTICS, Signal, TensorSignals
from clew.records.signals import REGISTER

ROOMS = (
    model_facts,
    step_facts,
    loss_facts,
    nan_facts,
    run_facts,
    experiment_facts,
    learning_experiment_facts,
    network_experiment_facts,
    data_experiment_facts,
    profile_facts,
    loader_facts,
    document_facts,
)


def _kinds(module: ModuleType) -> Iterator[type[TypedFact]]:
    for value in vars(module).values():  # a class without a kind is the base of several
        if not isinstance(value, type) or not issubclass(value, TypedFact):
            continue
        if value.__module__ == module.__name__ and hasattr(value, "fact_kind"):
            yield value


FACTS = {kind.fact_kind: kind for module in ROOMS for kind in _kinds(module)}


def find_fact(kind: str) -> type[TypedFact] | None:
    """The dataclass of a kind of fact; an unknown experiment has the fields of all experiments."""
    known = FACTS.get(kind)
    return ExperimentFact if known is None and kind.startswith(PREFIX) else known


EVENTS = {
    kind.event_kind: kind
    for kind in vars(events).values()
    if isinstance(kind, type) and issubclass(kind, TypedEvent) and hasattr(kind, "event_kind")
}

NUMBER = "number"  # the unit of a signal without one


def tables() -> dict[str, str]:
    """Each table by the name in its marks."""
    return {
        "signals": signal_table(),
        "statistics": statistic_table(),
        "facts": fact_table(),
        "events": event_table(),
    }


def filled(page: str, made: Mapping[str, str]) -> str:
    """The page with the text between `<!-- NAME: … -->` and `<!-- end of NAME -->` replaced."""
    for name, table in made.items():
        begin, end = re.search(rf"<!-- {name}: .*-->\n", page), page.find(f"<!-- end of {name} -->")
        if begin is None or end < begin.end():
            raise ValueError(f"the page has no place for the table of {name}")
        page = page[: begin.end()] + table + page[end:]
    return page


def signal_table() -> str:
    rows = [_measured_row(entry) if isinstance(entry, TensorSignals) else _row(entry) for entry in REGISTER]
    return _table(("signal", "unit", "when", "site", "meaning"), rows)


def statistic_table() -> str:
    rows = [(f"`{s.name}`", s.unit or NUMBER, s.meaning) for s in STATISTICS]
    return _table(("`*`", "unit", "meaning"), rows)


def fact_table() -> str:
    return _table(("fact", "fields"), [_documented(kind, fact) for kind, fact in FACTS.items()])


def event_table() -> str:
    return _table(("event", "fields"), [_documented(kind, event) for kind, event in EVENTS.items()])


def _documented(kind: str, record: type) -> tuple[str, str]:
    return f"`{kind}`", " ".join((record.__doc__ or "").split())


def _row(signal: Signal) -> tuple[str, ...]:
    return f"`{signal.written}`", signal.unit or NUMBER, signal.when, signal.site, signal.meaning


def _measured_row(entry: TensorSignals) -> tuple[str, ...]:
    histograms = [f"`{entry.prefix}.log2hist.…`"] if entry.log2hist else []
    histograms += [f"`{entry.prefix}.histogram.…`"] if entry.histogram else []
    also = f"; with {' and '.join(histograms)}" if histograms else ""
    return f"`{entry.prefix}.*`", "see below", entry.when, entry.site, f"{entry.meaning}{also}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---" for _ in head], *rows]
    return "".join(f"| {' | '.join(_cell(text) for text in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
