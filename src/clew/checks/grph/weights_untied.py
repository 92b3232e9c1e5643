"""GRPH004 weights-untied

## What it detects
Weights that two layers shared and no longer do, because one of them was reassigned or its layer
replaced; an output layer that got a copy of the embedding instead of the embedding itself; and
checkpoints of which a large part did not match (`strict=False`).

## Why is this bad?
Two layers that should share a weight drift apart: the model has more parameters and fewer gradients for
each. A checkpoint whose keys do not match silently leaves layers at their random weights.

## How to fix
Tie the weights last, after every replacement: `model.head.weight = model.embed.weight`. Look at
what `load_state_dict(..., strict=False)` returns, and rename the keys of the checkpoint.

## Known problems
Leaving a head or a backbone out of a checkpoint is normal in fine-tuning and is not reported, as long as
most keys match and no unmatched key looks like a renamed one. Untying on purpose looks the same as a
mistake.

## References
- Press & Wolf 2017, Using the output embedding to improve language models.
- PyTorch docs, torch.nn.Module.load_state_dict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.run_view import RunView
from clew.checks.wording import in_code, listed
from clew.records.facts.model_facts import ParametersFact, StateLoadedFact, UntiedFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site

HOW = {
    "copied": "starts as a copy of {first}, and is updated separately",
    "assigned": "used to be {first}; one of the two was reassigned",
    "replaced": "replaced a layer whose weight was {first}, and is not tied to it",
}


@dataclass(frozen=True)
class WeightsUntied(Check):
    id = "GRPH004"
    name = "weights-untied"
    needs = (ParametersFact,)

    matched: float = 0.5  # least share of the model's keys that a partial checkpoint should fill

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        yield from (self._untied(fact) for fact in run.known(UntiedFact) if _trained(run, fact))
        for loaded in run.known(StateLoadedFact):
            yield from self._loaded_in_part(loaded)

    def _untied(self, fact: UntiedFact) -> Finding:
        first, second = fact.first or "?", fact.second or "?"
        how = HOW.get(fact.how, HOW["assigned"]).format(first=first)
        module, _, param = second.rpartition(".")
        return self.finding(
            Severity.WARNING,
            message=f"{second} is no longer tied: it {how}"
            if fact.how != "copied"
            else f"{second} {how}: they are equal at first, but not tied",
            fix=f"{in_code(second)} = {in_code(first)}  # last, after every replacement",
            site=Site(module=module, param=param, root=fact.root, file=fact.file, line=fact.line),
            step=fact.step,
            evidence=Evidence(f"{first} and {second} are two parameters of the same shape"),
        )

    def _loaded_in_part(self, fact: StateLoadedFact) -> Iterator[Finding]:
        missing, unexpected, keys = fact.missing, fact.unexpected, fact.keys
        count = fact.missing_count or len(missing)
        renamed = _renamed(missing, unexpected)
        fills = (keys - count) / max(keys, 1)
        if not keys or not unexpected or not (renamed or fills < self.matched):
            return
        evidence = [
            Evidence(f"keep their initial values: {listed(missing, 6)}"),
            Evidence(f"in the checkpoint, but not used: {listed(unexpected, 6)}"),
        ]
        prefix = f"; {renamed[0]} is called {renamed[1]} in the checkpoint" if renamed else ""
        yield self.finding(
            Severity.WARNING,
            message=f"the checkpoint fills {keys - count} of {keys} entries of {fact.kind}; the "
            f"rest keep their initial values{prefix}",
            fix=_rename(*renamed)
            if renamed
            else "model.load_state_dict(state)  # strict, and make the keys match",
            site=Site(op="load", file=fact.file, line=fact.line),
            step=fact.step,
            evidence=evidence,
        )


def _trained(run: RunView, fact: UntiedFact) -> bool:
    known = run.parameters.get(fact.root)
    return known is not None and known.optimised


def _renamed(missing: tuple[str, ...], unexpected: tuple[str, ...]) -> tuple[str, str] | None:
    """A missing key and an unexpected one that differ by a prefix only: `module.fc.weight`."""
    strangers = set(unexpected)
    for key in missing:
        for other in strangers:
            if other.endswith(f".{key}") or (key.endswith(f".{other}") and "." in other):
                return key, other
    return None


def _rename(key: str, other: str) -> str:
    if other.endswith(key):
        return f"state = {{k.removeprefix({other.removesuffix(key)!r}): v for k, v in state.items()}}"
    return f"state = {{{key.removesuffix(other)!r} + k: v for k, v in state.items()}}"
