"""Facts about a model: its layers and parameters, what the loss depends on, how layers follow each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from clew.records.codec import keyed, sparse
from clew.records.facts.fact import TypedFact
from clew.records.site import Site

Shape = tuple[int, ...]


@dataclass(frozen=True)
class LayerRow:
    """A module of the model and the line that created it."""

    path: str = ""
    kind: str = keyed("class", "")
    file: str | None = None
    line: int | None = None
    mode_dependent: bool = False


@dataclass(frozen=True)
class WeightRow:
    """A parameter of the model, as it was created."""

    name: str = ""
    module: str = ""
    param: str = ""
    shape: Shape = ()
    dtype: str = ""
    requires_grad: bool = True
    numel: int = 0


@dataclass(frozen=True)
class ModelFact(TypedFact):
    """`root`, `class`, `file`, `line` (where it was created), `compiled`; `modules`: `[{path, class,
    file, line, mode_dependent}]` in forward order as far as known; `parameters`: `[{name, module, param,
    shape, dtype, requires_grad, numel}]`.
    """

    fact_kind = "model"

    root: str = ""
    kind: str = keyed("class", "")
    file: str | None = None
    line: int | None = None
    compiled: bool = False
    layers: tuple[LayerRow, ...] = keyed("modules", ())
    parameters: tuple[WeightRow, ...] = ()

    @cached_property
    def dims(self) -> Mapping[tuple[str, str], int]:
        """Number of dimensions of each parameter, by module and name."""
        return {(p.module, p.param): len(p.shape) for p in self.parameters}


@dataclass(frozen=True)
class ParameterRow:
    """What is known of one parameter after a few steps."""

    name: str = ""
    module: str = ""
    param: str = ""
    ndim: int = 0
    requires_grad: bool = False
    has_grad: bool = False
    optimizer: int | None = None
    loaded: bool = False
    alike: bool | None = None
    init_like: bool | None = None


@dataclass(frozen=True)
class ParametersFact(TypedFact):
    """Written after the first few steps, and again when it changes: `root`; `items`: `[{name, module,
    param, ndim, requires_grad, has_grad, optimizer (index or null), loaded (its value came from a
    checkpoint), alike (all units have the same weights; null: unknown), init_like (still distributed like
    its layer's default initialisation; null: unknown)}]`; `root_training`; `root_in_optimizer` (an
    optimizer has at least one of the root's parameters).
    """

    fact_kind = "parameters"

    root: str = ""
    items: tuple[ParameterRow, ...] = ()
    training: bool = keyed("root_training", False)
    root_in_optimizer: bool = False

    @property
    def optimised(self) -> bool:
        """Whether any optimizer has any of the parameters."""
        return self.root_in_optimizer or any(p.optimizer is not None for p in self.items)


@dataclass(frozen=True)
class LayerPair:
    """Two affine layers: the second gets the output of the first, and no other layer does."""

    first: str = ""
    then: str = ""
    kinds: tuple[str, ...] = ()
    widths: tuple[int, ...] = ()  # into the first, between, out of the second
    kernels: tuple[tuple[int, ...], ...] = ()
    grouped: bool = False
    through: tuple[str, ...] = ()


@dataclass(frozen=True)
class RemovedBias:
    """A layer with a bias right before a normalisation that removes it."""

    layer: str = ""
    norm: str = ""


@dataclass(frozen=True)
class DropoutRow:
    """A dropout, and what gets its output."""

    path: str = ""
    p: float = 0.0
    module: bool = False  # a layer; else a call of `F.dropout` in the forward of `path`
    norm: str | None = None
    loss: bool = False
    file: str | None = None  # of the call
    line: int | None = None


@dataclass(frozen=True)
class SquashingRow:
    """A sigmoid or tanh, in these modules, whose output is the input of a layer."""

    op: str = ""
    modules: tuple[str, ...] = ()
    into: str = ""


@dataclass(frozen=True)
class StructureFact(TypedFact):
    """From the autograd graphs of the first training forwards: `root`; `pairs`: `[{first, then, kinds,
    widths, kernels, grouped, through}]`, two affine layers in a row, where the output of the first goes
    only to the second (`through`: dropout and batch normalisation between them); `biases`: `[{layer,
    norm}]`, a bias right before a normalisation that subtracts the mean; `dropouts`: `[{path, p, module,
    norm, loss, file, line}]` (`module`: a layer, not a function call; `norm`: the normalisation that gets
    its output; `loss`: the loss gets its output); `squashing`: `[{op, modules, into}]`, a sigmoid or tanh
    whose output is the input of a layer.
    """

    fact_kind = "structure"

    root: str = ""
    pairs: tuple[LayerPair, ...] = ()
    biases: tuple[RemovedBias, ...] = ()
    dropouts: tuple[DropoutRow, ...] = ()
    squashing: tuple[SquashingRow, ...] = ()


@dataclass(frozen=True)
class AlikeRow:
    """A layer whose units all start with the same weights."""

    module: str = ""
    param: str = ""
    zero: bool = False
    behind: str = ""


@dataclass(frozen=True)
class InitialWeightsFact(TypedFact):
    """By `clew show`: `root`; `layers`: `[{module, param, zero, behind}]`, layers whose units all have
    the same weights, except the last layer (`zero`: all weights are zero and no residual path bypasses
    the layer; `behind`: the next layer with weights).
    """

    fact_kind = "initial_weights"

    root: str = ""
    layers: tuple[AlikeRow, ...] = ()


@dataclass(frozen=True)
class CutRow:
    """An operation inside a forward that stops gradients."""

    op: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class UnregisteredRow:
    """A module, or bare parameters, in use but not registered in the root module."""

    kind: str = keyed("class", "module")
    within: str | None = None
    file: str | None = None
    line: int | None = None
    parameters: tuple[str, ...] = ()
    count: int = 0
    held: int = 0
    with_grad: int = 0


class NormRow(NamedTuple):
    """A batch normalisation, its mode and the most samples it got."""

    path: str
    kind: str
    training: bool
    samples: int


@dataclass(frozen=True)
class GraphFact(TypedFact):
    """What the loss depends on, from the autograd graphs of a few sampled steps: `root`; `reached`
    (number of the root's parameters in the graphs). Names of trainable parameters that are in none: `cut`
    (their layer ran), `cut_by_no_grad` (their layer ran, but only without gradients), `idle` (their layer
    never ran). `cuts`: `[{op, file, line}]` of `detach`, `data`, … inside a forward; `unregistered`:
    `[{class, within, file, line, parameters, count, held, with_grad}]`, modules and parameters in use
    that are not registered in the root. `clew show`, which sees a single forward, adds `forward_only`
    (`idle` are the parameters that no op reads), `named` (those of `idle` that the code mentions
    elsewhere) and `norms`: `[[path, class, training, most samples]]` of batch normalisations.
    """

    fact_kind = "graph"

    root: str = ""
    reached: int = 0
    cut: tuple[str, ...] = ()
    cut_by_no_grad: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    cut_rows: tuple[CutRow, ...] = keyed("cuts", ())
    unregistered: tuple[UnregisteredRow, ...] = ()
    norms: tuple[NormRow, ...] = ()
    forward_only: bool = False
    named: tuple[str, ...] = ()

    @property
    def cuts(self) -> tuple[Site, ...]:
        return tuple(Site(op=row.op, file=row.file, line=row.line) for row in self.cut_rows)


@dataclass(frozen=True)
class PrecisionRow:
    """A layer whose output is not float32."""

    root: str = ""
    module: str = ""
    op: str | None = None
    dtype: str = ""


@dataclass(frozen=True)
class PrecisionFact(TypedFact):
    """`items`: `[{root, module, op, dtype}]`: layers whose outputs are not float32 (autocast), written
    when first seen and when that changes.
    """

    fact_kind = "precision"

    items: tuple[PrecisionRow, ...] = ()


@dataclass(frozen=True)
class UntiedFact(TypedFact):
    """Two parameters that were tied or equal and no longer are: `root`, `first`, `second`, `how`
    (`assigned`, `replaced`, `copied`), `file`, `line` (where they were tied).
    """

    fact_kind = "untied"

    root: str = ""
    first: str = ""
    second: str = ""
    how: str = ""
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class StateLoadedFact(TypedFact):
    """A checkpoint whose keys did not match the module: `class`, `file`, `line`, `keys`, `missing`,
    `unexpected`, `missing_count`, `unexpected_count`, `parameters`.
    """

    fact_kind = "state_loaded"

    kind: str = keyed("class", "")
    file: str | None = None
    line: int | None = None
    keys: int = 0
    missing_count: int = 0
    unexpected_count: int = 0
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    parameters: int = 0


@dataclass(frozen=True)
class GraphRecordedFact(TypedFact):
    """With `--graph`: `root`, `written`. If it was written: `path` (in the run's folder: the JSON of
    `clew show --graph out.json`, plus `root`) and `nodes`; otherwise `reason`.
    """

    fact_kind = "graph_recorded"

    root: str = ""
    written: bool = False
    path: str | None = sparse()
    nodes: int | None = sparse()
    reason: str | None = sparse()
