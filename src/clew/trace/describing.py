"""Models, batches and what else a step needs, as JSON and tensors: the counterpart of `rebuild`.

A module is its class by name, its parameters, buffers, submodules and plain attributes; no
constructor has to be known, and nothing is pickled. What can't be described is named instead.
"""

from __future__ import annotations

import itertools
import sys
import types
import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clew.attach.frames import USER, kind_of
from clew.attach.models import unwrap

_INTERNAL = {name for name in vars(nn.Module()) if name != "training"} | {"training"}
_FUNCTION_HOMES = ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "math", "operator")
_DEEPEST = 12  # of containers in containers


class TooLargeError(Exception):
    """More bytes of tensors than may be written."""


class Description:
    """Collects the tensors of everything that is described; equal objects stay one object."""

    def __init__(self, limit: int) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.missing: list[str] = []  # what could not be described, by where it was
        self._limit = limit
        self._bytes = 0
        self._keys: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._keep: list[Any] = []  # ids are only good while the objects live

    def number_of(self, thing: Any) -> int | None:
        """The number under which a module was described."""
        return self._numbers.get(id(thing))

    def of(self, value: Any, where: str, depth: int = 0) -> Any:
        """The value as JSON."""
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if type(value) is float:
            return value if value - value == 0 else {"kind": "float", "value": str(value)}
        if isinstance(value, nn.Module):
            return self._module(unwrap(value), where)
        if isinstance(value, Tensor):
            return self._tensor(value)
        simple = self._simple(value)
        if simple is not None:
            return simple
        if depth < _DEEPEST:
            nested = self._nested(value, where, depth)
            if nested is not None:
                return nested
        return self._give_up(value, where)

    def _give_up(self, value: Any, where: str) -> dict[str, Any]:
        what = f"{where} ({type(value).__name__})"
        self.missing.append(what)
        return {"kind": "missing", "what": what}

    def _simple(self, value: Any) -> dict[str, Any] | None:
        if isinstance(value, torch.dtype):
            return {"kind": "dtype", "name": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"kind": "device", "name": str(value)}
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            return {"kind": "array", "key": self._keep_tensor(torch.as_tensor(value.copy()))}
        if isinstance(value, types.ModuleType):
            return {"kind": "import", "module": value.__name__}
        if isinstance(value, weakref.ReferenceType):
            return self._weak(value)
        if isinstance(value, type) or callable(value):
            return name_of(value)
        return None

    def _weak(self, value: Any) -> dict[str, Any] | None:
        """torch's recurrent layers keep such references to their own weights."""
        item = value()
        return {"kind": "weak", "item": self._tensor(item)} if isinstance(item, Tensor) else None

    def _nested(self, value: Any, where: str, depth: int) -> dict[str, Any] | None:
        kinds: dict[type, str] = {list: "list", tuple: "tuple", set: "set", torch.Size: "size"}
        if type(value) in kinds:
            items = [self.of(item, f"{where}[{n}]", depth + 1) for n, item in enumerate(value)]
            return {"kind": "sequence", "of": kinds[type(value)], "items": items}
        if isinstance(value, dict):
            pairs = [
                [self.of(k, where, depth + 1), self.of(v, f"{where}[{k!r}]", depth + 1)]
                for k, v in value.items()
            ]
            return {"kind": "dict", "items": pairs}
        return self._object(value, where, depth)

    def _object(self, value: Any, where: str, depth: int) -> dict[str, Any] | None:
        """A plain object, as settings are kept in: its class and attributes."""
        kind = name_of(type(value))
        own = getattr(value, "__dict__", None)
        if kind is None or not isinstance(own, dict) or hasattr(type(value), "__slots__"):
            return None
        if kind["module"] not in ("argparse", "types") and kind.get("file") is None:
            return None
        known = self._numbers.get(id(value))
        if known is not None:
            return {"kind": "same", "number": known}
        number = self._number(value)
        attributes = {n: self.of(v, f"{where}.{n}", depth + 1) for n, v in own.items()}
        return {"kind": "object", "number": number, "class": kind, "attributes": attributes}

    def _module(self, module: nn.Module, where: str) -> dict[str, Any]:
        known = self._numbers.get(id(module))
        if known is not None:
            return {"kind": "same", "number": known}
        kind = name_of(type(module))
        if kind is None:
            return self._give_up(module, where)
        number = self._number(module)
        own = {n: v for n, v in vars(module).items() if n not in _INTERNAL}
        return {
            "kind": "module",
            "number": number,
            "class": kind,
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

    def _tensor(self, tensor: Tensor) -> dict[str, Any]:
        key = self._keys.get(id(tensor))
        if key is None:
            self._keep.append(tensor)
            key = self._keys[id(tensor)] = self._keep_tensor(tensor)
        # What an earlier part of the step computed is taken as it is.
        needs_grad = tensor.requires_grad and tensor.is_leaf
        parameter = isinstance(tensor, nn.Parameter)
        return {"kind": "tensor", "key": key, "parameter": parameter, "requires_grad": needs_grad}

    def _keep_tensor(self, tensor: Tensor) -> str:
        self._bytes += tensor.numel() * tensor.element_size()
        if self._bytes > self._limit:
            raise TooLargeError
        dense = tensor.detach().to_dense() if tensor.layout != torch.strided else tensor.detach()
        key = f"t{len(self.tensors)}"
        self.tensors[key] = dense.to("cpu", copy=True).contiguous()
        return key

    def keep(self, tensor: Tensor) -> str:
        """Store a tensor that belongs to no description, as a random state."""
        return self._keep_tensor(tensor)


def name_of(thing: Any) -> dict[str, Any] | None:
    """Where a class or function can be found again, checked by looking there."""
    homes = [getattr(thing, "__module__", None), *_FUNCTION_HOMES]
    names = [getattr(thing, "__qualname__", None), getattr(thing, "__name__", None)]  # torch.tanh has two
    for home, name in itertools.product(homes, names):
        module = sys.modules.get(home) if isinstance(home, str) else None
        if module is not None and isinstance(name, str) and _reaches(module, name, thing):
            file = getattr(module, "__file__", None)
            own = file is not None and kind_of(file) == USER
            return {"kind": "name", "module": home, "name": name, "file": file if own else None}
    return None


def _reaches(module: Any, name: str, thing: Any) -> bool:
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is thing
