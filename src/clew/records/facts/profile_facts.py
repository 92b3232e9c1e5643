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
    """In the windows of a profile: `loader` (index), `batches` (per step), `seconds` and `cpu` (of the
    training thread, for a batch), `samples`, `parts`: `[{shape, dtype, bytes, fits (the narrowest type that
    holds the values), narrow_bytes}]` of one batch, `move`, `narrow_move` (seconds to get it into another
    process, as it is and as narrow as it could be; 0 without workers), `starts`, `starting` (how often its
    iteration began, and the mean seconds that took).
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
    """In the windows of a profile: calls of `torch.tensor` on lists from one line: `file`, `line`, `of`
    (`arrays` or `numbers`), `function`, `calls`, `seconds`, `needed` (per step; the last is what it would
    take from one array), `step` (seconds of these steps), `elements` (of the largest).
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
    """Shares of a step: `sampled` (Python's samples outside torch, loading and logging), `left` (in which
    torch's profiler saw no operation), `lines`: `[{file, line, function, code, share}]`.
    """

    fact_kind = "profile.python"

    sampled: float = 0.0
    left: float = 0.0
    lines: tuple[PythonLine, ...] = ()


@dataclass(frozen=True)
class EvaluationGraphFact(TypedFact):
    """Forwards in evaluation mode with gradients that no backward followed: `root`, `file`, `line`,
    `sections`, `seconds` (of all of them), `run` (of the whole run).
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
    """How a dataset keeps its data: `loader`, `attribute`, `of` (`list` of lists of Python numbers, or
    `float64`), `items`, `numbers` (in an item of a list; in all of an array), `seconds`, `needed` (to make
    a tensor of an item, and to copy it from one).
    """

    fact_kind = "profile.kept"

    loader: int | None = None
    attribute: str = ""
    of: str = ""
    items: int = 0
    numbers: int = 0
    seconds: float | None = sparse()
    needed: float | None = sparse()
