"""What a check needs to have been recorded: signals and kinds of facts of the register, or one of several.

Built-in checks name objects, so that a check with a need that nothing records can't be imported. Custom
checks get the same from `clew.extend`: `recorded_signal`, `recorded_fact`, `experiment_result`, `any_of`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from clew.records.facts.experiment_facts import PREFIX
from clew.records.facts.fact import TypedFact
from clew.records.signal_types import Signal

FACT = "fact:"  # begins the name of a fact in text: what a verdict and the pages of checks show


@dataclass(frozen=True)
class NamedSignal:
    """A signal that the register does not list: the user's own, or one of a newer version."""

    name: str


@dataclass(frozen=True)
class NamedFact:
    """A kind of fact by its name alone."""

    kind: str


One: TypeAlias = Signal | type[TypedFact] | NamedSignal | NamedFact


@dataclass(frozen=True)
class AnyOf:
    """A need that any one of these meets."""

    options: tuple[One, ...]


Need: TypeAlias = One | AnyOf | str


def any_of(*options: One) -> AnyOf:
    """A need that any one of several signals or facts meets."""
    return AnyOf(options)


def recorded_signal(name: str) -> NamedSignal:
    """The need for a signal, such as one that a program logs."""
    return NamedSignal(name)


def recorded_fact(kind: str) -> NamedFact:
    """The need for a fact of this kind."""
    return NamedFact(kind)


def experiment_result(name: str) -> NamedFact:
    """The need for the result of an experiment."""
    return NamedFact(f"{PREFIX}{name}")


def options(need: Need) -> tuple[One, ...]:
    """Everything that would meet a need, in the order in which it was written."""
    if isinstance(need, AnyOf):
        return need.options
    if isinstance(need, str):
        return tuple(_read(name) for name in need.split("|"))
    return (need,)


def _read(text: str) -> One:
    """Needs were text once: `"loss"`, `"fact:optimizer"`, `"a|b"`. Kept so that such checks still run."""
    return NamedFact(text.removeprefix(FACT)) if text.startswith(FACT) else NamedSignal(text)


def fact_kind(option: One) -> str | None:
    """The kind of fact; None if it is a signal."""
    if isinstance(option, NamedFact):
        return option.kind
    return option.fact_kind if isinstance(option, type) else None


def text_of(option: One) -> str:
    """As a user writes it."""
    kind = fact_kind(option)
    if kind is not None:
        return f"{FACT}{kind}"
    assert isinstance(option, (Signal, NamedSignal))
    return option.name


def fact_kinds(needs: Iterable[Need]) -> set[str]:
    """All kinds of facts that would meet any of these needs."""
    kinds = (fact_kind(option) for need in needs for option in options(need))
    return {kind for kind in kinds if kind is not None}


def of_experiment(option: One) -> bool:
    """Whether it is the result of an experiment."""
    kind = fact_kind(option)
    return kind is not None and kind.startswith(PREFIX)
