"""Checks every operation of a step, forward and backward, as it runs.

The microscope tracks non-finite values from the operation that produced them to where they arrive:
each storage that contains one has *origins*. An operation that makes a non-finite value from
finite ones is a producer; one that only passes it on is not. Infinities written down on purpose
(masks) are origins too, but constant ones, and are blamed for nothing until they turn into NaN.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clew.labs.snapshot.inplace_writes import memory_key, overwrites
from clew.labs.snapshot.nonfinite_values import can_be_bad, dense, has_nan, is_bad, result_kind
from clew.labs.snapshot.op_recorder import (
    UNINITIALISED,
    ModulePaths,
    OpCall,
    OpRecorder,
    is_custom,
    node_name,
    op_name,
)
from clew.labs.snapshot.users_step.replay_lines import called_by_clew, line_now
from clew.measure.nested_tensors import tensors_in
from clew.records.site import Line

MADE, CONSTANT, BATCH, PARAMETER = "made", "constant", "batch", "parameter"
MOST_EVENTS = 400  # a broken net produces as many as it has operations
_NOT_CHECKED = {*UNINITIALISED, "_unsafe_view"}
PICKS = {"nll_loss"}  # reads single elements: a constant -inf that it picks is no longer a mask


@dataclass(frozen=True)
class OpSpot:
    """Where an operation was called."""

    op: str
    module: str | None
    root: str | None
    line: Line
    number: int  # of the calls of this operation on this line, from 1
    custom: str | None = None  # the class of a custom autograd Function


@dataclass(frozen=True)
class NonFiniteEvent:
    """A non-finite value appeared."""

    index: int
    kind: str  # MADE, CONSTANT, BATCH or PARAMETER
    phase: str  # "forward" or "backward"
    spot: OpSpot
    inner_op: str  # in backward: the operation inside the gradient of `spot.op`
    inputs: tuple[Tensor, ...]  # those that can be read
    output: Tensor
    scalars: tuple[float, ...]
    result: str
    caused_by: frozenset[int] = frozenset()
    label: str = ""

    @property
    def source(self) -> Source:
        """What produced it, all of its calls together."""
        if self.kind in (BATCH, PARAMETER):  # wherever it is used
            return self.kind, "", "", (None, None), self.label
        return self.kind, self.phase, self.spot.op, self.spot.line, self.label


Origins = frozenset[int]
Source = tuple[str, str, str, Line, str]  # kind, phase, operation, line, label: the same in every run


@dataclass(frozen=True)
class _Given:
    """What is known about an op before it runs."""

    spot: OpSpot
    phase: str
    inner: str
    inputs: list[Tensor]  # that can be bad
    before: dict[int, bool]  # whether its output argument is already bad
    origins: dict[int, Origins]  # of what was
    kept: dict[int, Tensor]  # an in-place operation is shown with what it was given


class Microscope(OpRecorder):
    """A recorder of ops that checks what runs inside it. `origins_of` says what made a tensor bad."""

    def __init__(
        self,
        roots: dict[str, nn.Module] | None = None,
        before_write: Callable[[Tensor], None] | None = None,
        *,
        live: bool = False,
        mended: frozenset[Source] = frozenset(),
    ) -> None:
        super().__init__(self._about_to_write)
        self.events: list[NonFiniteEvent] = []
        self.calls: Counter[tuple[str, Line]] = Counter()
        self.batch: int | None = None  # samples in the last input of the outermost model
        self._taint: dict[int, Origins] = {}
        self._spots: dict[int, OpSpot] = {}  # sequence number of an autograd node -> what made it
        self._roots = roots or {}
        self._paths = ModulePaths(self._roots)
        self._known: dict[int, tuple[str, str, Tensor]] = {}  # by storage: kind, name, the tensor
        for root, top in self._roots.items():
            prefix = f"{root}." if len(self._roots) > 1 else ""
            for kind, named in ((PARAMETER, top.named_parameters()), (CONSTANT, top.named_buffers())):
                self.name_tensors(kind, [(prefix + name, tensor) for name, tensor in named])
        self._own: set[int] = set()
        self._save = before_write
        self._mended = mended  # sources whose values are made finite, to see what happens without them
        self._live = live  # in the user's own run, not in a replay
        self._given: _Given | None = None  # of the running op

    # -- what is known beforehand --

    def name_tensors(self, kind: str, named: Sequence[tuple[str, Tensor]]) -> None:
        """Name the tensors that come from outside, so that a bad one can be reported by name."""
        for name, tensor in named:
            self._known[memory_key(tensor)] = (kind, name, tensor)

    def name_batch(self, named: Sequence[tuple[str, Tensor]]) -> None:
        """Name the bad tensors of a batch, unless they share memory with a tensor that has a name."""
        for name, tensor in named:
            if is_bad(tensor) and memory_key(tensor) not in self._known:
                self.name_tensors(CONSTANT if is_mask(tensor) else BATCH, [(name, tensor)])

    def mend_what_is_known(self) -> None:
        """Make the selected outside tensors finite; `before_write` must save their contents."""
        for kind, name, tensor in self._known.values():
            if (kind, "", "", (None, None), name) in self._mended and self._save is not None:
                self._save(tensor)
                mend(tensor)

    # -- modules --

    def entered(self, module: nn.Module, args: Any) -> None:
        if len(self.modules) > 1:
            return
        if self._live and not self._paths.knows(module):
            self._paths.add(type(module).__name__, module)
        rows = batch_size(args)
        self.batch = self.batch if rows is None else rows

    # -- operations --

    def wants(self, func: Any) -> bool:
        return not (self._live and called_by_clew())

    def before_op(self, op: OpCall) -> None:
        targets, overwritten = op.writes, overwrites(op.func)
        spot, phase, inner = self._spot(op.func)
        before = {id(t): not overwritten and is_bad(t) for t in targets}
        self._given = _Given(
            spot,
            phase,
            inner,
            inputs=[t for t in op.inputs if can_be_bad(t)],
            before=before,
            origins={id(t): self._origins_of_input(t, spot) for t in targets if before[id(t)]},
            kept={id(t): t.detach().clone() for t in targets if can_be_bad(t) and not overwritten},
        )

    def _about_to_write(self, tensor: Tensor) -> None:
        if self._save is not None and memory_key(tensor) not in self._own:
            self._save(tensor)

    def after_op(self, op: OpCall) -> None:
        given, self._given = self._given, None
        assert given is not None
        keys = {memory_key(t) for t in given.inputs}
        for output in op.outputs or op.writes:
            key = memory_key(output)
            fresh = key not in keys
            if fresh:
                self._own.add(key)
            if str(op.func._schema.name)[6:] in _NOT_CHECKED:
                continue
            if not is_bad(output):
                if fresh or _covers(output):
                    self._taint.pop(key, None)
                continue
            if not fresh and not op.writes:
                continue  # a view
            self._bad_output(op, given, output)

    def _bad_output(self, op: OpCall, given: _Given, output: Tensor) -> None:
        spot, inputs, before = given.spot, given.inputs, given.before
        bad = [t for t in inputs if (before[id(t)] if id(t) in before else is_bad(t))]
        origins: Origins = frozenset()
        for tensor in bad:
            origins |= given.origins.get(id(tensor)) or self._origins_of_input(tensor, spot)
        makes_nan = has_nan(output) and not any(has_nan(t) for t in bad if id(t) not in before)
        harmless = all(self.events[i].kind == CONSTANT for i in origins)
        scalars = tuple(float(a) for a in op.args if isinstance(a, (int, float)) and not isinstance(a, bool))
        picked = given.inner in PICKS and harmless
        if bad and not (harmless and (makes_nan or picked)):
            self._taint[memory_key(output)] = origins | self._taint_left(output, before)
            return
        constant = not bad and (any(s - s != 0.0 for s in scalars) or not inputs)
        kind = CONSTANT if constant and not has_nan(output) else MADE
        if (kind, given.phase, spot.op, spot.line, "") in self._mended:
            mend(output)
            return
        seen = tuple(given.kept.get(id(t), t) for t in op.inputs)
        made = self._event(kind, given.phase, spot, given.inner, seen, output, scalars, origins)
        self._taint[memory_key(output)] = made | (origins if kind == CONSTANT else frozenset())

    def _taint_left(self, output: Tensor, before: dict[int, bool]) -> Origins:
        return self._taint.get(memory_key(output), frozenset()) if before.get(id(output)) else frozenset()

    def _event(
        self,
        kind: str,
        phase: str,
        spot: OpSpot,
        inner: str,
        inputs: tuple[Tensor, ...],
        output: Tensor,
        scalars: tuple[float, ...] = (),
        caused_by: Origins = frozenset(),
        label: str = "",
    ) -> Origins:
        if len(self.events) >= MOST_EVENTS:
            return frozenset()
        index = len(self.events)
        keep = tuple(t.detach() for t in inputs) if index < 20 or kind == MADE else ()
        event = NonFiniteEvent(
            index,
            kind,
            phase,
            spot,
            inner,
            keep,
            output.detach(),
            scalars,
            result_kind(output),
            caused_by,
            label,
        )
        self.events.append(event)
        return frozenset((index,))

    def _origins_of_input(self, tensor: Tensor, spot: OpSpot) -> Origins:
        """Where a bad input comes from; one that nothing here produced comes from outside."""
        known = self._taint.get(memory_key(tensor))
        if known:
            return known
        kind, label, tensor = self._known.get(memory_key(tensor), (CONSTANT, "an earlier tensor", tensor))
        if kind == CONSTANT and has_nan(tensor):
            kind = MADE
        used = OpSpot("", spot.module, spot.root, spot.line, 0)  # first used there
        made = self._event(kind, "forward", used, "", (), tensor, label=label)
        self._taint[memory_key(tensor)] = made
        return made

    def origins_of(self, tensor: Tensor) -> list[NonFiniteEvent]:
        """The events that made a bad tensor bad, in order of time."""
        return [self.events[i] for i in sorted(self._taint.get(memory_key(tensor), frozenset()))]

    # -- where we are --

    def _spot(self, func: Any) -> tuple[OpSpot, str, str]:
        name = op_name(func)
        node: Any = torch._C._current_autograd_node()
        if node is not None and not (torch.is_grad_enabled() and self.modules):
            return self._spot_of_node(node), "backward", name
        line = line_now()
        if node is None:  # else a checkpointed part runs for the second time
            self.calls[name, line] += 1
        root, path = self._paths.innermost(self.modules)
        spot = OpSpot(name, path, root, line, self.calls[name, line])
        # This operation's own node has just been created: its number is the last one assigned.
        self._spots.setdefault(torch._C._autograd._get_sequence_nr() - 1, spot)
        return spot, "forward", name

    def _spot_of_node(self, node: Any) -> OpSpot:
        known = self._spots.get(node._sequence_nr())
        op = node_name(node)
        if is_custom(node):
            line = line_now()
            module, root = (known.module, known.root) if known is not None else (None, None)
            return OpSpot(op, module, root, line, 1, custom=op)
        if known is None:
            return OpSpot(op, None, None, (None, None), 1)
        return OpSpot(op, known.module, known.root, known.line, known.number)


def batch_size(arguments: Any) -> int | None:
    """The rows of the first tensor that has any."""
    first = next((t for t in tensors_in(arguments) if t.dim()), None)
    return None if first is None else len(first)


def is_mask(tensor: Tensor) -> bool:
    """Only zeros and -infinities: written on purpose, to be added to scores."""
    return not has_nan(tensor) and bool(((tensor == 0) | torch.isneginf(tensor)).all())


def mend(tensor: Tensor) -> None:
    """Replace non-finite elements with ones: an ordinary number for all that follows."""
    with torch.no_grad():
        values = dense(tensor)
        values.masked_fill_(~torch.isfinite(values), 1.0)


def _covers(tensor: Tensor) -> bool:
    """Whether a tensor covers all of its storage."""
    try:
        return tensor.numel() * tensor.element_size() >= tensor.untyped_storage().nbytes()
    except (NotImplementedError, RuntimeError):
        return True
