"""Facts about non-finite values: the alarm, what the replay of the step found, and the repro."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from clew.records.codec import json_types, sparse
from clew.records.facts.fact import TypedFact

PLACES = ("loss", "gradient", "evaluation")


@dataclass(frozen=True)
class NonFiniteFact(TypedFact):
    """A loss or gradient that is not finite: `where` (`loss`, `gradient`, or `evaluation`: a loss without
    gradients), `file`, `line`, `parameters` (names with non-finite gradients, at most 20), `bad_weights`
    (names that were non-finite before the step), `bad_inputs` (inputs of the batch that are non-finite),
    `explained` (the step is being replayed; the fact `explained` follows when that ends). If a GradScaler
    skips every step: `kind` (`nan` or `inf`), `skipped` (steps in a row), `scale` (null: unknown). In an
    evaluation, `bad_inputs` are `prediction` and `target` of the loss, `bad_weights` include buffers,
    `samples` are the rows of the prediction that are not finite (at most 64), and `batch` is the number
    of rows.
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
    """The replay of an alarm's step has ended, with or without a result: `where` (the alarm). A live
    verdict waits for it.
    """

    fact_kind = "explained"

    where: str = ""


@dataclass(frozen=True)
class OperationInput:
    """An input of the operation to blame; `min` and `max` are those of its finite elements."""

    name: str = "input"
    shape: tuple[int, ...] | None = None
    dtype: str = "?"
    min: float | None = None
    max: float | None = None
    nonfinite: int = 0
    count: int = 0

    def __str__(self) -> str:
        shape = "?" if self.shape is None else ", ".join(map(str, self.shape))
        text = f"{self.name}: {self.dtype} ({shape})"
        if self.min is not None and self.max is not None:
            text += f", from {self.min:.4g} to {self.max:.4g}"
        return text + (f", {self.nonfinite} non-finite" if self.nonfinite else "")


@dataclass(frozen=True)
class CulpritFact(TypedFact):
    """What the replay of an alarm's step found: `where` (the alarm: `loss` or `gradient`), `found`. If
    false: `reason`, and `computed` (the program's own computation is known to have caused it). If true:
    `phase` (`forward`, `backward`; `batch`: an input was not finite; `parameter`: a parameter was not
    finite when the step began, `by_update` if an update is known to have caused that), `op`, `result`
    (`nan` or `inf`), `why`, `fix`, `sentence` (op and why in one), `module`, `root`, `file`, `line`,
    `code` (the text of that line); `inputs`: `[{name, shape, dtype, min, max, nonfinite, count}]`;
    `elements` (indices into `elements_of`, at most 8) with `element_values`, `element_count` (of all such
    elements), `bad_count` (elements of the result that are not finite), `samples` (rows of the batch, at
    most 8), `sample_count` (of all such rows), `batch` (rows in the batch), `call` (`[17, 24]`: the 17th
    of the 24 calls of this line in the step), `micro_batch` (`[n, n]`: the n-th backward of this line
    before one update), `reproduced` (the replay gave the same loss), `notes`.
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
    inputs: tuple[OperationInput, ...] = ()
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
        data = json_types(super().to_json())
        if not self.found:
            return {key: data[key] for key in _REPLAY}
        return {key: value for key, value in data.items() if key not in ("reason", "computed")}


_REPLAY = ("where", "found", "reason", "computed")  # fields about the replay, not about the culprit


@dataclass(frozen=True)
class TracedFact(CulpritFact):
    """With `--trace-numerics`: an operation or layer that produced a non-finite value; fields as in
    `culprit`.
    """

    fact_kind = "traced"

    def to_json(self) -> dict[str, Any]:
        """Nothing was replayed, so only the culprit is written."""
        data = json_types(TypedFact.to_json(self))
        return {key: value for key, value in data.items() if key not in _REPLAY}


@dataclass(frozen=True)
class ReproFact(TypedFact):
    """The step that failed was saved as a program of its own: `written`, `path`, `missing` (what could
    not be saved), `shown` (running the saved step reproduces the failure; null: it could not be tried),
    `reason` (why it was not written or does not reproduce it).
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
