"""Rebuilds the values of a saved step from JSON and tensors; see `saved_description`.

This text is part of the `rebuild.py` in every repro folder, so it must not import Clew.
"""

from __future__ import annotations

import contextlib
import functools
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from clew.labs.replay.repro.saved_sources import CannotRebuild, NotSaved

DERIVED = object()  # stands for an argument that the step computes itself
SEQUENCES: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "size": torch.Size,
}


class SavedValues:
    """Builds each object once, so that shared objects stay shared."""

    def __init__(
        self,
        tensors: dict[str, Tensor],
        find: Callable[[dict[str, Any]], Any],
        given: dict[int, nn.Module] | None = None,
    ) -> None:
        self.tensors = tensors
        self.made: dict[str, Tensor] = {}  # by the key of what is saved
        self.objects: dict[int, Any] = {}  # by number
        self._described: dict[int, dict[str, Any]] = {}
        self.dropped: list[str] = []  # attributes and variables that could not be saved
        self._find = find
        self._given = given or {}  # models to use instead of the saved ones, by number

    def build(self, value: Any) -> Any:
        """The value that a description stands for; raises `NotSaved` if it was not saved."""
        if not isinstance(value, dict):
            return value
        if value["kind"] != "same" and value.get("number") in self.objects:
            return self.objects[value["number"]]  # a reference to it came first
        return getattr(self, f"_make_{value['kind']}")(value)

    def know(self, data: Any) -> None:
        """Find where each object in this data is described: a reference to it may be built first."""
        if isinstance(data, dict):
            if data.get("kind") != "same" and isinstance(data.get("number"), int):
                self._described[data["number"]] = data
            data = list(data.values())
        for part in data if isinstance(data, list) else ():
            self.know(part)

    def _make_tensor(self, value: dict[str, Any]) -> Tensor:
        key = value["key"]
        if key not in self.made:
            tensor = _laid_out(self.tensors[key], value)
            tensor.requires_grad_(value["requires_grad"] and not value["parameter"])
            made = nn.Parameter(tensor, value["requires_grad"]) if value["parameter"] else tensor
            self.made[key] = made
        known: Tensor = self.made[key]
        return known

    def _make_array(self, value: dict[str, Any]) -> Any:
        array = self.tensors[value["key"]].numpy().view(value["dtype"]).reshape(value["shape"])
        return array.copy() if value["array"] else array[()]

    def _make_sequence(self, value: dict[str, Any]) -> Any:
        items = [self.build(item) for item in value["items"]]
        if "class" in value:
            kind = self._find(value["class"])
            return kind(*items) if hasattr(kind, "_fields") else kind(items)
        return SEQUENCES[value["of"]](items)

    def _make_dict(self, value: dict[str, Any]) -> Any:
        kind = self._find(value["class"]) if "class" in value else dict
        made = kind(self.build(value["factory"])) if "factory" in value else kind.__new__(kind)
        put = OrderedDict.__setitem__ if isinstance(made, OrderedDict) else dict.__setitem__
        for key, item in value["items"]:
            with self._perhaps_not_needed():
                put(made, self.build(key), self.build(item))
        self.set_attributes(getattr(made, "__dict__", {}), value.get("attributes", {}))
        return made

    def _make_float(self, value: dict[str, Any]) -> float:
        return float(value["value"])

    def _make_complex(self, value: dict[str, Any]) -> complex:
        return complex(value["value"])

    def _make_bytes(self, value: dict[str, Any]) -> bytes:
        return bytes.fromhex(value["value"])

    def _make_ellipsis(self, value: dict[str, Any]) -> Any:
        return ...

    def _make_derived(self, value: dict[str, Any]) -> Any:
        return DERIVED

    def _make_slice(self, value: dict[str, Any]) -> slice:
        return slice(*(self.build(part) for part in value["parts"]))

    def _make_range(self, value: dict[str, Any]) -> range:
        return range(*value["parts"])

    def _make_enum(self, value: dict[str, Any]) -> Any:
        return self._find(value["class"])(self.build(value["value"]))

    def _make_partial(self, value: dict[str, Any]) -> Any:
        function, args, kwargs = (self.build(value[part]) for part in ("function", "args", "kwargs"))
        return functools.partial(function, *args, **kwargs)

    def _make_method(self, value: dict[str, Any]) -> Any:
        return getattr(self.build(value["owner"]), value["name"])

    def _make_dtype(self, value: dict[str, Any]) -> Any:
        return getattr(torch, value["name"])

    def _make_device(self, value: dict[str, Any]) -> torch.device:
        return torch.device("cpu")  # a saved step is run on the CPU, wherever it was trained

    def _make_import(self, value: dict[str, Any]) -> Any:
        return self._find(value)

    def _make_name(self, value: dict[str, Any]) -> Any:
        return self._find(value)

    def _make_missing(self, value: dict[str, Any]) -> Any:
        raise NotSaved(f"{value['what']} could not be saved")

    def _make_weak(self, value: dict[str, Any]) -> Any:
        return weakref.ref(self.build(value["item"]))

    def _make_same(self, value: dict[str, Any]) -> Any:
        number = value["number"]
        if number not in self.objects:
            if number not in self._described:
                raise NotSaved("an object that something else refers to could not be saved")
            return self.build(self._described[number])
        return self.objects[number]

    def _make_object(self, value: dict[str, Any]) -> Any:
        kind = self._find(value["class"])
        made = (types.SimpleNamespace if kind is types.SimpleNamespace else object).__new__(kind)
        self.objects[value["number"]] = made
        attributes: dict[str, Any] = {}
        self.set_attributes(attributes, value["attributes"])
        for name, item in attributes.items():
            object.__setattr__(made, name, item)  # a frozen dataclass has no other way
        return made

    def _make_module(self, value: dict[str, Any]) -> nn.Module:
        number = value["number"]
        given = self._given.get(number)
        if given is not None:
            self.objects[number] = given
            self._fill(given, value)
            return given
        if value["class"] is None:
            raise NotSaved(f"{value['what']} could not be saved")
        kind = self._find(value["class"])
        made: nn.Module = kind.__new__(kind)
        nn.Module.__init__(made)
        self.objects[number] = made
        for name, item in value["parameters"].items():
            made._parameters[name] = self.build(item)
        for name, item in value["buffers"].items():
            made._buffers[name] = self.build(item)
        for name, item in value["modules"].items():
            made._modules[name] = self.build(item)
        made._non_persistent_buffers_set.update(value["transient"])
        made.training = value["training"]
        self.set_attributes(made.__dict__, value["attributes"])
        return made

    def set_attributes(self, attributes: dict[str, Any], values: dict[str, Any]) -> None:
        """Set the values; those that could not be saved are left out."""
        for name, item in values.items():
            with self._perhaps_not_needed():
                attributes[name] = self.build(item)

    @contextlib.contextmanager
    def _perhaps_not_needed(self) -> Iterator[None]:
        try:
            yield
        except NotSaved as error:
            self.dropped.append(str(error).removesuffix(" could not be saved"))

    def _fill(self, model: nn.Module, value: dict[str, Any]) -> None:
        """Set the parameters, buffers and modes of a given model."""
        saved, modules = dict(_tensors_of(value)), dict(_modules_of(value))
        first, own = _own_tensors(model), _own_tensors(model, every_name=True)
        wrong = sorted((set(first) - set(saved)) | (set(saved) - set(own)))
        if wrong:
            raise CannotRebuild(f"the given model has different parameters than the saved one: {wrong[0]}")
        with torch.no_grad():
            for name, item in saved.items():
                kept = self.tensors[item["key"]]
                if own[name].shape != kept.shape:
                    sizes = f"{tuple(own[name].shape)} instead of {tuple(kept.shape)}"
                    raise CannotRebuild(
                        f"the given model has a different size than the saved one: {name} {sizes}"
                    )
                own[name].copy_(kept)
                own[name].requires_grad_(item["requires_grad"])
        for name, module in model.named_modules():
            if name in modules:
                module.training = modules[name]["training"]
                self.objects[modules[name]["number"]] = module


def _laid_out(tensor: Tensor, value: dict[str, Any]) -> Tensor:
    if value.get("pairs"):  # complex128 has no place in safetensors
        tensor = torch.view_as_complex(tensor)
    if value.get("layout") == "sparse_coo":
        return tensor.to_sparse()
    return tensor.to_sparse_csr() if value.get("layout") == "sparse_csr" else tensor


def _own_tensors(model: nn.Module, every_name: bool = False) -> dict[str, Tensor]:
    """Parameters and buffers; tied weights have several names."""
    parameters = model.named_parameters(remove_duplicate=not every_name)
    return {**dict(parameters), **dict(model.named_buffers(remove_duplicate=not every_name))}


def _tensors_of(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for part in ("parameters", "buffers"):
        yield from ((prefix + name, item) for name, item in value[part].items() if item is not None)
    for name, item in value["modules"].items():
        if item is not None and item["kind"] == "module":
            yield from _tensors_of(item, f"{prefix}{name}.")


def _modules_of(value: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, value
    for name, item in value["modules"].items():
        if item is not None and item["kind"] == "module":
            yield from _modules_of(item, f"{path}.{name}" if path else name)
