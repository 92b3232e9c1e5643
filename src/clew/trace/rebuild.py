"""Makes the objects of a saved step again: models, batch, random state. Loads no pickle.

A copy of this file lies in every repro folder, so that it runs where Clew is not installed: only
the standard library, torch and safetensors are used. Classes and functions come from the
program's own source, of which only the definitions are executed, never the training.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import random
import sys
import types
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

FORMAT = 1
_PLAIN_CALLS = {"torch", "nn", "np", "numpy", "math", "os", "Path", "pathlib", "int", "float", "str", "bool"}
_PLAIN_CALLS |= {"len", "range", "dict", "list", "tuple", "set", "max", "min", "namedtuple", "partial"}
_EFFECTS = {"load", "save", "manual_seed", "compile", "makedirs", "mkdir", "remove", "system", "seed"}
_modules: dict[str, tuple[types.ModuleType, dict[str, str]]] = {}


class CannotRebuild(Exception):  # noqa: N818 - reads as what it is
    """What is missing, in one line."""


class NotSaved(CannotRebuild):
    """A value that has no place in JSON or safetensors."""


class SavedStep:
    """A step as it was before it went wrong."""

    def __init__(self, folder: Path, models: dict[str, nn.Module] | None = None) -> None:
        self.folder = folder
        self.data = _read(folder)
        self._tensors = _load(folder)
        self._made: dict[str, Any] = {}
        self._modules: dict[int, Any] = {}
        self._models = models or {}
        self.dropped: list[str] = []  # attributes that could not be saved
        for path in reversed(self.data.get("paths", [])):
            if path not in sys.path and Path(path).is_dir():
                sys.path.insert(0, path)
        self.names: dict[str, Any] = {n: self._build(v) for n, v in self.data["names"].items()}
        self.calls = [self._call(call) for call in self.data["calls"]]

    @property
    def models(self) -> dict[str, nn.Module]:
        """The models of the step by their names."""
        return {name: self._modules[key] for name, key in self.data["roots"].items() if key in self._modules}

    @contextlib.contextmanager
    def conditions(self) -> Iterator[None]:
        """Random state and precision as they were."""
        self._restore_rng()
        cast = self.data["autocast"]
        with contextlib.ExitStack() as stack:
            if cast["enabled"]:
                dtype = getattr(torch, cast["dtype"])
                stack.enter_context(torch.autocast(cast["device"], dtype, cache_enabled=False))
            yield

    def gradients(self, loss: Tensor) -> dict[str, Tensor]:
        """The gradient of every parameter that the loss depends on."""
        named = {f"{m}.{n}": p for m, model in self.models.items() for n, p in model.named_parameters()}
        trained = {name: p for name, p in named.items() if p.requires_grad}
        if not trained or not loss.requires_grad:
            return {}
        found = torch.autograd.grad(loss, list(trained.values()), allow_unused=True)
        return {name: g for name, g in zip(trained, found, strict=True) if g is not None}

    def _call(self, call: dict[str, Any]) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
        return self._build(call["model"]), self._build(call["args"]), self._build(call["kwargs"])

    def _restore_rng(self) -> None:
        rng = self.data["rng"]
        if rng.get("torch"):
            torch.set_rng_state(self._tensors[rng["torch"]])
        if rng.get("python"):
            version, state, gauss = rng["python"]
            random.setstate((version, tuple(state), gauss))
        if rng.get("numpy"):
            kind, key, position, has_gauss, cached = rng["numpy"]
            keys = self._tensors[key].numpy().astype("uint32")
            importlib.import_module("numpy").random.set_state((kind, keys, position, has_gauss, cached))

    # -- values --

    def _build(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return getattr(self, f"_make_{value['kind']}")(value)

    def _make_tensor(self, value: dict[str, Any]) -> Tensor:
        key = value["key"]
        if key not in self._made:
            tensor = self._tensors[key]
            tensor.requires_grad_(value["requires_grad"] and not value["parameter"])
            made = nn.Parameter(tensor, value["requires_grad"]) if value["parameter"] else tensor
            self._made[key] = made
        known: Tensor = self._made[key]
        return known

    def _make_array(self, value: dict[str, Any]) -> Any:
        return self._tensors[value["key"]].numpy()

    def _make_sequence(self, value: dict[str, Any]) -> Any:
        items = [self._build(item) for item in value["items"]]
        return {"list": list, "tuple": tuple, "set": set, "size": torch.Size}[value["of"]](items)

    def _make_dict(self, value: dict[str, Any]) -> dict[Any, Any]:
        return {self._build(key): self._build(item) for key, item in value["items"]}

    def _make_float(self, value: dict[str, Any]) -> float:
        return float(value["value"])

    def _make_dtype(self, value: dict[str, Any]) -> Any:
        return getattr(torch, value["name"])

    def _make_device(self, value: dict[str, Any]) -> torch.device:
        return torch.device("cpu")  # wherever it was trained, it is run again here

    def _make_import(self, value: dict[str, Any]) -> Any:
        return importlib.import_module(value["module"])

    def _make_name(self, value: dict[str, Any]) -> Any:
        return find(value)

    def _make_missing(self, value: dict[str, Any]) -> Any:
        raise NotSaved(f"{value['what']} could not be saved")

    def _make_weak(self, value: dict[str, Any]) -> Any:
        return weakref.ref(self._build(value["item"]))

    def _make_same(self, value: dict[str, Any]) -> Any:
        if value["number"] not in self._modules:
            raise NotSaved("an object that something else refers to could not be saved")
        return self._modules[value["number"]]

    def _make_object(self, value: dict[str, Any]) -> Any:
        kind = find(value["class"])
        made = kind.__new__(kind)
        self._modules[value["number"]] = made
        self._set_attributes(made.__dict__, value)
        return made

    def _make_module(self, value: dict[str, Any]) -> nn.Module:
        number = value["number"]
        given = next((m for n, m in self._models.items() if self.data["roots"].get(n) == number), None)
        if given is not None:
            self._modules[number] = given
            self._fill(given, value)
            return given
        kind = find(value["class"])
        made: nn.Module = kind.__new__(kind)
        nn.Module.__init__(made)
        self._modules[number] = made
        for name, item in value["parameters"].items():
            made._parameters[name] = self._build(item)
        for name, item in value["buffers"].items():
            made._buffers[name] = self._build(item)
        for name, item in value["modules"].items():
            made._modules[name] = self._build(item)
        made._non_persistent_buffers_set.update(value["transient"])
        made.training = value["training"]
        self._set_attributes(made.__dict__, value)
        return made

    def _set_attributes(self, attributes: dict[str, Any], value: dict[str, Any]) -> None:
        for name, item in value["attributes"].items():
            try:
                attributes[name] = self._build(item)
            except NotSaved as error:  # perhaps it is not needed
                self.dropped.append(str(error).removesuffix(" could not be saved"))

    def _fill(self, model: nn.Module, value: dict[str, Any]) -> None:
        """Parameters, buffers and modes for a model that somebody else made."""
        saved, modules = dict(_tensors_of(value)), dict(_modules_of(value))
        own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        wrong = sorted(set(own) ^ set(saved))
        if wrong:
            raise CannotRebuild(f"the model given has other parameters than the saved one: {wrong[0]}")
        with torch.no_grad():
            for name, item in saved.items():
                kept = self._tensors[item["key"]]
                if own[name].shape != kept.shape:
                    sizes = f"{tuple(own[name].shape)} instead of {tuple(kept.shape)}"
                    raise CannotRebuild(
                        f"the model given has another size than the saved one: {name} {sizes}"
                    )
                own[name].copy_(kept)
        for name, module in model.named_modules():
            if name in modules:
                module.training = modules[name]["training"]
                self._modules[modules[name]["number"]] = module


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


# -- names --


def find(value: dict[str, Any]) -> Any:
    """A class or function, from an installed module or from the program's own file."""
    module: Any = None
    if value["module"] != "__main__":
        with contextlib.suppress(ImportError):
            module = importlib.import_module(value["module"])
    problems: dict[str, str] = {}
    if module is None:
        if not value.get("file") or not Path(value["file"]).is_file():
            raise CannotRebuild(f"{value['name']} is needed from {value.get('file') or value['module']}")
        module, problems = definitions(value["file"])
    found = module
    for part in value["name"].split("."):
        found = getattr(found, part, None)
    if found is None:
        why = problems.get(value["name"].split(".")[0], "it is not defined there any more")
        raise CannotRebuild(f"{value['name']} of {value.get('file') or value['module']}: {why}")
    return found


def definitions(file: str) -> tuple[types.ModuleType, dict[str, str]]:
    """A script's imports, functions, classes and constants, without running the rest of it."""
    if file in _modules:
        return _modules[file]
    module = types.ModuleType(f"_saved_{len(_modules)}")
    module.__file__ = file
    sys.modules[module.__name__] = module  # dataclasses look themselves up
    problems: dict[str, str] = {}
    _modules[file] = (module, problems)
    for statement in ast.parse(Path(file).read_text(encoding="utf-8"), file).body:
        if not _defines(statement):
            continue
        code = compile(ast.Module([statement], []), file, "exec", dont_inherit=True)
        try:
            exec(code, module.__dict__)
        except Exception as error:  # noqa: BLE001 - told when the name is needed
            for name in _names_set(statement):
                problems[name] = f"{type(error).__name__}: {error}"
    return module, problems


def _defines(statement: ast.stmt) -> bool:
    if isinstance(
        statement, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    ):
        return True
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return all(_is_plain(n) for n in ast.walk(statement) if isinstance(n, ast.Call))
    if isinstance(statement, ast.Try):
        return all(_defines(inner) for inner in statement.body)
    return False


def _is_plain(call: ast.Call) -> bool:
    function: ast.expr = call.func
    if isinstance(function, ast.Attribute) and function.attr in _EFFECTS:
        return False
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and function.id in _PLAIN_CALLS


def _names_set(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    return [n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


# -- files --


def _read(folder: Path) -> dict[str, Any]:
    file = folder / "repro.json"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotRebuild(f"{file} can't be read: {error.strerror or error}") from error
    except ValueError as error:
        raise CannotRebuild(f"{file} is damaged: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("format"), int):
        raise CannotRebuild(f"{file} does not describe a step")
    if data["format"] > FORMAT:
        raise CannotRebuild(f"{file} was written by a newer Clew")
    return data


def _load(folder: Path) -> dict[str, Tensor]:
    file = folder / "tensors.safetensors"
    try:
        return load_file(str(file))
    except Exception as error:
        raise CannotRebuild(f"{file} can't be read: {str(error).splitlines()[0]}") from error
