"""Structure of a network: modules, ops, shapes, memory and graph, as plain data for rendering.

No torch here, so that a graph or a summary written as JSON on a cluster can be drawn on a laptop.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from clew.records.finding import Finding
from clew.records.verdict import NotJudged

INPUT = -1  # the source of values from outside: arguments and parameters


@dataclass(frozen=True)
class TensorInfo:
    """A tensor without its values."""

    shape: tuple[int, ...]
    dtype: str  # "float32"
    device: str
    requires_grad: bool
    bytes: int
    dims: tuple[str, ...] = ()  # the sizes with names in them, if they were traced

    def text(self, times: str = "×") -> str:
        """`batch × 3 × 32 × 32`, without spaces if there are no names."""
        if not self.shape:
            return "scalar"
        named = bool(self.dims) and any(not d.isdigit() for d in self.dims)
        sizes = self.dims if named else tuple(map(str, self.shape))
        return (f" {times} " if named else times).join(sizes)


@dataclass(frozen=True)
class Visited:
    """One op, module call or autograd node, as `clew.visit` returns it."""

    index: int
    kind: str  # "op", "module" or "autograd"
    type: str  # "aten.addmm.default", "torch.nn.modules.linear.Linear", "AddmmBackward0"
    name: str  # "addmm", "Linear"
    arguments: tuple[tuple[str, Any], ...]  # by name; tensors as TensorInfo
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    module: str | None  # path of the module that was running; "" is the root module
    file: str | None
    line: int | None
    feeds_result: bool
    sources: tuple[int, ...]  # indices of those that computed the inputs; INPUT for the program's own
    flops: int = 0
    call: int = 1  # which call of that module it is


@dataclass(frozen=True)
class Statistics:
    """Statistics of the finite elements of one tensor."""

    median: float
    mean: float
    std: float
    min: float
    max: float
    nonfinite: int = 0


@dataclass(frozen=True)
class ModuleRow:
    """One call of a module, or a module that was never called."""

    path: str
    kind: str  # class name
    depth: int
    call: int  # 1 for the first call of this module, 0 if it never ran
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    trainable: int  # parameters at and below it that no earlier row has counted
    frozen: int
    shared: int  # parameters at and below it that an earlier row has counted
    flops: int  # of one forward, at and below it; a multiply-add counts as two
    saved: int  # bytes kept for the backward, at and below it
    dtype: str
    device: str
    file: str | None = None
    line: int | None = None
    repeat: int = 1  # this many equal siblings in a row are drawn as this one
    hidden: bool = False  # drawn as part of a repeat
    data: Statistics | None = None  # of the output, on request
    gradient: Statistics | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def parameters(self) -> int:
        return self.trainable + self.frozen

    @property
    def ran(self) -> bool:
        return self.call > 0


@dataclass(frozen=True)
class NetworkMemory:
    """Bytes that a training step needs, without what allocators and kernels add."""

    parameters: int
    gradients: int
    optimizer: int
    activations: int
    buffers: int
    optimizer_name: str = "Adam"

    @property
    def total(self) -> int:
        return self.parameters + self.gradients + self.optimizer + self.activations + self.buffers


@dataclass(frozen=True)
class ModuleFrame:
    """A module on the way to the failing op, or a line of the user's code."""

    module: str | None  # path; None outside any module
    kind: str  # class name, or name of the function
    detail: str  # "in_features=400, out_features=10"
    given: tuple[tuple[str, TensorInfo], ...]
    file: str | None = None
    line: int | None = None
    code: str = ""


@dataclass(frozen=True)
class ShapeError:
    """A forward that failed: where, with which inputs, and what would help."""

    error: str  # type and message, as torch reports it
    frames: tuple[ModuleFrame, ...]  # outermost first
    kind: str = "other"  # "shape", "dtype", "device", "index" or "other"
    expected: str | None = None
    given: str | None = None
    suggestion: str | None = None
    file: str | None = None
    line: int | None = None
    code: str = ""


@dataclass(frozen=True)
class Summary:
    """What a network consists of, and the tensors that flow through it."""

    name: str
    inputs: tuple[tuple[str, TensorInfo], ...]
    outputs: tuple[TensorInfo, ...]
    rows: tuple[ModuleRow, ...]
    trainable: int
    frozen: int
    buffers: int  # elements
    flops: int
    memory: NetworkMemory
    computed: bool  # False: traced without computing any value
    dims: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    shape_error: ShapeError | None = None
    findings: tuple[Finding, ...] = ()  # findings of the checks that need no training
    not_judged: tuple[NotJudged, ...] = ()  # those checks that could not decide, and why

    @property
    def parameters(self) -> int:
        return self.trainable + self.frozen

    def to_json(self) -> dict[str, Any]:
        """The shape of `clew show --json`."""
        data = asdict(replace(self, findings=(), not_judged=()))
        return {
            **{"mishap" if key == "shape_error" else key: value for key, value in data.items()},
            "findings": [finding.to_json() for finding in self.findings],
            "not_judged": [entry.to_json() for entry in self.not_judged],
            "parameters": self.parameters,
            "memory_total": self.memory.total,
        }


@dataclass(frozen=True)
class Node:
    """A module call, an op, an input or the output, in the tree of the graph."""

    id: int
    parent: int | None  # the node of the module in which it ran
    kind: str  # "module", "op", "input", "output"
    label: str  # "conv1", "add"
    type: str  # "Conv2d", "aten.add.Tensor"
    path: str
    outputs: tuple[TensorInfo, ...]
    flops: int = 0
    parameters: int = 0
    saved: int = 0
    feeds_result: bool = True
    file: str | None = None
    line: int | None = None
    repeat: int = 1
    hidden: bool = False


@dataclass(frozen=True)
class Edge:
    """A tensor that goes from one op (or input) to another."""

    source: int
    target: int
    tensor: TensorInfo | None = None


@dataclass(frozen=True)
class Graph:
    """Everything that ran: nodes with their module hierarchy, and edges between ops."""

    name: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def to_json(self) -> dict[str, Any]:
        """The JSON for the browser view and `--graph out.json`."""
        return {"version": 1, **asdict(self)}
