"""Picks the one event to blame from those of a microscope, and describes it for a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from clew.labs.replay.bad_elements import with_elements
from clew.labs.replay.microscope import (
    BATCH,
    CONSTANT,
    MADE,
    PARAMETER,
    Microscope,
    NonFiniteEvent,
    OpSpot,
    Source,
)
from clew.labs.replay.nan_reasons import explain
from clew.labs.snapshot.nonfinite_values import Culprit, bad_indices, bad_rows, dense, kind_in_words, stats_of
from clew.labs.snapshot.users_step.replay_lines import code_at
from clew.records.facts.nan_facts import OperationInput

MOST_SUSPECTS = 16  # that are described
MOST_TRIALS = 4  # each costs a run of the step
_CLEAN = "clean the data; this finds the samples: torch.isfinite(x).flatten(1).all(1)"
_SINCE_WHEN = "check how it was created or loaded, and its last updates: torch.isfinite(parameter).all()"
_HIDDEN = (
    "the value itself never reached the loss (a where or mask hid it), but its gradient did: 0 times "
    "infinity is NaN. Make the argument safe before the operation: torch.log(torch.where(ok, x, 1.0))"
)

Mended = frozenset[Source]


@dataclass(frozen=True)
class Suspect:
    """A source of non-finite values that reached the result's tensors, described."""

    source: Source
    culprit: Culprit


def find_suspects(scope: Microscope, tensors: Sequence[Tensor], batch: int | None = None) -> list[Suspect]:
    """What may have made these tensors (the loss, or the gradients) non-finite.

    The earliest first, one per source; a constant only if there is nothing else.

    Values are tracked by tensor, not by element, so some of several sources may be harmless.
    """
    found = {e.index: e for t in tensors for e in scope.origins_of(t)}
    events = [found[i] for i in sorted(found)]
    first: dict[Source, NonFiniteEvent] = {}
    for event in [e for e in events if e.kind != CONSTANT] or events[:1]:
        first.setdefault(event.source, event)
    described = []
    for source, event in list(first.items())[:MOST_SUSPECTS]:
        made = describe(event, scope, batch, hides=True)
        others = _others(event, [e for e in events if e.index > event.index])
        described.append(Suspect(source, replace(made, notes=(*made.notes, *others))))
    return described


def pick_culprit(found: Sequence[Suspect], still_bad: Callable[[Mended], bool]) -> Culprit | None:
    """The first that spoils the result by itself: `still_bad` tests this in a run with the others mended.

    The -inf of a mask that a program computes, `torch.log(keep)`, is harmless: with everything else mended
    the result is finite.
    """
    if len(found) > 1:
        for suspect in found[:MOST_TRIALS]:
            if still_bad(frozenset(other.source for other in found if other is not suspect)):
                return suspect.culprit
    return found[0].culprit if found else None


def _others(event: NonFiniteEvent, events: Sequence[NonFiniteEvent]) -> list[str]:
    """A note if several sources came together."""
    places = {
        (e.spot.op, e.spot.line[1]): None
        for e in events
        if e.kind == MADE and e.spot.op and (e.spot.op, e.spot.line) != (event.spot.op, event.spot.line)
    }
    others = [f"{op} on line {line}" if line else op for op, line in list(places)[:3]]
    return [f"later in the step these also produced non-finite values: {', '.join(others)}"] if others else []


def describe(
    event: NonFiniteEvent, scope: Microscope, batch: int | None = None, *, hides: bool = False
) -> Culprit:
    """An event described for a person; `hides`: the loss is known to be finite."""
    if event.kind in (BATCH, PARAMETER):
        return _from_outside(event, batch)
    if event.kind == CONSTANT:
        why, fix = "an infinity written on purpose (a mask) reached the result", "mask with a finite number"
        if event.label:
            why = f"{event.label} contains infinite values, and they reached the result"
    elif not event.spot.op:
        why = f"{event.label}, used on this line, contains NaN"
        fix = "check where it is computed: it was already non-finite before this line"
    else:
        why, fix = explain(event)
    made = Culprit(
        phase=event.phase,
        op=event.spot.op or "constant",
        result=event.result,
        why=why,
        fix=fix,
        module=event.spot.module,
        root=event.spot.root,
        file=event.spot.line[0],
        line=event.spot.line[1],
        code=code_at(event.spot.line),
        inputs=tuple(stats_of(f"input {n}", t) for n, t in enumerate(event.inputs[:6])),
        call=_call(event, scope),
    )
    return with_elements(_with_notes(made, event, scope, hides), event, batch)


def _from_outside(event: NonFiniteEvent, batch: int | None) -> Culprit:
    indices, count = bad_indices(event.output)
    rows = bad_rows(event.output) if batch and event.output.shape[:1] == (batch,) else ()
    values = dense(event.output)
    kind = kind_in_words(event.result)
    if event.kind == BATCH:
        which = f" in sample{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows))}" if rows else ""
        feature = f", feature {', '.join(map(str, indices[0][1:]))}" if len(indices[0]) > 1 and rows else ""
        why, fix = f"the batch itself contains {kind}: {event.label}{which}{feature}", _CLEAN
    else:
        why, fix = f"the parameter {event.label} already contained {kind} when the step began", _SINCE_WHEN
    # A parameter is reported where it was first used; for a batch that line says nothing.
    used = event.spot if event.kind == PARAMETER else OpSpot("", None, None, (None, None), 0)
    return Culprit(
        phase=event.kind,
        op=event.label,
        result=event.result,
        why=why,
        fix=fix,
        module=used.module,
        root=used.root,
        file=used.line[0],
        line=used.line[1],
        code=code_at(used.line),
        inputs=(stats_of(event.label, event.output),),
        elements=indices,
        element_values=tuple(float(values[i]) for i in indices if not values.is_complex()),
        elements_of=event.label,
        bad_count=count,
        samples=rows,
    )


def _call(event: NonFiniteEvent, scope: Microscope) -> tuple[int, int] | None:
    total = scope.calls[event.spot.op, event.spot.line]
    return (event.spot.number, total) if total > 1 and event.spot.number and event.spot.line[0] else None


def _with_notes(made: Culprit, event: NonFiniteEvent, scope: Microscope, hides: bool) -> Culprit:
    """Where forward and backward both fail and the loss is finite, something hid the value."""
    if event.phase != "backward" or not hides:
        return made
    hidden = any(
        e.phase == "forward"
        and e.kind == MADE
        and e.spot.line == event.spot.line
        and e.spot.op == event.spot.op
        for e in scope.events
    )
    return replace(made, notes=(*made.notes, _HIDDEN)) if hidden else made


def culprit_fields(culprit: Culprit) -> dict[str, Any]:
    """A culprit as the fields of its fact (`CulpritFact`, `TracedFact`)."""
    inputs = tuple(OperationInput(**vars(given)) for given in culprit.inputs)
    return {**vars(culprit), "inputs": inputs, "sentence": culprit.sentence}
