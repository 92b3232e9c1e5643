"""Costs of training steps, as a profile measured them: plain data for rendering and checks.

Written as `traces/profile.json` of a run (docs/api.md). No torch here: a profile recorded on a cluster is
read on a laptop. All times are seconds per step, all sizes bytes, unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from clew.records.codec import plain, read

VERSION = 1
PARTS = ("data", "to device", "forward", "backward", "optimizer", "logging", "rest", "clew")
FEWEST_TIMED = 5  # fewest steps for a statement on speed: a median of fewer is up to chance
DEEPEST = 150  # frames of a flame that are written or read: JSON does not allow much deeper nesting
KINDS = ("parameters", "gradients", "optimizer state", "activations", "other")


@dataclass(frozen=True)
class PartCost:
    """One part of a step, over the steps that were timed."""

    name: str  # one of PARTS
    median: float
    p95: float
    share: float  # of the total time of these steps
    steps: int = 0


@dataclass(frozen=True)
class FlameFrame:
    """A node of a flame graph; `value` includes the children, `self` does not."""

    name: str
    value: float
    self: float = 0.0
    file: str | None = None
    line: int | None = None
    module: str | None = None
    children: tuple[FlameFrame, ...] = ()

    def walk(self) -> Iterator[tuple[int, FlameFrame]]:
        """Every frame with its depth, outermost first."""
        waiting: list[tuple[int, FlameFrame]] = [(0, self)]
        while waiting:
            depth, frame = waiting.pop()
            yield depth, frame
            waiting += [(depth + 1, child) for child in reversed(frame.children)]

    def to_json(self) -> dict[str, Any]:
        """Without recursion, since stacks may be deep; frames below `DEEPEST` are left out."""
        made: list[dict[str, Any]] = []
        waiting: list[tuple[int, FlameFrame, list[dict[str, Any]]]] = [(1, self, made)]
        while waiting:
            depth, frame, siblings = waiting.pop()
            inside: list[dict[str, Any]] = []
            siblings.append({**{name: getattr(frame, name) for name in _OF_A_FRAME}, "children": inside})
            deeper = reversed(frame.children) if depth < DEEPEST else ()
            waiting += [(depth + 1, child, inside) for child in deeper]
        return made[0]

    @classmethod
    def from_json(cls, data: Any) -> FlameFrame | None:
        """None if it is not a frame; invalid children are left out."""
        rows = _flattened(data)
        inside: list[list[FlameFrame]] = [[] for _ in rows]
        for number in reversed(range(len(rows))):  # innermost first
            row, around, _ = rows[number]
            frame = _frame_alone(row)
            if frame is None:
                continue
            whole = replace(frame, children=tuple(reversed(inside[number])))
            if around < 0:
                return whole
            inside[around].append(whole)
        return None


_OF_A_FRAME = ("name", "value", "self", "file", "line", "module")


def _flattened(data: Any) -> list[tuple[Mapping[str, Any], int, int]]:
    """Every row of a tree with its parent's number and its depth, outermost first."""
    rows: list[tuple[Mapping[str, Any], int, int]] = [(data, -1, 1)] if isinstance(data, Mapping) else []
    for number, (row, _, depth) in enumerate(rows):  # grows while it is iterated
        children = row.get("children")
        deeper = children if isinstance(children, (list, tuple)) and depth < DEEPEST else ()
        rows += [(child, number, depth + 1) for child in deeper if isinstance(child, Mapping)]
    return rows


def _frame_alone(row: Mapping[str, Any]) -> FlameFrame | None:
    try:
        return read(FlameFrame, {name: row.get(name) for name in _OF_A_FRAME})
    except TypeError:  # no name, or no value
        return None


@dataclass(frozen=True)
class ModuleCost:
    """A module's calls in one step; forward and backward include the modules inside it."""

    module: str  # path; "" is the root module
    type: str = ""
    calls: float = 0.0
    forward: float = 0.0
    backward: float = 0.0
    self_forward: float = 0.0
    self_backward: float = 0.0
    spread: float = 0.0  # standard deviation of forward + backward over the steps
    steps: int = 0  # over which it was measured
    flops: float = 0.0  # forward and backward
    moved: float = 0.0  # bytes read and written by its ops
    roof: float | None = None  # share of the best that this machine can do, 0 … 1
    parameters: int = 0  # bytes, only its own
    activations: int = 0  # bytes kept for the backward, only its own
    peak: int = 0  # bytes above what was allocated when it was called
    file: str | None = None
    line: int | None = None

    @property
    def total(self) -> float:
        return self.forward + self.backward


@dataclass(frozen=True)
class OpCost:
    """All calls of one op with the same shapes in one module."""

    module: str
    op: str  # "aten::addmm"
    shapes: str = ""  # "[32, 64] [64, 10]"
    arguments: str = ""  # arguments that are not tensors
    calls: float = 0.0
    forward: float = 0.0
    backward: float = 0.0
    flops: float = 0.0
    moved: float = 0.0
    roof: float | None = None


@dataclass(frozen=True)
class LineCost:
    """Time in which a line of source was running (`self`) or had called what ran (`total`)."""

    file: str
    line: int
    function: str
    code: str
    self: float
    total: float
    kind: str = ""  # "logging", "data", "to device" … if known


@dataclass(frozen=True)
class ProcessMemory:
    """Memory of a process; shared pages count in part (pss) or not at all (uss)."""

    pid: int
    role: str  # "main", "loader worker"
    rss: int
    pss: int | None = None
    uss: int | None = None
    slope: float = 0.0  # bytes per step, fitted after the warm-up
    readings: tuple[tuple[int, int], ...] = ()  # step, rss


@dataclass(frozen=True)
class Growth:
    """Memory that grows, and what keeps references to it."""

    slope: float  # bytes per step
    owner: str  # "list `losses` in train.py:31: tensors with their graphs"
    file: str | None = None
    line: int | None = None
    objects: float = 0.0  # new ones in each step
    kind: str = ""  # "tensor", "graph", "python", "" unknown


@dataclass(frozen=True)
class StepMemory:
    """Memory of the process, and of the tensors in one step."""

    peak: int = 0  # of tensors, in a step
    kinds: Mapping[str, int] = field(default_factory=dict)  # KINDS, at the peak
    timeline: tuple[tuple[float, int], ...] = ()  # second of the step, bytes allocated
    root: FlameFrame | None = None  # by module, at the peak
    processes: tuple[ProcessMemory, ...] = ()
    growth: Growth | None = None


@dataclass(frozen=True)
class Sync:
    """A place where the host waits for numbers (`.item()`, print, `.cpu()`, `nonzero`), per step."""

    op: str
    calls: float
    seconds: float
    file: str | None = None
    line: int | None = None
    code: str = ""


@dataclass(frozen=True)
class Roof:
    """The best performance measured on this machine."""

    flops: float  # per second, float32 matrix product
    bytes: float  # per second, read and written
    threads: int = 1


@dataclass(frozen=True)
class TimelineEvent:
    """Something that ran in the step whose timeline was recorded."""

    name: str
    start: float  # seconds from the beginning of the step
    duration: float
    lane: str = "main"  # "main", or another thread
    module: str | None = None


@dataclass(frozen=True)
class Profile:
    """Everything that was found; what was not profiled is empty."""

    steps: tuple[int, int] = (0, 0)  # first and last that were profiled in detail
    detailed: int = 0  # how many of them
    detailed_step: float = 0.0  # seconds of one of them; profiling makes them slower than others
    step_median: float = 0.0
    step_p95: float = 0.0
    samples_per_second: float | None = None
    parts: tuple[PartCost, ...] = ()
    modules: tuple[ModuleCost, ...] = ()  # in forward order
    ops: tuple[OpCost, ...] = ()
    lines: tuple[LineCost, ...] = ()
    syncs: tuple[Sync, ...] = ()
    flame: FlameFrame | None = None  # step › part › module › op
    python: FlameFrame | None = None  # Python's stacks, from the sampler
    timeline: tuple[TimelineEvent, ...] = ()  # of one step
    memory: StepMemory = StepMemory()
    roof: Roof | None = None
    unattributed: float = 0.0  # seconds of the step in no part and no module
    threads: int = 1
    cores: int = 1
    device: str = "cpu"
    notes: tuple[str, ...] = ()  # what could not be measured, and why
    files: Mapping[str, str] = field(default_factory=dict)  # "chrome trace" -> name in the run's traces/

    def of_step(self, seconds: float) -> float:
        """This time of modules and ops as a share of a step, of those that were profiled in detail."""
        whole = self.detailed_step or self.step_median
        return seconds / whole if whole > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """As `traces/profile.json`, in the shape that the browser view reads."""
        bare = replace(self, flame=None, python=None, memory=replace(self.memory, root=None))
        data: dict[str, Any] = {"version": VERSION, **plain(bare)}
        data["flame"] = {"unit": "s", "root": self.flame.to_json()} if self.flame else None
        data["python"] = self.python.to_json() if self.python else None
        data["memory"]["root"] = self.memory.root.to_json() if self.memory.root else None
        data["memory"]["unit"] = "B"
        for module in data["modules"]:
            module["class"] = module["type"]
            module["self"] = module["self_forward"] + module["self_backward"]
            module["memory"] = module["parameters"] + module["activations"]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Profile:
        """Read a profile, perhaps of another version or untrusted: what does not fit keeps its default."""
        given = dict(data)
        flame, python = given.pop("flame", None), given.pop("python", None)
        if isinstance(flame, Mapping) and "root" in flame:
            flame = flame["root"]
        memory = given.get("memory")
        held = memory if isinstance(memory, Mapping) else {}
        given["memory"] = {name: value for name, value in held.items() if name != "root"}
        profile = read(cls, given)
        return replace(
            profile,
            flame=FlameFrame.from_json(flame),
            python=FlameFrame.from_json(python),
            memory=replace(profile.memory, root=FlameFrame.from_json(held.get("root"))),
        )
