"""Facts of `clew profile`: patterns in a program that cost time. For the profile see `step_costs.Profile`."""

from __future__ import annotations

from dataclasses import dataclass

from clew.records.codec import keyed, sparse
from clew.records.facts.fact import TypedFact


@dataclass(frozen=True)
class BatchPart:
    """A tensor of a batch, as it is and in the narrowest type that holds its values."""

    shape: tuple[int, ...] = ()
    dtype: str = ""
    bytes: int = 0
    fits: str = ""
    narrow_bytes: int = 0


@dataclass(frozen=True)
class PythonLine:
    """A line of the user's code, and the share of a step that it takes."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    code: str = ""
    share: float = 0.0


@dataclass(frozen=True)
class LoadingFact(TypedFact):
    """By `clew profile`: how one loader's batches arrive. `loader` (index), `batches` (per step),
    `seconds` and `cpu` (of the training thread, per batch), `samples`; `parts`: `[{shape, dtype, bytes,
    fits (the narrowest type that can hold the values), narrow_bytes}]` of one batch; `move` and
    `narrow_move` (seconds to pass it to another process, as it is and in the narrowest types; 0 without
    workers), `starts` (how often an iteration began), `starting` (mean seconds that took).
    """

    fact_kind = "profile.loading"

    loader: int | None = None
    batches: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0
    samples: int = 0
    parts: tuple[BatchPart, ...] = ()
    move: float = 0.0
    narrow_move: float = 0.0
    starts: int = 0
    starting: float = 0.0


@dataclass(frozen=True)
class BuiltTensorsFact(TypedFact):
    """By `clew profile`: calls of `torch.tensor` on lists from one line: `file`, `line`, `of` (`arrays`
    or `numbers`), `function`, and per step `calls`, `seconds`, `needed` (seconds if built from a single
    array); `step` (seconds of a step), `elements` (of the largest).
    """

    fact_kind = "profile.tensors"

    file: str | None = None
    line: int | None = None
    of: str = ""
    function: str = ""
    calls: float = 0.0
    seconds: float = 0.0
    needed: float = 0.0
    elements: int = 0
    step_seconds: float = keyed("step", 0.0)


@dataclass(frozen=True)
class PythonTimeFact(TypedFact):
    """By `clew profile`, as shares of a step: `sampled` (Python code outside torch, loading and logging),
    `left` (time in which torch's profiler saw no operation), `lines`: `[{file, line, function, code,
    share}]`.
    """

    fact_kind = "profile.python"

    sampled: float = 0.0
    left: float = 0.0
    lines: tuple[PythonLine, ...] = ()


@dataclass(frozen=True)
class EvaluationGraphFact(TypedFact):
    """By `clew profile`: forwards in evaluation mode with gradients, and no backward after them: `root`,
    `file`, `line`, `sections`, `seconds` (of all sections), `run` (of the whole run).
    """

    fact_kind = "profile.evaluation"

    root: str = ""
    file: str | None = None
    line: int | None = None
    sections: int = 0
    seconds: float = 0.0
    run: float = 0.0


@dataclass(frozen=True)
class KeptDataFact(TypedFact):
    """By `clew profile`: how a dataset stores its data: `loader`, `attribute`, `of` (`list` of lists of
    Python numbers, or `float64`), `items`, `numbers` (per item of a list; in all of an array), `seconds`
    (to make a tensor of an item), `needed` (to copy the item from a tensor).
    """

    fact_kind = "profile.kept"

    loader: int | None = None
    attribute: str = ""
    of: str = ""
    items: int = 0
    numbers: int = 0
    seconds: float | None = sparse()
    needed: float | None = sparse()
