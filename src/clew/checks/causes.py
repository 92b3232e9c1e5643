"""Which finding explains which, so that a reader sees the root cause first.

The table is what an experienced engineer would say: fix the left one last. A cause counts only
if it was found too and was visible no later than its effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from clew.records import Finding

CAUSES: Mapping[str, tuple[str, ...]] = {
    "non-finite": ("exploding-gradient", "learning-rate-too-high"),
    "exploding-gradient": ("learning-rate-too-high", "missing-zero-grad", "unnormalised-input"),
    "learning-rate-too-high": ("missing-zero-grad", "unnormalised-input"),
    "dead-units": ("learning-rate-too-high", "missing-zero-grad", "unnormalised-input"),
    # Large inputs saturate what squashes them; a layer of dead units passes nothing on.
    "vanishing-gradient": ("dead-units", "learning-rate-too-high", "unnormalised-input"),
}


def folded(findings: Sequence[Finding]) -> list[Finding]:
    """The findings with their `because`, root causes first and each followed by its effects."""
    found = {f.check: f for f in findings}
    reasons = {f.check: _nearest(f.check, found) for f in findings}
    explained = {name: f.with_because([found[c].id for c in reasons[name]]) for name, f in found.items()}
    effects = {name: [e for e in found if name in reasons[e]] for name in found}
    roots = [name for name in found if not reasons[name]]
    ordered: list[str] = []
    for root in sorted(roots, key=lambda name: _urgency(name, found, effects)):
        _place(root, found, reasons, effects, ordered)
    return [explained[name] for name in ordered]


def _nearest(name: str, found: Mapping[str, Finding]) -> list[str]:
    """The causes found, without those that only act through another one of them."""
    direct = [c for c in CAUSES.get(name, ()) if c in found and _not_later(found[c], found[name])]
    indirect = {further for cause in direct for further in _all_causes(cause, found)}
    return [cause for cause in direct if cause not in indirect]


def _all_causes(name: str, found: Mapping[str, Finding]) -> Iterator[str]:
    for cause in CAUSES.get(name, ()):
        if cause in found and _not_later(found[cause], found[name]):
            yield cause
            yield from _all_causes(cause, found)


def _not_later(cause: Finding, effect: Finding) -> bool:
    return cause.step is None or effect.step is None or cause.step <= effect.step


def _urgency(
    name: str, found: Mapping[str, Finding], effects: Mapping[str, Sequence[str]]
) -> tuple[int, int, int, str]:
    """A root is as severe as the worst thing that follows from it."""
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
    """Depth first; an effect of two causes waits for the second."""
    ordered.append(name)
    for effect in sorted(effects[name], key=lambda n: _urgency(n, found, effects)):
        if effect not in ordered and all(cause in ordered for cause in reasons[effect]):
            _place(effect, found, reasons, effects, ordered)
