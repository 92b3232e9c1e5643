"""Traces repeated layers once and reuses the record.

A deep network is mostly one block many times. If a module is called as another of its kind was
before (same type, settings and shapes at every level, inputs of the same shapes), the record
of that call is repeated under the new names, and its output is created directly. Only without
values: then nothing else can distinguish two such calls.

A module takes part if everything it has and reads is known to be plain (no instance of a custom class,
no hook), and a call can be reused if it changed nothing but its output: attributes, globals, arguments,
random numbers and other tensors are unchanged. Everything else just runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from clew.labs.network.tensor_info import described
from clew.labs.network.trace.module_kinds import (
    ForwardStandIn,
    Kinds,
    NotPlainError,
    first_places,
    modules_below,
    plain,
    state_below,
)
from clew.labs.network.trace.op_tracer import ModuleCall, Op, Save, Tracer
from clew.labs.snapshot.inplace_writes import storage_key
from clew.labs.snapshot.module_state import ObjectState
from clew.measure.nested_tensors import map_tensors, tensors_in
from clew.measure.rng import host_states
from clew.records.network import INPUT
from clew.records.site import Line

_TORCHS = ("fake_mode", "constant", "pytype", "dispatch_keys", "real_tensor")
_TRIES = 2  # of a kind that changes more than its output


@dataclass
class SeenLayer:
    """A traced call, and what is needed to repeat its record."""

    modules: list[nn.Module]
    state: list[Tensor]
    inputs: list[Tensor]
    sources: list[list[int]]
    call: ModuleCall
    calls: tuple[int, int]
    ops: tuple[int, int]
    writes: list[tuple[int, int]]
    saves: list[Save]
    born: set[int | None]
    remade: list[tuple[int, int]]  # state that an op returned as its result: which, and the op
    output: Any = None  # with what to create each tensor from


@dataclass
class ReturnedInput:
    """An output that is one of the inputs."""

    number: int


@dataclass
class RepeatedOutput:
    """An output that was created inside."""

    tensor: Tensor
    op: int
    storage: int | None


class Repeats:
    """Replaces `forward` in every module that may have a duplicate."""

    def __init__(self, root: nn.Module, tracer: Tracer) -> None:
        self._tracer = tracer
        self._seen: dict[Hashable, SeenLayer] = {}
        self._failed: dict[Hashable, int] = {}
        self._kinds = Kinds()
        for module in root.modules():
            if module is not root and worth_it(module) and "forward" not in module.__dict__:
                module.__dict__["forward"] = ForwardStandIn(self._forward, module, module.forward)

    def _forward(self, module: nn.Module, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        stack = self._tracer.stack
        if not stack or stack[-1].module is not module:
            return forward(*args, **kwargs)
        kind = self._kinds.of(module)  # asked at each call: its caller may have changed it
        if kind is None or self._failed.get(kind, 0) >= _TRIES:
            return forward(*args, **kwargs)
        inputs = tensors_in((args, kwargs))
        try:
            way = (kind, self._shape(args), self._shape(kwargs), _relations(inputs), _surroundings())
        except NotPlainError:
            return forward(*args, **kwargs)
        self._tracer.settle()
        seen = self._seen.get(way)
        if seen is not None:
            known = self._sources(seen, module, inputs)
            if known is not None:
                return self._again(seen, module, inputs, known)
            return forward(*args, **kwargs)
        return self._first(module, forward, kind, way, args, kwargs, inputs)

    # -- which calls are alike --

    def _shape(self, value: Any) -> Hashable:
        if isinstance(value, Tensor):
            if type(value) is not FakeTensor or id(value) in self._tracer.parameters or _labelled(value):
                raise NotPlainError
            return (_looks(value), self._tracer.given.get(id(value)))
        if type(value) is dict:
            return (dict, tuple((plain(k), self._shape(v)) for k, v in value.items()))
        if type(value) in (list, tuple):
            return (type(value), tuple(map(self._shape, value)))
        return plain(value)

    def _sources(self, seen: SeenLayer, module: nn.Module, inputs: list[Tensor]) -> dict[int, int] | None:
        """Where the inputs came from then, and where they come from now; None if that is not one to one."""
        known = {INPUT: INPUT}
        for then, tensor in zip(seen.sources, inputs, strict=True):
            now = self._tracer.sources(tensor)
            if len(now) != len(then):
                return None
            for old, new in zip(then, now, strict=True):
                if known.setdefault(old, new) != new:
                    return None
        written = self._tracer.written
        if any(storage_key(t) in written for t in state_below(module)):
            return None
        return known

    # -- the first of its kind --

    def _first(
        self,
        module: nn.Module,
        forward: Callable[..., Any],
        kind: Hashable,
        way: Hashable,
        args: Any,
        kwargs: Any,
        inputs: list[Tensor],
    ) -> Any:
        tracer, trace = self._tracer, self._tracer.trace
        call, failed = tracer.stack[-1], trace.failed_at
        modules, state = list(modules_below(module)), state_below(module)
        before = [ObjectState(m) for m in modules]
        given = _contents((args, kwargs))
        random_states = _random_states()
        sources = [tracer.sources(t) for t in inputs]
        ops, writes, saves = len(trace.ops), len(tracer.writes), len(tracer.saves)
        births = len(tracer.births)
        output = forward(*args, **kwargs)
        tracer.settle()
        seen = SeenLayer(
            modules,
            state,
            inputs,
            sources,
            call,
            (call.index + 1, len(trace.calls)),
            (ops, len(trace.ops)),
            tracer.writes[writes:],
            tracer.saves[saves:],
            set(tracer.births[births:]),
            [(n, op) for n, t in enumerate(state) if (op := tracer.made_at(t)) >= ops],
        )
        try:
            seen.output = self._template(seen, output)
            clean = (
                trace.failed_at is failed
                and random_states == _random_states()
                and given == _contents((args, kwargs))
                and kind == self._kinds.of(module)
                and all(state.unchanged() for state in before)
                and self._closed(seen)
            )
        except NotPlainError:
            clean = False
        if clean:
            self._seen[way] = seen
        else:
            self._failed[kind] = self._failed.get(kind, 0) + 1
        return output

    def _template(self, seen: SeenLayer, output: Any) -> Any:
        """The output's nesting with what to create each tensor from."""
        places = {id(t): n for n, t in enumerate(seen.inputs)}
        known = {storage_key(t) for t in (*seen.inputs, *seen.state)}
        made: set[int | None] = set()

        def keep(tensor: Tensor) -> Any:
            if id(tensor) in places:
                return ReturnedInput(places[id(tensor)])
            op, key = max(self._tracer.sources(tensor)), storage_key(tensor)
            if op < seen.ops[0] or key in known or key in made:
                raise NotPlainError
            made.add(key)
            with self._unwatched():
                copy = tensor.clone()
            if _looks(copy) != _looks(tensor):
                raise NotPlainError
            return RepeatedOutput(copy, op, key)

        self._shape(output)  # or it contains what we can't build
        return map_tensors(output, keep)

    def _closed(self, seen: SeenLayer) -> bool:
        """Whether it read and wrote only its inputs, its state and what it created itself."""
        trace = self._tracer.trace
        (first, end), (start, stop) = seen.ops, seen.calls
        outside = {INPUT, *(s for sources in seen.sources for s in sources)}
        ops, calls = trace.ops[first:end], trace.calls[start:stop]
        read = {s for op in ops for s in op.sources} | {s for c in calls for s in (*c.reads, *c.makes)}
        if not all(first <= s or s in outside for s in read):
            return False
        numbers = set(map(self._number, seen.state))
        if not all(p in numbers for op in ops for p in op.parameters):
            return False
        own = {storage_key(t) for t in seen.state}
        inputs = {storage_key(t) for t in seen.inputs}
        if not all(key in own or key in seen.born for _, key in seen.writes):
            return False
        return all(k in seen.born or k in inputs or isinstance(k, tuple) for k, _, _ in seen.saves)

    # -- every other --

    def _again(self, seen: SeenLayer, module: nn.Module, inputs: list[Tensor], known: dict[int, int]) -> Any:
        """Repeat the record for this module and these inputs; returns its output."""
        tracer, trace = self._tracer, self._tracer.trace
        first, shift = seen.ops[0], len(trace.ops) - seen.ops[0]
        state = state_below(module)
        calls = self._calls_again(seen, module, shift, known)
        numbers = dict(zip(map(self._number, seen.state), map(self._number, state), strict=True))
        for op in trace.ops[slice(*seen.ops)]:
            new = _copied(op)
            new.index = op.index + shift
            new.sources = tuple(dict.fromkeys(_moved(op.sources, first, shift, known)))
            new.call = calls[id(op.call)]
            new.file, new.line = _line(op, seen.call, calls)
            new.parameters = tuple(numbers[p] for p in op.parameters)
            if op.call is seen.call:
                new.call.flops += op.flops
            trace.ops.append(new)
        for op_index, key in seen.writes:
            for old, tensor in zip(seen.state, state, strict=True):
                if storage_key(old) == key:
                    tracer.wrote(op_index + shift, storage_key(tensor) or 0)
        for number, op_index in seen.remade:
            tracer.made_by(op_index + shift, state[number])
        storages = dict(zip(map(storage_key, seen.inputs), map(storage_key, inputs), strict=True))
        output = self._output(seen, inputs, shift, storages)
        for key, size, saver in seen.saves:
            tracer.keep(storages.get(key, (shift, key)), size, calls[id(saver)])
        return output

    def _calls_again(
        self, seen: SeenLayer, module: nn.Module, shift: int, known: dict[int, int]
    ) -> dict[int, ModuleCall]:
        """Maps the ids of the calls then to those of now."""
        tracer, trace = self._tracer, self._tracer.trace
        twins = {id(a): b for a, b in zip(seen.modules, modules_below(module), strict=True)}
        calls = {id(seen.call): tracer.stack[-1]}
        for old in trace.calls[slice(*seen.calls)]:
            new = _copied(old)
            new.index, new.module = len(trace.calls), twins[id(old.module)]
            new.path, new.number = tracer.path(new.module), tracer.called(new.module)
            new.parent = calls[id(old.parent)]
            new.file, new.line = _line(old, seen.call, calls)
            new.first_op, new.end_op = old.first_op + shift, old.end_op + shift
            new.reads = _moved(old.reads, seen.ops[0], shift, known)
            new.makes = _moved(old.makes, seen.ops[0], shift, known)
            new.saved = 0  # counted when it is saved
            calls[id(old)] = new
            trace.calls.append(new)
        return calls

    def _number(self, tensor: Tensor) -> int:
        return self._tracer.parameters.get(id(tensor), id(tensor))

    def _output(
        self, seen: SeenLayer, inputs: list[Tensor], shift: int, storages: dict[int | None, int | None]
    ) -> Any:
        def make(part: ReturnedInput | RepeatedOutput) -> Tensor:
            if isinstance(part, ReturnedInput):
                return inputs[part.number]
            with self._unwatched():
                tensor = part.tensor.clone()
            self._tracer.made_by(part.op + shift, tensor)
            storages[part.storage] = storage_key(tensor)
            return tensor

        return map_tensors(seen.output, make, kinds=(ReturnedInput, RepeatedOutput))

    @contextmanager
    def _unwatched(self) -> Iterator[None]:
        self._tracer.paused = True
        try:
            yield
        finally:
            self._tracer.paused = False


def worth_it(module: nn.Module) -> bool:
    """A torch layer is only an op or two; a compiled one has no `forward` to replace."""
    if isinstance(module, torch.jit.ScriptModule):
        return False
    return any(True for _ in module.children()) or not type(module).__module__.startswith("torch.nn.")


def _moved(ops: tuple[int, ...], first: int, shift: int, known: dict[int, int]) -> tuple[int, ...]:
    return tuple(op + shift if op >= first else known[op] for op in ops)


def _line(old: ModuleCall | Op, outer: ModuleCall, calls: dict[int, ModuleCall]) -> Line:
    """A line inside the module is the same; one outside is where the module was called."""
    if (old.file, old.line) == (outer.file, outer.line):
        return calls[id(outer)].file, calls[id(outer)].line
    return old.file, old.line


def _copied(thing: Any) -> Any:
    copy = object.__new__(type(thing))
    copy.__dict__.update(thing.__dict__)
    return copy


def _looks(tensor: Tensor) -> Hashable:
    """Everything that a forward without values can know about a tensor."""
    if not all(type(n) is int for n in (*tensor.shape, *tensor.stride())) or tensor.layout != torch.strided:
        raise NotPlainError
    return (
        tuple(tensor.shape),
        tensor.stride(),
        tensor.storage_offset(),
        tensor.dtype,
        described(tensor).device,
        tensor.untyped_storage().nbytes(),
        tensor.requires_grad,
        tensor.is_conj() or tensor.is_neg(),
    )


def _labelled(tensor: FakeTensor) -> bool:
    """Whether the program has set attributes on it: torch's own public names are these."""
    return any(name[0] != "_" and name not in _TORCHS for name in tensor.__dict__)


def _relations(tensors: list[Tensor]) -> Hashable:
    """Which are the same tensor, and which share memory."""
    return first_places(map(id, tensors)), first_places(map(storage_key, tensors))


def _surroundings() -> Hashable:
    """Everything that torch's own behaviour depends on."""
    if torch.is_autocast_enabled("cpu") and torch.is_autocast_cache_enabled():
        raise NotPlainError  # a weight is cast where it is first used, and not again
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu"),
        torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda"),
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        torch._C._autograd._top_saved_tensors_default_hooks(True),  # checkpointing, offloading
        torch.backends.cuda.flash_sdp_enabled(),
        torch.backends.cuda.math_sdp_enabled(),
        torch.backends.cuda.mem_efficient_sdp_enabled(),
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
    )


def _contents(value: Any) -> Hashable:
    """Which objects are where in the containers of a value: shows whether one was written to."""
    if isinstance(value, dict):
        return id(value), tuple((k, _contents(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return None if isinstance(value, tuple) else id(value), tuple(map(_contents, value))
    return id(value)


def _random_states() -> Any:
    """The state of Python's and numpy's generators; torch's random numbers have no values here."""
    _, numpys, pythons = host_states(torchs=False)
    return pythons, numpys[2]
