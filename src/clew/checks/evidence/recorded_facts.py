"""Reads the recorded facts defensively: a field may be missing or of another type.

A run may come from another version of Clew, or from a damaged disk, so nothing here raises.
The fields are described in docs/signals.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Data = Mapping[str, Any]
Shape = tuple[int, ...]


def text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def flag(value: object) -> bool:
    return value is True


def shape(value: object) -> Shape | None:
    if isinstance(value, (list, tuple)) and all(whole(v) is not None and v >= 0 for v in value):
        return tuple(value)
    return None


def rows(value: object) -> list[Data]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, (list, tuple)) else []


def names(value: object) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, (list, tuple)) else ()


@dataclass(frozen=True)
class Layer:
    """A module of the model and the line that made it."""

    path: str
    kind: str  # the name of its class
    file: str | None
    line: int | None
    mode_dependent: bool

    @classmethod
    def read(cls, data: Data) -> Layer:
        return cls(
            path=text(data.get("path")) or "",
            kind=text(data.get("class")) or "",
            file=text(data.get("file")),
            line=whole(data.get("line")),
            mode_dependent=flag(data.get("mode_dependent")),
        )


@dataclass(frozen=True)
class Model:
    """A root model: its layers are in forward order as far as that is known."""

    root: str
    kind: str
    file: str | None
    line: int | None
    layers: tuple[Layer, ...]
    dims: Mapping[tuple[str, str], int]  # (module, param) -> number of dimensions

    @classmethod
    def read(cls, data: Data) -> Model:
        dims = {
            (text(p.get("module")) or "", text(p.get("param")) or ""): len(shape(p.get("shape")) or ())
            for p in rows(data.get("parameters"))
        }
        return cls(
            root=text(data.get("root")) or "",
            kind=text(data.get("class")) or "",
            file=text(data.get("file")),
            line=whole(data.get("line")),
            layers=tuple(Layer.read(row) for row in rows(data.get("modules"))),
            dims=dims,
        )


@dataclass(frozen=True)
class Parameter:
    """What is known of one parameter once a few steps are done."""

    name: str
    module: str
    param: str
    ndim: int
    requires_grad: bool
    has_grad: bool
    optimizer: int | None
    loaded: bool
    init_like: bool

    @classmethod
    def read(cls, data: Data) -> Parameter:
        return cls(
            name=text(data.get("name")) or "",
            module=text(data.get("module")) or "",
            param=text(data.get("param")) or "",
            ndim=whole(data.get("ndim")) or 0,
            requires_grad=flag(data.get("requires_grad")),
            has_grad=flag(data.get("has_grad")),
            optimizer=whole(data.get("optimizer")),
            loaded=flag(data.get("loaded")),
            init_like=flag(data.get("init_like")),
        )


@dataclass(frozen=True)
class Parameters:
    """The parameters of one root."""

    root: str
    step: int
    items: tuple[Parameter, ...]
    training: bool
    optimised: bool

    @classmethod
    def read(cls, step: int, data: Data) -> Parameters:
        items = tuple(Parameter.read(row) for row in rows(data.get("items")))
        return cls(
            root=text(data.get("root")) or "",
            step=step,
            items=items,
            training=flag(data.get("root_training")),
            optimised=flag(data.get("root_in_optimizer")) or any(p.optimizer is not None for p in items),
        )


@dataclass(frozen=True)
class Optimizer:
    kind: str
    file: str | None
    line: int | None

    @classmethod
    def read(cls, data: Data) -> Optimizer:
        return cls(text(data.get("class")) or "optimizer", text(data.get("file")), whole(data.get("line")))


@dataclass(frozen=True)
class LossCall:
    kind: str
    file: str | None
    line: int | None
    input_shape: Shape | None

    @classmethod
    def read(cls, data: Data) -> LossCall:
        return cls(
            kind=text(data.get("kind")) or "",
            file=text(data.get("file")),
            line=whole(data.get("line")),
            input_shape=shape(data.get("input_shape")),
        )

    @property
    def classes(self) -> int | None:
        """Size of the class dimension: the second, or the only one of an unbatched input."""
        if not self.input_shape:
            return None
        return self.input_shape[1] if len(self.input_shape) > 1 else self.input_shape[0]


@dataclass(frozen=True)
class Broadcast:
    kind: str
    step: int
    file: str | None
    line: int | None
    prediction: Shape | None
    target: Shape | None
    result: Shape | None

    @classmethod
    def read(cls, step: int, data: Data) -> Broadcast:
        return cls(
            kind=text(data.get("kind")) or "the loss",
            step=step,
            file=text(data.get("file")),
            line=whole(data.get("line")),
            prediction=shape(data.get("prediction_shape")),
            target=shape(data.get("target_shape")),
            result=shape(data.get("result_shape")),
        )


@dataclass(frozen=True)
class ModeCall:
    """The last `.train()` or `.eval()` before a training forward."""

    root: str
    training: bool
    file: str | None
    line: int | None
    mode_dependent: tuple[tuple[str, str], ...]  # (path, class) of the layers that it concerns

    @classmethod
    def read(cls, data: Data) -> ModeCall:
        value = data.get("mode_dependent")
        pairs = [names(row) for row in value] if isinstance(value, (list, tuple)) else []
        return cls(
            root=text(data.get("root")) or "",
            training=flag(data.get("training")),
            file=text(data.get("file")),
            line=whole(data.get("line")),
            mode_dependent=tuple((p[0], p[1]) for p in pairs if len(p) == 2),
        )


@dataclass(frozen=True)
class NonFinite:
    where: str
    step: int
    file: str | None
    line: int | None
    parameters: tuple[str, ...]
    bad_weights: tuple[str, ...]
    bad_inputs: tuple[str, ...]
    kind: str | None = None  # "nan" or "inf", where no number was recorded
    skipped: int = 0  # steps in a row that a GradScaler left out
    scale: float | None = None  # to which it has come down
    samples: tuple[int, ...] = ()  # of an evaluation's batch, whose predictions are bad
    batch: int = 0  # how many samples that has

    @classmethod
    def read(cls, step: int, data: Data) -> NonFinite:
        return cls(
            where=where if (where := text(data.get("where"))) in ("loss", "evaluation") else "gradient",
            step=step,
            file=text(data.get("file")),
            line=whole(data.get("line")),
            parameters=names(data.get("parameters")),
            bad_weights=names(data.get("bad_weights")),
            bad_inputs=names(data.get("bad_inputs")),
            kind=text(data.get("kind")),
            skipped=whole(data.get("skipped")) or 0,
            scale=number(data.get("scale")),
            samples=shape(data.get("samples")) or (),
            batch=whole(data.get("batch")) or 0,
        )
