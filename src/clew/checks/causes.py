"""Which finding explains which, so that a reader sees the root cause first.

Each check declares its possible causes and effects (`Check.caused_by`, `causes`, `groups`); here this
becomes one table, by which findings are grouped. A cause counts only if it was also found, and began no
later than its effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from clew.checks.base import Check
from clew.records.finding import Finding, Severity

GROUPS: Mapping[str, str] = {
    "loop-faults": "a call of the training loop is missing or in the wrong place",
    "wiring-faults": "parameters that the loss, the optimizer or the model does not reach",
    "loss-faults": "a loss that does not fit what the model returns",
    "scale-faults": "numbers that come in too large, too small or changed",
    "data-faults": "batches from which little can be learned",
    "rate-faults": "a learning rate or a schedule that does not fit",
    "step-size-faults": "each update goes too far",
    "layer-faults": "layers that pass on too little, or not what was intended",
    "network-faults": "the network does not compute what was intended; only an experiment shows it",
    "loading-faults": "each sample takes longer to load than it must",
    "learning-faults": "everything that can keep a network from learning",
}
# Groups that consist of other groups, besides the checks that name them.
WIDER: Mapping[str, tuple[str, ...]] = {
    "learning-faults": (
        "loop-faults",
        "wiring-faults",
        "loss-faults",
        "scale-faults",
        "data-faults",
        "rate-faults",
        "layer-faults",
        "network-faults",
    ),
}


SPEED = "PERF"  # the ids of the checks of speed begin so


class Causes:
    """The possible causes of each check, as the checks declare them: a mapping from effect to causes."""

    def __init__(self, checks: Iterable[Check | type[Check]]) -> None:
        known = list(checks)
        self.symptoms = frozenset(check.name for check in known if check.symptom)
        self.from_the_start = frozenset(check.name for check in known if check.from_the_start)
        self._members = {group: list(_members(group, known)) for group in GROUPS}
        self._causes = {check.name: self._said_by_effect(check) for check in known}
        for check in known:
            for effect in self._expanded(check.causes):
                self._causes.setdefault(effect, {}).setdefault(check.name)

    def of(self, effect: str) -> tuple[str, ...]:
        """The direct causes of a check: in the order in which it names them, then those that name it."""
        return tuple(self._causes.get(effect, ()))

    def _said_by_effect(self, check: Check | type[Check]) -> dict[str, None]:
        exempt = {check.name, *self._expanded(check.not_caused_by)}
        return {name: None for name in self._expanded(check.caused_by) if name not in exempt}

    def _expanded(self, names: Iterable[str]) -> Iterator[str]:
        """Names of checks, for names of checks and groups."""
        for name in names:
            yield from self._members.get(name, (name,))


def _members(group: str, checks: Sequence[Check | type[Check]]) -> Iterator[str]:
    """The checks of a group, those of the groups inside it first."""
    for narrower in WIDER.get(group, ()):
        yield from _members(narrower, checks)
    yield from (check.name for check in checks if group in check.groups)


def folded(findings: Sequence[Finding], causes: Causes) -> list[Finding]:
    """The findings with their `because`: root causes first, each followed by its effects.

    A symptom that none of its known causes explains is attributed to the worst fault: it is listed on
    its own only where nothing else is wrong.
    """
    found = {f.check: f for f in findings}
    reasons = {f.check: _nearest(f.check, found, causes) for f in findings}
    culprits = [f for f in findings if f.check not in causes.symptoms and _spoils_training(f)]
    roots = [f for f in culprits if not reasons[f.check]]
    worst = min(roots, key=lambda f: f.severity.rank, default=None)
    for name in causes.symptoms:
        if name in found and not reasons[name] and worst is not None:
            reasons[name] = [worst.check]
    explained = {name: f.with_because([found[c].id for c in reasons[name]]) for name, f in found.items()}
    effects = {name: [e for e in found if name in reasons[e]] for name in found}
    ordered: list[str] = []
    for root in sorted((n for n in found if not reasons[n]), key=lambda name: _urgency(name, found, effects)):
        _place(root, found, reasons, effects, ordered)
    return [explained[name] for name in ordered]


def _spoils_training(finding: Finding) -> bool:
    """Whether a finding can explain bad training: slow code learns as well, and advice is not a fault."""
    return finding.severity is not Severity.ADVICE and not finding.id.startswith(SPEED)


def possible_causes(findings: Sequence[Finding], causes: Causes) -> list[str]:
    """Possible causes of the findings, the nearest to the first of them first."""
    names: dict[str, None] = {}
    waiting = [finding.check for finding in findings]
    while waiting:
        direct = causes.of(waiting.pop(0))
        waiting += [cause for cause in direct if cause not in names]
        names.update(dict.fromkeys(direct))
    return list(names)


def _nearest(name: str, found: Mapping[str, Finding], causes: Causes) -> list[str]:
    """The causes found, without those that only act through another cause.

    Custom checks may name each other in a circle. Such causes act through themselves, so none is kept.
    """
    direct = _found_causes(name, found, causes)
    indirect = {further for cause in direct for further in _all_causes(cause, found, causes)}
    return [cause for cause in direct if cause not in indirect]


def _found_causes(name: str, found: Mapping[str, Finding], causes: Causes) -> list[str]:
    return [c for c in causes.of(name) if c in found and _may_cause(found[c], found[name], causes)]


def _all_causes(name: str, found: Mapping[str, Finding], causes: Causes) -> set[str]:
    """The causes found, and their causes."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        fresh = set(_found_causes(waiting.pop(), found, causes)) - seen
        seen |= fresh
        waiting += fresh
    return seen


def _may_cause(cause: Finding, effect: Finding, causes: Causes) -> bool:
    """Whether a cause began no later than its effect. Advice does not explain a fault."""
    hint = cause.severity is Severity.ADVICE and effect.severity is not Severity.ADVICE
    in_time = cause.step is None or effect.step is None or cause.step <= effect.step
    in_time |= cause.check in causes.from_the_start
    return in_time and not hint


def _urgency(
    name: str, found: Mapping[str, Finding], effects: Mapping[str, Sequence[str]]
) -> tuple[int, int, int, str]:
    """The order of roots: by the worst finding that follows from each, then by their own severity."""
    own = found[name]
    worst = min((found[n].severity.rank for n in _family(name, effects)), default=own.severity.rank)
    return worst, own.severity.rank, own.step if own.step is not None else -1, own.id


def _family(name: str, effects: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield name
    for effect in effects[name]:
        yield from _family(effect, effects)


def _place(
    name: str,
    found: Mapping[str, Finding],
    reasons: Mapping[str, Sequence[str]],
    effects: Mapping[str, Sequence[str]],
    ordered: list[str],
) -> None:
    """Append a finding and its effects, depth first; an effect of two causes waits for the second."""
    ordered.append(name)
    for effect in sorted(effects[name], key=lambda n: _urgency(n, found, effects)):
        if effect not in ordered and all(cause in ordered for cause in reasons[effect]):
            _place(effect, found, reasons, effects, ordered)
