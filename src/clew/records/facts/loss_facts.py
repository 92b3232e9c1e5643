"""Facts about loss calls: their inputs, where they fail, and how predictions compare with labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.records.codec import keyed, sparse
from clew.records.facts.fact import TypedFact
from clew.records.site import Site

Shape = tuple[int, ...]


@dataclass(frozen=True)
class LossFact(TypedFact):
    """A line that calls a loss function: `kind` (`cross_entropy`, `mse_loss`, …), `file`, `line`,
    `input_shape`, `input_dtype`, `target_shape`, `target_dtype`, `reduction`, `options` (its other
    arguments that are not None; `given` for tensors).
    """

    fact_kind = "loss"

    kind: str = ""
    file: str | None = None
    line: int | None = None
    input_shape: Shape | None = None
    input_dtype: str | None = None
    target_shape: Shape | None = None
    target_dtype: str | None = None
    reduction: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def weighted(self) -> bool:
        """Whether the call was given weights of classes or samples."""
        return any(self.options.get(name) is not None for name in ("weight", "pos_weight"))

    @property
    def classes(self) -> int | None:
        """Size of the class dimension: the second, or the only one of an unbatched input."""
        if not self.input_shape:
            return None
        return self.input_shape[1] if len(self.input_shape) > 1 else self.input_shape[0]


@dataclass(frozen=True)
class OutputFact(TypedFact):
    """What is passed to a loss call, written once for each kind of origin: `kind` (of the loss), `file`,
    `line`, `made_by` (the last activation before it: `sigmoid`, `relu`, `tanh`, `softmax`, `log_softmax`,
    `clamp`, …; empty: none), `dim` (of a softmax), `shape`; what was applied after that activation:
    `logged` (a logarithm), `clamped`, `picked` (indexing or slicing).
    """

    fact_kind = "output"

    kind: str = ""
    file: str | None = None
    line: int | None = None
    made_by: str = ""
    dim: int | None = None
    logged: bool = False
    clamped: bool = False
    picked: bool = False
    shape: Shape = ()

    @property
    def classes(self) -> int | None:
        """Size of the class dimension."""
        if not self.shape:
            return None
        return self.shape[1] if len(self.shape) > 1 else self.shape[0]


@dataclass(frozen=True)
class LossFailedFact(TypedFact):
    """A loss call that raised: `kind`, `file`, `line`, `error`, `message`, `input_shape`, `input_dtype`,
    `input_min`, `input_max`, `input_nan`, and the same for `target`.
    """

    fact_kind = "loss_failed"

    kind: str = ""
    file: str | None = None
    line: int | None = None
    error: str = ""
    message: str = ""
    input_shape: Shape | None = sparse()
    input_dtype: str | None = sparse()
    input_min: float | None = sparse()
    input_max: float | None = sparse()
    input_nan: bool | None = sparse()
    target_shape: Shape | None = sparse()
    target_dtype: str | None = sparse()
    target_min: float | None = sparse()
    target_max: float | None = sparse()
    target_nan: bool | None = sparse()

    @property
    def site(self) -> Site:
        return Site(op=self.kind, file=self.file, line=self.line, phase="train")

    def number(self, name: str) -> float:
        """A recorded number; NaN if it is missing."""
        value = getattr(self, name)
        return float("nan") if value is None else float(value)

    def shape(self, name: str) -> Shape:
        found: Shape | None = getattr(self, f"{name}_shape")
        return found or ()


@dataclass(frozen=True)
class BroadcastFact(TypedFact):
    """A prediction and a target that broadcast: `kind` (the loss function, or `sub`, … for hand-written
    ones), `file`, `line`, `prediction_shape`, `target_shape` (null: unknown), `result_shape`.
    """

    fact_kind = "broadcast"

    kind: str = "the loss"
    file: str | None = None
    line: int | None = None
    prediction: Shape | None = keyed("prediction_shape")
    target: Shape | None = keyed("target_shape")
    result: Shape | None = keyed("result_shape")


@dataclass(frozen=True)
class LossCutFact(TypedFact):
    """`backward()` on a loss without a graph: `requires_grad`, `grad_enabled`, `forwards` (models that
    ran with gradients since the last backward), `trainable`, `file`, `line`.
    """

    fact_kind = "loss_cut"

    requires_grad: bool = False
    grad_enabled: bool = True
    forwards: int = -1  # not known
    trainable: bool = True
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class LabelsFact(TypedFact):
    """Labels and predictions over all sampled steps so far: `kind`, `file`, `line` of a loss call;
    `counts`: `[[class, samples, predicted correctly]…]`. Written when their number has doubled, from 8
    on.
    """

    fact_kind = "labels"

    kind: str | None = None
    file: str | None = None
    line: int | None = None
    counts: tuple[tuple[int, int, int], ...] = ()

    @property
    def whole_counts(self) -> tuple[tuple[int, int, int], ...]:
        """The plausible counts: none is negative."""
        return tuple(row for row in self.counts if row[1] >= 0 and row[2] >= 0)


@dataclass(frozen=True)
class LabelSignalFact(TypedFact):
    """Written once 512 labelled samples were seen: `samples` (distinct ones), `separation` (variance
    between the classes divided by that of random labels), `neighbours` (share of samples whose nearest
    neighbour has the same label), `chance` (that share for random labels), `deviations` (the difference
    in standard errors).
    """

    fact_kind = "label_signal"

    samples: int = 0
    separation: float | None = None
    neighbours: float | None = None
    chance: float | None = None
    deviations: float | None = None


@dataclass(frozen=True)
class ConfusionFact(TypedFact):
    """After an evaluation section: `root`, `source`, `counts`: `[[label, predicted, samples]…]`."""

    fact_kind = "confusion"

    root: str = ""
    source: int | None = None
    counts: tuple[tuple[int, int, int], ...] = ()
