"""Traces one forward: every op through a dispatch mode, every module call through global hooks.

The order of events is the program's own, so control flow, reuse and functional calls appear as
they are. Tensors are distinguished by identity; since views and in-place writes create a second tensor of
the same memory, the op that last wrote to a storage is also a source of what is read from it. Nothing is
kept alive by tracing: references to tensors and storages are weak.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from clew.hooks.entry.user_line import user_line
from clew.labs.network.tensor_info import described, storage_bytes
from clew.labs.network.trace.dtype_rules import refuse_types
from clew.labs.network.trace.flops import flops_of
from clew.labs.snapshot.inplace_writes import WriteJournal, storage_key
from clew.labs.snapshot.op_recorder import OpCall, OpRecorder
from clew.measure.nested_tensors import tensors_in
from clew.records.network import INPUT, TensorInfo

_NOBODY: tuple[Callable[[], Any], int] = (lambda: None, INPUT)


@dataclass
class ModuleCall:
    """One call of a module."""

    index: int
    path: str
    module: nn.Module
    parent: ModuleCall | None
    number: int  # 1 for the first call of this module
    inputs: tuple[TensorInfo, ...]
    file: str | None
    line: int | None
    outputs: tuple[TensorInfo, ...] = ()
    first_op: int = 0
    end_op: int = 0
    flops: int = 0
    saved: int = 0
    reads: tuple[int, ...] = ()  # ops that produced its inputs
    makes: tuple[int, ...] = ()  # ops that produced its outputs
    done: bool = False

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else self.parent.depth + 1


@dataclass
class Op:
    """One op as it ran."""

    index: int
    function: Any
    args: tuple[Any, ...]  # tensors described
    kwargs: dict[str, Any]
    inputs: tuple[TensorInfo, ...]
    sources: tuple[int, ...]
    call: ModuleCall | None
    file: str | None
    line: int | None
    outputs: tuple[TensorInfo, ...] = ()
    flops: int = 0
    feeds_result: bool = False
    parameters: tuple[int, ...] = ()  # ids of the parameters that it reads
    given: tuple[int, ...] = ()  # numbers of the program's inputs that it reads


@dataclass
class ForwardTrace:
    """The record of one forward, complete or up to where it failed."""

    ops: list[Op] = field(default_factory=list)
    calls: list[ModuleCall] = field(default_factory=list)
    result: Any = None
    makers: tuple[int, ...] = ()  # ops that produced the result
    outputs: tuple[TensorInfo, ...] = ()
    saved: int = 0
    error: BaseException | None = None
    failed_at: tuple[Any, tuple[int, ...]] | None = None  # the op that raised last, and its inputs' sources
    computed: bool = True

    def mark_feeding(self) -> None:
        """Which ops the result depends on; iterative, without recursion."""
        waiting = [i for i in self.makers if i != INPUT]
        while waiting:
            op = self.ops[waiting.pop()]
            if not op.feeds_result:
                op.feeds_result = True
                waiting += [s for s in op.sources if s != INPUT and not self.ops[s].feeds_result]


Save = tuple[Any, int, ModuleCall | None]  # storage, bytes, and whose call


class Tracer(OpRecorder):
    """Records what runs inside its `watch`."""

    def __init__(
        self,
        root: nn.Module | None,
        journal: WriteJournal,
        *,
        ops: bool = True,
        aliases: dict[int, int] | None = None,
        on_call: Callable[[ModuleCall, Any], None] | None = None,
        fake: bool = False,
    ) -> None:
        super().__init__(journal.before_write)
        self.trace = ForwardTrace()
        self._fake = fake  # tensors have no values
        self._with_ops = ops
        self._on_call = on_call
        self._paths = {id(m): p for p, m in root.named_modules()} if root is not None else {}
        self._numbers: dict[int, int] = {}
        self.stack: list[ModuleCall] = []
        self._made: dict[int, tuple[weakref.ref[Tensor], int]] = {}  # id of a tensor -> op
        self._views: dict[Any, int] = {}  # place of a tensor in memory -> op
        self.written: dict[int, int] = {}  # storage -> the op that wrote to it last
        self._last: tuple[Op, list[Tensor]] | None = None
        self._storages: dict[int | None, StorageWeakRef] = {}  # so that addresses are not reused
        self.births: list[int | None] = []  # storages, in the order in which ops created them
        self.writes: list[tuple[int, int]] = []  # ops and the storages that they wrote to
        self.saves: list[Save] = []  # what autograd keeps, also what it kept already
        self._saved: set[Any] = set()
        self._state: set[int] = set()
        self.paused = False
        self.given: dict[int, int] = {}  # id of an input -> its number
        self._given_bytes: dict[int | None, int] = {}  # by storage
        self.parameters = aliases or {}
        if root is not None:
            for tensor in (*root.parameters(), *root.buffers()):
                self._state.add(storage_key(tensor) or 0)

    def watch(self, function: Callable[..., Any], args: Any, kwargs: Any) -> ForwardTrace:
        """Run the function; an exception is stored, not raised."""
        trace = self.trace
        given = tensors_in((args, kwargs))
        self.given = {id(t): n for n, t in enumerate(given)}
        for tensor in given:
            key = storage_key(tensor)
            self._given_bytes[key] = max(described(tensor).bytes, self._given_bytes.get(key, 0))
        with ExitStack() as stack:
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(self._pack, lambda t: t))
            stack.enter_context(self)
            try:
                trace.result = function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - the caller explains it
                trace.error = error
        self.settle()
        results = tensors_in(trace.result)
        trace.makers = tuple(self._maker(t) for t in results)
        trace.outputs = tuple(map(described, results))
        trace.mark_feeding()
        self._close_calls()
        return trace

    # -- modules --

    def entered(self, module: nn.Module, args: Any) -> None:
        self.settle()
        tensors = tensors_in(args)
        file, line = user_line()
        call = ModuleCall(
            index=len(self.trace.calls),
            path=self.path(module),
            module=module,
            parent=self.stack[-1] if self.stack else None,
            number=self.called(module),
            inputs=tuple(map(described, tensors)),
            file=file,
            line=line,
            first_op=len(self.trace.ops),
            reads=tuple(self._maker(t) for t in tensors),
        )
        self.trace.calls.append(call)
        self.stack.append(call)

    def path(self, module: nn.Module) -> str:
        known: str | None = self._paths.get(id(module))
        return type(module).__name__ if known is None else known

    def called(self, module: nn.Module) -> int:
        """Count one more call; returns the count."""
        number = self._numbers[id(module)] = self._numbers.get(id(module), 0) + 1
        return number

    def left(self, module: nn.Module, args: Any, output: Any) -> None:
        while self.stack[-1].module is not module:
            self.stack.pop().end_op = len(self.trace.ops)
        call = self.stack.pop()
        call.end_op = len(self.trace.ops)
        if output is None and sys.exc_info()[1] is not None:
            return  # it raised: hooks are then called with no result
        self.settle()
        call.done = True
        tensors = tensors_in(output)
        call.outputs = tuple(map(described, tensors))
        call.makes = tuple(self._maker(t) for t in tensors)
        if self._on_call is not None:
            self._on_call(call, output)

    def _close_calls(self) -> None:
        """The counts of each call also belong to all calls around it."""
        for call in reversed(self.trace.calls):
            if call.parent is not None:
                call.parent.flops += call.flops
                call.parent.saved += call.saved

    # -- ops --

    def wants(self, func: Any) -> bool:
        return not self.paused

    def before_op(self, op: OpCall) -> None:
        if op.kwargs.get("device") is not None:
            _require_device(torch.device(op.kwargs["device"]))
        self.settle()

    def run(self, op: OpCall) -> Any:
        if self._fake:
            refuse_types(op.func, op.args, op.kwargs)
        return super().run(op)

    def after_op(self, op: OpCall) -> None:
        if not self._with_ops:
            return
        call = self.stack[-1] if self.stack else None
        flops = flops_of(op.func, op.args, op.kwargs, op.result)
        if call is not None:
            call.flops += flops
        trace = self.trace
        read = op.inputs
        file, line = user_line()
        noted = Op(
            index=len(trace.ops),
            function=op.func,
            args=_described_arguments(op.args),
            kwargs={k: _described_argument(v) for k, v in op.kwargs.items()},
            inputs=tuple(map(described, read)),
            sources=tuple(dict.fromkeys(s for t in read for s in self.sources(t))),
            call=call,
            file=file,
            line=line,
            flops=flops,
            parameters=tuple(p for t in read if (p := self.parameters.get(id(t))) is not None),
            given=tuple(dict.fromkeys(self.given[id(t)] for t in read if id(t) in self.given)),
        )
        trace.ops.append(noted)
        self._remember(noted, op.outputs, op.writes)

    def op_failed(self, op: OpCall) -> None:
        sources = dict.fromkeys(s for t in op.inputs for s in self.sources(t))
        self.trace.failed_at = (op.func, tuple(sources))

    def _remember(self, op: Op, made: list[Tensor], written: list[Tensor]) -> None:
        self._last = (op, made)
        for tensor in written:
            self._hold(tensor)
            self.wrote(op.index, storage_key(tensor) or 0)
        for tensor in made:
            self.made_by(op.index, tensor)
            if gives_views(op.function):  # autograd may return another tensor at the same place
                self._views[_place(tensor)] = op.index

    def made_by(self, op: int, tensor: Tensor) -> None:
        self._made[id(tensor)] = (weakref.ref(tensor), op)
        if self._hold(tensor):
            self.births.append(storage_key(tensor))

    def wrote(self, op: int, storage: int) -> None:
        self.written[storage] = op
        self.writes.append((op, storage))

    def _hold(self, tensor: Tensor) -> bool:
        key = storage_key(tensor)
        new = key is not None and key not in self._storages
        if new:
            self._storages[key] = StorageWeakRef(tensor.untyped_storage())
        return new

    def settle(self) -> None:
        """Autograd marks an op's outputs only after the op returned: read them when the next op begins."""
        if self._last is not None:
            op, made = self._last
            self._last = None
            op.outputs = tuple(map(described, made))

    def _maker(self, tensor: Tensor) -> int:
        return max(self.sources(tensor))

    def made_at(self, tensor: Tensor) -> int:
        """The op that returned this tensor."""
        reference, made = self._made.get(id(tensor), _NOBODY)
        return made if reference() is tensor else INPUT

    def sources(self, tensor: Tensor) -> list[int]:
        if not self._with_ops:
            return [INPUT]
        made = self.made_at(tensor)
        if made == INPUT:
            made = self._views.get(_place(tensor), INPUT)
        written = self.written.get(storage_key(tensor) or 0, INPUT)
        return [made, written] if written > made else [made]

    def _pack(self, tensor: Tensor) -> Tensor:
        """Autograd saves this for the backward: it counts unless it is the model's own or already counted."""
        key = storage_key(tensor)
        if key is not None and key not in self._state:
            self._hold(tensor)
            call = self.stack[-1] if self.stack else None
            self.keep(key, self._bytes_held(key, tensor), call)
        return tensor

    def _bytes_held(self, storage: int, tensor: Tensor) -> int:
        """Bytes of all memory that a view keeps alive; for an input, which is not ours, only its own."""
        given = self._given_bytes.get(storage)
        return storage_bytes(tensor) if given is None else given

    def keep(self, storage: Any, size: int, call: ModuleCall | None) -> None:
        self.saves.append((storage, size, call))
        if storage not in self._saved:
            self._saved.add(storage)
            self.trace.saved += size
            if call is not None:
                call.saved += size


def _require_device(device: torch.device) -> None:
    """A fake tensor may be on a device this machine lacks; autograd would then abort the process."""
    if device.type in ("cpu", "meta"):
        return
    backend = getattr(torch, device.type, None)
    if backend is None or not backend.is_available():
        raise RuntimeError(f"this forward needs a tensor on {device}, which is not available here")


def _place(tensor: Tensor) -> Any:
    key = storage_key(tensor)
    return id(tensor) if key is None else (key, tensor.storage_offset(), tensor.shape, tensor.stride())


@lru_cache(maxsize=4096)
def gives_views(func: Any) -> bool:
    schema = getattr(func, "_schema", None)
    return schema is not None and any(r.alias_info is not None for r in schema.returns)


def _described_arguments(args: Any) -> tuple[Any, ...]:
    return tuple(_described_argument(a) for a in args)


def _described_argument(value: Any) -> Any:
    """With a description in place of every tensor; lists become tuples, since the trace must not change."""
    if isinstance(value, Tensor):
        return described(value)
    if isinstance(value, (list, tuple)):
        return tuple(_described_argument(v) for v in value)
    return value
