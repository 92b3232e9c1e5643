"""The models that a program trains: root modules, and the names of modules and parameters.

A root is a module with parameters that is called from outside any other module. Nothing is stored on the
user's objects: everything is kept here, by id, behind weak references.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from clew.hooks.entry.user_line import name_in_caller
from clew.records.facts.model_facts import LayerRow, ModelFact, WeightRow
from clew.records.site import Line, Site

_WRAPPERS = {"DistributedDataParallel", "DataParallel", "OptimizedModule", "FullyShardedDataParallel"}
_WRAPPER_ATTRIBUTES = ("_orig_mod", "module", "_fsdp_wrapped_module")


@dataclass(frozen=True)
class ParameterName:
    """Where a parameter is in its root module."""

    root: str | None
    module: str | None
    param: str
    numel: int

    @property
    def full(self) -> str:
        return f"{self.module}.{self.param}" if self.module else self.param

    def site(self) -> Site:
        return Site(module=self.module, param=self.param, root=self.root, phase="train")


@dataclass
class Root:
    """One outermost model."""

    index: int
    name: str
    module: weakref.ref[nn.Module]
    paths: dict[int, str]  # id of a submodule -> its path
    compiled: bool
    mode_dependent: list[tuple[str, str]]
    tracing_is_safe: bool  # see `activation_functions.ActivationMode`
    order: dict[str, None] = field(default_factory=dict)  # paths in the order of their first call
    # id of a layer -> its row among the activations, and its path; None if it has none
    rows: dict[int, tuple[int, str] | None] = field(default_factory=dict)
    quiet: set[int] = field(default_factory=set)  # torch's own layers that call no activation function
    functional: bool = False  # an activation function has been called in it,
    calls_in_torch: bool = False  # and all were called by their names in `torch` (`activation_functions`)
    announced: int = -1  # how many entries of `order` were in the last `model` fact
    training: bool | None = None  # its mode at the last forward
    trains_in_train_mode: bool = False  # a backward has followed a forward in training mode


class ModelBook:
    """All root modules and parameters seen so far, by id."""

    def __init__(self) -> None:
        self.roots: list[Root] = []
        self.made_at: dict[int, tuple[weakref.ref[Any], str | None, int | None]] = {}
        self.loaded: dict[int, weakref.ref[Tensor]] = {}
        self.compile_used = False
        self._by_module: dict[int, tuple[weakref.ref[nn.Module], Root]] = {}
        self._ignored: dict[int, weakref.ref[nn.Module]] = {}
        self._names: dict[int, tuple[weakref.ref[Tensor], ParameterName]] = {}

    def root_of(self, module: nn.Module) -> Root | None:
        """The root module that an outermost call belongs to; registers a new one."""
        key = id(module)
        known = self._by_module.get(key)
        if known is not None and known[0]() is module:
            return known[1]
        ignored = self._ignored.get(key)
        if ignored is not None and ignored() is module:
            return None
        if next(module.parameters(), None) is None:
            self._ignored[key] = weakref.ref(module)  # a loss, a transform, an activation
            return None
        return self.register(module, name_in_caller(module))

    def known(self, module: nn.Module) -> Root | None:
        """The root module that a module is or belongs to, if it has been seen; registers nothing."""
        known = self._by_module.get(id(module))
        return known[1] if known is not None and known[0]() is module else None

    def register(self, module: nn.Module, name: str | None = None) -> Root:
        """Register a module as a root, under the user's name for it."""
        inner = unwrap(module)
        name = self._free_name(name or type(inner).__name__)
        paths = {id(m): strip_wrappers(p) for p, m in inner.named_modules()}
        paths[id(module)] = ""
        root = Root(
            index=len(self.roots),
            name=name,
            module=weakref.ref(module),
            paths=paths,
            compiled=module is not inner and type(module).__name__ == "OptimizedModule",
            mode_dependent=[
                (strip_wrappers(p), type(m).__name__) for p, m in inner.named_modules() if depends_on_mode(m)
            ],
            tracing_is_safe=not any(_has_fast_path(m) for m in module.modules()),
        )
        self.roots.append(root)
        for submodule in module.modules():
            self._by_module[id(submodule)] = (weakref.ref(submodule), root)
        self.name_parameters(root, inner)
        return root

    def name_parameters(self, root: Root, module: nn.Module) -> None:
        """Record the names of a root module's parameters; shared ones keep their first name."""
        for path, parameter in module.named_parameters():
            owner, _, leaf = strip_wrappers(path).rpartition(".")
            known = self._names.get(id(parameter))
            if known is None or known[0]() is not parameter:
                name = ParameterName(root.name, owner, leaf, parameter.numel())
                self._names[id(parameter)] = (weakref.ref(parameter), name)

    def name_of(self, parameter: Tensor) -> ParameterName | None:
        """The name of a parameter, if some root module or optimizer has introduced it."""
        known = self._names.get(id(parameter))
        return known[1] if known is not None and known[0]() is parameter else None

    def introduce(self, parameter: Tensor, fallback: str) -> ParameterName:
        """Name a parameter that belongs to no module: a bare tensor passed to an optimizer."""
        name = self.name_of(parameter)
        if name is None:
            name = ParameterName(None, None, fallback, parameter.numel())
            self._names[id(parameter)] = (weakref.ref(parameter), name)
        return name

    def path_of(self, root: Root, module: nn.Module) -> str | None:
        """A submodule's path; searches again for a module that was added after registration."""
        path = root.paths.get(id(module))
        if path is None:
            top = root.module()
            found = {} if top is None else {id(m): strip_wrappers(p) for p, m in unwrap(top).named_modules()}
            root.paths.update(found)
            path = root.paths.setdefault(id(module), "")
        return path

    def note_made(self, instance: Any, file: str | None, line: int | None) -> None:
        """Remember where in the user's source a module or optimizer was created."""
        self.made_at[id(instance)] = (weakref.ref(instance), file, line)

    def where_made(self, instance: Any) -> Line:
        known = self.made_at.get(id(instance))
        return (known[1], known[2]) if known is not None and known[0]() is instance else (None, None)

    def note_loaded(self, module: nn.Module) -> None:
        """A checkpoint was loaded into this module's parameters."""
        for parameter in module.parameters():
            self.loaded[id(parameter)] = weakref.ref(parameter)

    def was_loaded(self, parameter: Tensor) -> bool:
        known = self.loaded.get(id(parameter))
        return known is not None and known() is parameter

    def model_fact(self, root: Root) -> ModelFact | None:
        """The root module's structure, with modules in forward order as far as it is known."""
        outer = root.module()
        if outer is None:
            return None
        module = unwrap(outer)
        file, line = self.where_made(module)
        root.announced = len(root.order)
        return ModelFact(
            root=root.name,
            kind=type(module).__name__,
            file=file,
            line=line,
            compiled=root.compiled,
            layers=tuple(self._layer_rows(root, module)),
            parameters=tuple(
                _weight_row(strip_wrappers(path), parameter) for path, parameter in module.named_parameters()
            ),
        )

    def _layer_rows(self, root: Root, module: nn.Module) -> Iterator[LayerRow]:
        by_path = {strip_wrappers(p): m for p, m in module.named_modules()}
        ran = [p for p in root.order if p in by_path]
        dependent = {path for path, _ in root.mode_dependent}
        for path in [*ran, *(p for p in by_path if p not in set(ran))]:
            file, line = self.where_made(by_path[path])
            yield LayerRow(path, type(by_path[path]).__name__, file, line, path in dependent)

    def _free_name(self, name: str) -> str:
        taken = {root.name for root in self.roots}
        candidates = [name, *(f"{name}{n}" for n in range(2, len(taken) + 3))]
        return next(c for c in candidates if c not in taken)


def _weight_row(path: str, parameter: Tensor) -> WeightRow:
    owner, _, leaf = path.rpartition(".")
    return WeightRow(
        name=path,
        module=owner,
        param=leaf,
        shape=tuple(parameter.shape),
        dtype=str(parameter.dtype).removeprefix("torch."),
        requires_grad=parameter.requires_grad,
        numel=parameter.numel(),
    )


def unwrap(module: nn.Module) -> nn.Module:
    """The user's own model inside DDP, DataParallel or torch.compile."""
    while type(module).__name__ in _WRAPPERS:
        inner = next((getattr(module, a) for a in _WRAPPER_ATTRIBUTES if a in module._modules), None)
        if not isinstance(inner, nn.Module):
            break
        module = inner
    return module


def strip_wrappers(path: str) -> str:
    """A path as the user knows it: without the prefix that torch.compile adds."""
    parts = [part for part in path.split(".") if part not in ("_orig_mod", "_fsdp_wrapped_module")]
    return ".".join(parts)


def depends_on_mode(module: nn.Module) -> bool:
    """Whether `.train()` and `.eval()` change what this layer itself computes."""
    kind = type(module).__name__
    if "Dropout" in kind:
        return float(getattr(module, "p", 1.0)) > 0
    if "BatchNorm" in kind or "InstanceNorm" in kind:
        return bool(getattr(module, "track_running_stats", True))
    if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
        return float(module.dropout) > 0
    return False


def _has_fast_path(module: nn.Module) -> bool:
    return isinstance(module, (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder))
