"""Describes models, batches and the rest of a step as JSON and tensors; see `saved_values`.

A module is its class by name, its parameters, buffers, submodules and plain attributes; no
constructor has to be known, and nothing is pickled. What can't be described is named instead.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import types
import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clew.hooks.collect_layers.trained_models import unwrap
from clew.hooks.steps.replay_inputs import DERIVED
from clew.labs.replay.repro.program_names import import_of, name_of
from clew.labs.replay.repro.saved_values import SEQUENCES

_INTERNAL = set(vars(nn.Module()))
_DEEPEST = 12  # of containers in containers
_PLAIN_HOMES = ("argparse", "types", "torch.distributions")  # library classes with nothing but attributes
_SEQUENCES: dict[type, str] = {kind: name for name, kind in SEQUENCES.items()}
Json = dict[str, Any]


class TooLargeError(Exception):
    """More bytes of tensors than may be written."""


class SavedDescription:
    """Collects the tensors of everything it describes; one object stays one object."""

    def __init__(self, limit: int) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.missing: list[str] = []  # what could not be described, by location
        self.named: dict[int, Any] = {}  # the classes and functions that are referred to by name
        self._limit = limit
        self._bytes = 0
        self._keys: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._keep: list[Any] = []  # ids are valid only while the objects live

    def number_of(self, thing: Any) -> int | None:
        """The number under which a module was described."""
        return self._numbers.get(id(thing))

    def of(self, value: Any, where: str, depth: int = 0) -> Any:
        """The value as JSON."""
        if value is None or type(value) in (bool, str, int):
            return value
        if type(value) is float:
            return value if value - value == 0 else {"kind": "float", "value": str(value)}
        if isinstance(value, nn.Module):
            return self._module(unwrap(value), where)
        if isinstance(value, Tensor):
            return self._tensor(value)
        simple = self._simple(value)
        if simple is None and depth < _DEEPEST:
            simple = self._nested(value, where, depth)
        return {"kind": "missing", "what": self._missed(value, where)} if simple is None else simple

    def _missed(self, value: Any, where: str) -> str:
        what = f"{where} ({type(value).__name__})"
        self.missing.append(what)
        return what

    def _simple(self, value: Any) -> Json | None:
        if value is DERIVED:
            return {"kind": "derived"}
        if value is ...:
            return {"kind": "ellipsis"}
        if type(value) is complex:
            return {"kind": "complex", "value": str(value)}
        if type(value) is bytes:
            return {"kind": "bytes", "value": value.hex()}
        if isinstance(value, range):
            return {"kind": "range", "parts": [value.start, value.stop, value.step]}
        if isinstance(value, torch.dtype):
            return {"kind": "dtype", "name": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"kind": "device", "name": str(value)}
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fiubcUSMm":
            return self._array(value)
        if isinstance(value, types.ModuleType):
            return import_of(value)
        if isinstance(value, weakref.ReferenceType):
            return self._weak(value)
        if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
            return self._name(value)
        return None

    def _name(self, value: Any) -> Json | None:
        found = name_of(value)
        if found is not None:
            self.named[id(value)] = value
        return found

    def _array(self, value: Any) -> Json:
        """As bytes: numpy has dtypes that torch lacks."""
        raw = torch.frombuffer(bytearray(value.tobytes()) or bytearray(1), dtype=torch.uint8)
        key = self.keep(raw[: value.nbytes])
        shape, array = list(value.shape), isinstance(value, np.ndarray)
        return {"kind": "array", "key": key, "dtype": value.dtype.str, "shape": shape, "array": array}

    def _weak(self, value: Any) -> Json | None:
        """torch's recurrent layers keep such references to their own weights."""
        item = value()
        return {"kind": "weak", "item": self._tensor(item)} if isinstance(item, Tensor) else None

    # -- containers --

    def _nested(self, value: Any, where: str, depth: int) -> Json | None:
        if isinstance(value, enum.Enum):
            kind = self._name(type(value))
            return kind and {"kind": "enum", "class": kind, "value": self.of(value.value, where, depth + 1)}
        if isinstance(value, slice):
            parts = [self.of(part, where, depth + 1) for part in (value.start, value.stop, value.step)]
            return {"kind": "slice", "parts": parts}
        if isinstance(value, functools.partial):
            named = {"function": value.func, "args": value.args, "kwargs": value.keywords}
            return {"kind": "partial", **{n: self.of(v, where, depth + 1) for n, v in named.items()}}
        if isinstance(value, types.MethodType):
            owner = self.of(value.__self__, where, depth + 1)
            return {"kind": "method", "owner": owner, "name": value.__name__}
        if type(value) in _SEQUENCES or isinstance(value, tuple):
            return self._sequence(value, where, depth)
        if isinstance(value, dict):
            return self._dict(value, where, depth)
        return self._object(value, where, depth)

    def _sequence(self, value: Any, where: str, depth: int) -> Json | None:
        items = [self.of(item, f"{where}[{n}]", depth + 1) for n, item in enumerate(value)]
        if type(value) in _SEQUENCES:
            return {"kind": "sequence", "of": _SEQUENCES[type(value)], "items": items}
        kind = self._name(type(value))  # a named tuple
        return kind and {"kind": "sequence", "class": kind, "items": items}

    def _dict(self, value: dict[Any, Any], where: str, depth: int) -> Json | None:
        pairs = [
            [self.of(k, where, depth + 1), self.of(v, f"{where}[{k!r}]", depth + 1)] for k, v in value.items()
        ]
        if type(value) is dict:
            return {"kind": "dict", "items": pairs}
        kind = self._name(type(value))
        if kind is None:
            return None
        own = {n: self.of(v, f"{where}.{n}", depth + 1) for n, v in _attributes(value).items()}
        described = {"kind": "dict", "class": kind, "items": pairs, "attributes": own}
        if isinstance(value, collections.defaultdict):
            described["factory"] = self.of(value.default_factory, where, depth + 1)
        return described

    def _object(self, value: Any, where: str, depth: int) -> Json | None:
        """A plain object, such as settings: its class and attributes."""
        kind = self._name(type(value))
        if kind is None or not _is_plain(value, kind):
            return None
        known = self._numbers.get(id(value))
        if known is not None:
            return {"kind": "same", "number": known}
        number = self._number(value)
        own = {n: self.of(v, f"{where}.{n}", depth + 1) for n, v in _attributes(value).items()}
        return {"kind": "object", "number": number, "class": kind, "attributes": own}

    def _module(self, module: nn.Module, where: str) -> Json:
        known = self._numbers.get(id(module))
        if known is not None:
            return {"kind": "same", "number": known}
        kind = None if isinstance(module, torch.jit.ScriptModule) else self._name(type(module))
        number = self._number(module)
        # Without a class there are still the parameters, for a model that the user creates.
        what = {} if kind is not None else {"what": self._missed(module, where)}
        own = {n: v for n, v in vars(module).items() if n not in _INTERNAL} if kind is not None else {}
        return {
            "kind": "module",
            "number": number,
            "class": kind,
            **what,
            "training": module.training,
            "parameters": {n: None if p is None else self._tensor(p) for n, p in module._parameters.items()},
            "buffers": {n: None if b is None else self._tensor(b) for n, b in module._buffers.items()},
            "modules": {
                n: None if m is None else self._module(m, f"{where}.{n}") for n, m in module._modules.items()
            },
            "transient": sorted(module._non_persistent_buffers_set),
            "attributes": {n: self.of(v, f"{where}.{n}") for n, v in own.items()},
        }

    def _number(self, thing: Any) -> int:
        self._keep.append(thing)
        return self._numbers.setdefault(id(thing), len(self._numbers))

    # -- tensors --

    def _tensor(self, tensor: Tensor) -> Json:
        key = self._keys.get(id(tensor))
        if key is None:
            self._keep.append(tensor)
            key = self._keys[id(tensor)] = self.keep(tensor)
        # What an earlier part of the step computed is saved as a value.
        needs_grad = tensor.requires_grad and tensor.is_leaf
        parameter = isinstance(tensor, nn.Parameter)
        described = {"kind": "tensor", "key": key, "parameter": parameter, "requires_grad": needs_grad}
        if tensor.layout != torch.strided:
            described["layout"] = str(tensor.layout).removeprefix("torch.")
        if tensor.dtype == torch.complex128:
            described["pairs"] = True
        return described

    def keep(self, tensor: Tensor) -> str:
        """Store a tensor, which may belong to no description (a random state); returns its key."""
        self._bytes += tensor.numel() * tensor.element_size()
        if self._bytes > self._limit:
            raise TooLargeError
        dense = tensor.detach().to_dense() if tensor.layout != torch.strided else tensor.detach()
        if dense.dtype == torch.complex128:  # safetensors can't store it
            dense = torch.view_as_real(dense)
        key = f"t{len(self.tensors)}"
        self.tensors[key] = dense.to("cpu", copy=True).contiguous()
        return key


def _attributes(value: Any) -> dict[str, Any]:
    """What is in an object, in its dictionary or in slots."""
    own: dict[str, Any] = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                own[name] = getattr(value, name)
    return own


def _is_plain(value: Any, kind: Json) -> bool:
    """Whether it consists of its attributes only, as far as that can be determined."""
    known = kind["module"].startswith(_PLAIN_HOMES) or kind["file"] is not None
    if not known and not dataclasses.is_dataclass(value):
        return False
    return isinstance(value, types.SimpleNamespace) or _made_in_python(type(value))


def _made_in_python(kind: type) -> bool:
    """Not built on a list, a socket or another type with more than attributes."""
    if hasattr(kind, "__del__"):
        return False
    try:
        object.__new__(kind)
    except TypeError:
        return False
    return True


def unusable(described: Any) -> bool:
    """Whether a value can't be rebuilt; objects and dictionaries may lack a part."""
    if not isinstance(described, dict):
        return False
    parts = [*described.get("items", []), *described.get("parts", [])] if described["kind"] != "dict" else []
    parts += [described[part] for part in ("function", "args", "kwargs", "owner") if part in described]
    return described["kind"] == "missing" or any(unusable(part) for part in parts)
