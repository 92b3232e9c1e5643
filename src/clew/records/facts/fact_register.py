"""The register of facts: every kind that Clew records, in the order of the documentation.

To add a kind, add its dataclass to one of the files here, and write it in its collector.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from clew.records.facts import (
    document_facts,
    experiment_facts,
    loader_facts,
    loss_facts,
    model_facts,
    nan_facts,
    profile_facts,
    run_facts,
    step_facts,
)
from clew.records.facts.experiment_facts import PREFIX, ExperimentFact
from clew.records.facts.fact import TypedFact

ROOMS = (
    model_facts,
    step_facts,
    loss_facts,
    nan_facts,
    run_facts,
    experiment_facts,
    profile_facts,
    loader_facts,
    document_facts,
)


def _kinds(module: ModuleType) -> Iterator[type[TypedFact]]:
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, TypedFact) and value.__module__ == module.__name__:
            yield value


FACTS = {kind.fact_kind: kind for module in ROOMS for kind in _kinds(module)}


def find_fact(kind: str) -> type[TypedFact] | None:
    """The dataclass of a kind of fact; an unknown experiment has the fields of all experiments."""
    known = FACTS.get(kind)
    return ExperimentFact if known is None and kind.startswith(PREFIX) else known
