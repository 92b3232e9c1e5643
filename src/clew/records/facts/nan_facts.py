"""Facts about non-finite values: the alarm, what the replay of the step found, and the repro."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from clew.records.codec import sparse
from clew.records.facts.fact import TypedFact

PLACES = ("loss", "gradient", "evaluation")


@dataclass(frozen=True)
class NonFiniteFact(TypedFact):
    """`where` (`loss`, `gradient`, or `evaluation`: a loss without gradients), `file`, `line`, `parameters`
    (names with non-finite gradients, at most 20), `bad_weights` (names already non-finite before the step),
    `bad_inputs` (inputs of the batch that are non-finite), `explained` (the step is run again now, and the
    fact `explained` says when that is over); where a GradScaler skips every step: `kind` (`nan` or `inf`),
    `skipped` (steps in a row), `scale` (null: not at hand). Of an evaluation, `bad_inputs` are `prediction`
    and `target` of the loss, `bad_weights` buffers, too, `samples` the rows of the prediction that are bad
    (at most 64), `batch` how many rows it has.
    """

    fact_kind = "nonfinite"

    where: str = "gradient"
    kind: str | None = sparse()  # "nan" or "inf", if no number was recorded
    file: str | None = None
    line: int | None = None
    parameters: tuple[str, ...] = ()
    bad_weights: tuple[str, ...] = ()
    bad_inputs: tuple[str, ...] = ()
    skipped: int = 0  # steps in a row that a GradScaler skipped
    scale: float | None = None  # its current value
    samples: tuple[int, ...] = ()  # rows of an evaluation's batch with bad predictions
    batch: int = 0  # number of samples in it
    explained: bool = False

    @classmethod
    def read(cls, data: Mapping[str, Any], step: int = 0) -> NonFiniteFact:
        fact = super().read(data, step)
        return fact if fact.where in PLACES else replace(fact, where="gradient")


@dataclass(frozen=True)
class ExplainedFact(TypedFact):
    """Running the step of an alarm again is over, whatever it found: `where` (the alarm). Until then a live
    verdict waits.
    """

    fact_kind = "explained"

    where: str = ""


@dataclass(frozen=True)
class CulpritFact(TypedFact):
    """What running the step of the alarm again has found. `where` (the alarm: `loss` or `gradient`),
    `found`; if false, `reason`, and `computed` (what was not finite is known to be the program's own work).
    Else `phase` (`forward`, `backward`; `batch`: an input was bad, `parameter`: it was so when the step
    began, `by_update` if an update is known to have done it), `op`, `result` (`nan` or `inf`), `why`,
    `fix`, `sentence` (op and why in one), `module`, `root`, `file`, `line`, `code` (the text on that line);
    `inputs`: `[{name, shape, dtype, min, max, nonfinite, count}]`; `elements` (indices, at most 8) with
    `element_values`, into `elements_of`; `element_count` (all of those), `bad_count` (elements of the
    result that are not finite), `samples` (rows of the batch, at most 8), `sample_count` (all of those),
    `batch` (rows there are), `call` (`[17, 24]`: this call of the line, of all in the step), `micro_batch`
    (`[n, n]`: the n-th backward on its line before one update), `reproduced` (the loss came out as it had
    been), `notes`.
    """

    fact_kind = "culprit"

    where: str = ""
    found: bool = False
    reason: str = ""
    computed: bool = False
    phase: str = ""
    op: str = ""
    result: str = ""
    why: str = ""
    fix: str = ""
    module: str | None = None
    root: str | None = None
    file: str | None = None
    line: int | None = None
    code: str | None = None
    inputs: tuple[Mapping[str, Any], ...] = ()
    elements: tuple[tuple[int, ...], ...] = ()
    element_values: tuple[Any, ...] = ()
    elements_of: str = ""
    bad_count: int = 0
    element_count: int = 0
    samples: tuple[int, ...] = ()
    sample_count: int = 0
    batch: int = 0
    call: tuple[int, int] | None = None
    micro_batch: tuple[int, int] | None = None
    reproduced: bool = True
    by_update: bool = True  # if it was not recorded: an update is the likely cause
    notes: tuple[str, ...] = ()
    sentence: str = ""

    def to_json(self) -> dict[str, Any]:
        """A replay that found nothing has only its reason; one that found a culprit has none."""
        data = super().to_json()
        if not self.found:
            return {key: data[key] for key in _REPLAY}
        return {key: value for key, value in data.items() if key not in ("reason", "computed")}


_REPLAY = ("where", "found", "reason", "computed")  # fields about the replay, not about the culprit


@dataclass(frozen=True)
class TracedFact(CulpritFact):
    """With `--trace-numerics`: an operation or layer that made a non-finite value; fields as `culprit`."""

    fact_kind = "traced"

    def to_json(self) -> dict[str, Any]:
        """Nothing was replayed, so only the culprit is written."""
        return {key: value for key, value in TypedFact.to_json(self).items() if key not in _REPLAY}


@dataclass(frozen=True)
class ReproFact(TypedFact):
    """The step that went wrong was saved: `written`, `path`, `missing` (what could not be saved), `shown`
    (run from what was saved, the failure was there again; null: it could not be tried); `reason`, if it was
    not written or not shown.
    """

    fact_kind = "repro"

    written: bool = False
    path: str | None = sparse()
    missing: tuple[str, ...] | None = sparse()
    shown: bool | None = True
    reason: str | None = sparse()

    def to_json(self) -> dict[str, Any]:
        """`shown` is about a step that was written; there, null says that it could not be tried."""
        data = super().to_json()
        if not self.written:
            del data["shown"]
        return data
