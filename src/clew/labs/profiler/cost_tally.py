"""Adds up attributed windows: by module, by op, by part of the step, and as a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from clew.labs.profiler.torch_trace.attribution import CLEW, NS, AttributedWindow, CostPlace, EventSpan
from clew.labs.profiler.torch_trace.module_scopes import Scope
from clew.labs.profiler.torch_trace.roofline import arguments_of, flops_of, moved_by, shapes_of
from clew.labs.profiler.torch_trace.torch_events import ENGINE, NODE, OP, SCOPE, node_name
from clew.records.step_costs import FlameFrame

OUTSIDE = "(outside modules)"
OPTIMIZER = "(optimizer)"
CONVOLUTION = "ConvolutionBackward0"
BACKWARD_OF_CONVOLUTION = 2.0  # times the operations of its forward, which torch does not count

Key = tuple[str, str, str, str]  # module, op, shapes, arguments


@dataclass
class ModuleTally:
    """Seconds in each step, and sums over all of them."""

    scope: Scope | None
    order: int
    forward: dict[int, float] = field(default_factory=dict)  # by step
    backward: dict[int, float] = field(default_factory=dict)
    self_forward: float = 0.0
    self_backward: float = 0.0
    calls: int = 0
    flops: float = 0.0
    moved: float = 0.0


@dataclass
class OpTally:
    """All calls of an op with the same arguments in one module."""

    calls: int = 0
    forward: float = 0.0
    backward: float = 0.0
    flops: float = 0.0
    moved: float = 0.0


@dataclass
class _Branch:
    own: float = 0.0
    module: str | None = None
    scope: Scope | None = None
    children: dict[str, _Branch] = field(default_factory=dict)

    def child(self, name: str) -> _Branch:
        return self.children.setdefault(name, _Branch(module=self.module))


@dataclass
class CostTally:
    """Over the steps that were added; times are sums, `steps` says over how many."""

    name_of: Callable[[Scope], str]
    modules: dict[str, ModuleTally] = field(default_factory=dict)
    ops: dict[Key, OpTally] = field(default_factory=dict)
    durations: list[float] = field(default_factory=list)  # without Clew's own time
    by_step: dict[str, list[float]] = field(default_factory=dict)  # parts of each step, from events
    gap: float = 0.0  # without events: belongs to `rest`
    named_rest: float = 0.0  # of the part `rest`: in some module or op
    tree: _Branch = field(default_factory=_Branch)

    @property
    def steps(self) -> int:
        return len(self.durations)

    @property
    def left(self) -> float:
        """Seconds in no module, no op and no named part: mostly Python in between."""
        known = sum(tally.self_forward + tally.self_backward for tally in self.modules.values())
        known += sum(sum(self.by_step.get(part, ())) for part in ("data", "optimizer"))
        return max(sum(self.durations) - known, 0.0)

    @property
    def rest(self) -> float:
        """Seconds in the part `rest`."""
        return sum(self.by_step.get("rest", ())) + self.gap

    def add(self, traced: AttributedWindow, chosen: set[int]) -> None:
        """The chosen steps of a window, by their position in it."""
        spans = [span for span in traced.spans if span.step in chosen]
        flops, moved = _flops_and_bytes(spans)
        first = self.steps
        ours = dict.fromkeys(chosen, 0.0)
        places = {place: first + n for n, place in enumerate(sorted(chosen))}
        for span in spans:
            ours[span.step] += span.own * NS if span.part == CLEW and span.main else 0.0
        self.durations += [traced.duration(place) - ours[place] for place in sorted(chosen)]
        for seconds in self.by_step.values():
            seconds += [0.0] * len(chosen)
        keys: dict[int, Key] = {}
        for span, operations, bytes_ in zip(spans, flops, moved, strict=True):
            self._add(span, places[span.step], operations, bytes_, keys)
        known = sum(sum(seconds[first:]) for seconds in self.by_step.values())
        self._settle(spans, max(sum(self.durations[first:]) - known, 0.0))

    def _add(self, span: EventSpan, step: int, flops: float, moved: float, keys: dict[int, Key]) -> None:
        if span.part == CLEW:
            return  # without Clew the step would have been shorter
        seconds = span.own * NS
        backward = span.part == "backward"
        if span.main:
            self.by_step.setdefault(span.part, [0.0] * self.steps)[step] += seconds
            if span.part == "rest" and (span.row.kind == OP or span.place is not None):
                self.named_rest += seconds
        if span.main or span.node is not None:
            self._branch(span).own += seconds
            self._of_module(span, step, seconds, backward, flops, moved)
        if span.row.kind == OP or span.node is not None:
            self._of_op(span, seconds, backward, flops, moved, keys)

    def _of_module(
        self, span: EventSpan, step: int, seconds: float, backward: bool, flops: float, moved: float
    ) -> None:
        if span.place is None:
            if (span.row.kind == OP or span.node is not None) and span.part in ("rest", "backward"):
                self._outside(step, seconds, backward, flops, moved)
            return
        tally = self._module(span.place)
        if backward or flops or moved:
            around = [self._module(place) for place in span.place.upwards()]
            for one in {id(t): t for t in around}.values():
                one.flops += flops
                one.moved += moved
                if backward:
                    one.backward[step] = one.backward.get(step, 0.0) + seconds
        if backward:
            tally.self_backward += seconds
            return
        tally.self_forward += seconds
        if span.row.kind == SCOPE:
            tally.calls += 1
            if not _is_inside_itself(span.place):
                tally.forward[step] = tally.forward.get(step, 0.0) + span.row.duration * NS

    def _outside(self, step: int, seconds: float, backward: bool, flops: float, moved: float) -> None:
        tally = self.modules.setdefault(OUTSIDE, ModuleTally(None, len(self.modules)))
        sums = tally.backward if backward else tally.forward
        sums[step] = sums.get(step, 0.0) + seconds
        tally.self_backward += seconds if backward else 0.0
        tally.self_forward += 0.0 if backward else seconds
        tally.flops += flops
        tally.moved += moved

    def _module(self, place: CostPlace) -> ModuleTally:
        name = self.name_of(place.scope)
        known = self.modules.get(name)
        if known is None:
            known = self.modules[name] = ModuleTally(place.scope, len(self.modules))
        return known

    def _of_op(
        self,
        span: EventSpan,
        seconds: float,
        backward: bool,
        flops: float,
        moved: float,
        keys: dict[int, Key],
    ) -> None:
        root = span.op if span.op is not None else span
        key = keys.get(id(root))
        if key is None:
            key = keys[id(root)] = self._key(root)
        tally = self.ops.setdefault(key, OpTally())
        tally.calls += root is span and not backward
        tally.forward += 0.0 if backward else seconds
        tally.backward += seconds if backward else 0.0
        tally.flops += flops
        tally.moved += moved

    def _key(self, root: EventSpan) -> Key:
        if root.place is not None:
            module = self.name_of(root.place.scope)
        else:
            module = OPTIMIZER if root.part == "optimizer" else OUTSIDE
        name = node_name(root.row) if root.row.kind == NODE else root.row.name
        # An optimizer's numbers change from step to step: they would split one op into many.
        arguments = arguments_of(root.row.event) if module != OPTIMIZER else ""
        return module, name, shapes_of(root.row.event), arguments

    def _settle(self, spans: list[EventSpan], gap: float) -> None:
        """Time without events is Python; a thread that waits for others does nothing."""
        self.tree.child("rest").own += gap
        self.gap += gap
        engine = sum(span.own for span in spans if span.row.kind == ENGINE and span.main) * NS
        elsewhere = sum(s.row.duration for s in spans if s.node is s and not s.main) * NS
        self.tree.child("backward").own -= min(engine, elsewhere)

    # -- as a tree --

    def _branch(self, span: EventSpan) -> _Branch:
        branch = self.tree.child(span.part)
        places = list(span.place.upwards()) if span.place is not None else []
        for place in reversed(places):
            name = self.name_of(place.scope)
            branch = branch.child(name)
            branch.module, branch.scope = name, place.scope
        if span.node is not None and span.part == "backward":
            return branch.child(node_name(span.node.row))
        if span.op is not None and span.row.kind in (OP, NODE):
            return branch.child(span.op.row.name)
        return branch

    def flame(self, order: Iterable[str], title: Callable[[str, Scope], str]) -> FlameFrame | None:
        """Step › part › module › op, seconds per step."""
        if not self.steps:
            return None
        parts = [(name, self.tree.children[name]) for name in order if name in self.tree.children]
        children = tuple(_frame(name, branch, 1.0 / self.steps, title) for name, branch in parts)
        whole = sum(child.value for child in children)
        return FlameFrame("step", whole, 0.0, children=children)


def _frame(name: str, branch: _Branch, scale: float, title: Callable[[str, Scope], str]) -> FlameFrame:
    modules = [pair for pair in branch.children.items() if pair[1].scope is not None]
    others = sorted(
        (pair for pair in branch.children.items() if pair[1].scope is None), key=lambda pair: -pair[1].own
    )
    children = tuple(_frame(n, b, scale, title) for n, b in [*modules, *others])
    own = max(branch.own, 0.0) * scale
    shown = title(name, branch.scope) if branch.scope is not None else name
    file, line = (branch.scope.file, branch.scope.line) if branch.scope is not None else (None, None)
    return FlameFrame(shown, own + sum(c.value for c in children), own, file, line, branch.module, children)


def _is_inside_itself(place: CostPlace) -> bool:
    return any(around is not place and around.scope == place.scope for around in place.upwards())


def _flops_and_bytes(spans: list[EventSpan]) -> tuple[list[float], list[float]]:
    """Operations and bytes of each span, so that they add up to those of the enclosing ops.

    Torch counts the operations of some ops, not of the ops they call. The bytes of an op are those of
    its arguments, or of the ops it calls if that is more.
    """
    places = {id(span): n for n, span in enumerate(spans)}
    flops, moved = [0.0] * len(spans), [0.0] * len(spans)
    inner_flops, inner_moved = [0.0] * len(spans), [0.0] * len(spans)
    forward: dict[int, float] = {}
    for n in range(len(spans) - 1, -1, -1):  # inner spans come first
        span, inside = spans[n], (inner_flops[n], inner_moved[n])
        all_flops, all_moved = inside
        if span.row.kind == OP and "::" in span.row.name and not span.row.name.startswith("torch::"):
            counted = flops_of(span.row.name, span.row.event)
            own = moved_by(span.row.name, span.row.event)
            all_flops = counted or inside[0]
            all_moved = own if counted else max(own, inside[1])
        if span.node is None and span.op is span:
            forward[id(span)] = all_flops
        flops[n], moved[n] = all_flops - inside[0], all_moved - inside[1]
        above = places.get(id(span.parent)) if span.parent is not None else None
        if above is not None:
            inner_flops[above] += all_flops
            inner_moved[above] += all_moved
    for n, span in enumerate(spans):
        if span.node is span and span.op is not None and node_name(span.row) == CONVOLUTION:
            flops[n] += BACKWARD_OF_CONVOLUTION * forward.get(id(span.op), 0.0)
    return flops, moved
