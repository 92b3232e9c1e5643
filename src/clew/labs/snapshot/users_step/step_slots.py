"""The inputs of the user's step: the names in it that stand for data, replaced for every batch.

`x`, `batch["ids"]` and `data[i:i + 32]` each become a slot that takes another value.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from clew.labs.snapshot.users_step.loss_recipe import LOSS, Recipe
from clew.labs.snapshot.users_step.program_slice import loaded, stored
from clew.labs.snapshot.users_step.side_effects import CannotRerun
from clew.measure.nested_tensors import tensors_in

MOST_LEAVES = 4096  # of a container that is taken as data
_PLAIN = (bool, int, float, str)


@dataclass(frozen=True)
class StepSlot:
    """One slot of the step."""

    name: str  # as it is written: "x", "batch['ids']"
    identifier: str  # in the step's namespace
    code: CodeType  # that reads it in the program

    def read(self, namespace: dict[str, Any]) -> Any:
        return eval(self.code, namespace)


@dataclass
class SlotReading:
    """A step whose data can be replaced."""

    made: Recipe
    optimised: frozenset[int] = frozenset()  # identities of parameters
    slots: list[StepSlot] = field(default_factory=list)
    code: CodeType = field(init=False)
    _shells: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        hoist = _Hoist(self)
        tree = hoist.visit(copy.deepcopy(self.made.tree))
        for name in sorted((loaded(tree) - stored(tree)) | (loaded(tree) & self.made.earlier)):
            if name in self.made.namespace and self._is_data(name, self.made.namespace[name]):
                self.slots.append(StepSlot(name, name, compile(name, "<clew>", "eval")))
        self.code = compile(ast.fix_missing_locations(tree), self.made.file, "exec")

    def _is_data(self, name: str, value: Any) -> bool:
        if isinstance(value, Tensor):
            if value.grad_fn is not None:
                raise CannotRerun(f"{name} was computed with gradients before the model was called")
            return not self.is_parameter(value)
        if value is None or isinstance(value, (*_PLAIN, np.ndarray)):
            return True
        if isinstance(value, (dict, list, tuple, Mapping)):
            return self._holds_data(value)
        return self._is_shell(name, value)

    def is_parameter(self, tensor: Tensor) -> bool:
        return isinstance(tensor, nn.Parameter) or id(tensor) in self.optimised

    def _holds_data(self, value: Any) -> bool:
        leaves = tree_leaves(dict(value) if isinstance(value, Mapping) else value)
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        ordinary = not any(isinstance(leaf, nn.Module) for leaf in leaves)
        fixed = any(self.is_parameter(t) or t.grad_fn is not None for t in tensors)
        return bool(tensors) and ordinary and not fixed and len(leaves) <= MOST_LEAVES

    def _is_shell(self, name: str, value: Any) -> bool:
        """An object that carries a batch: a dataclass, or a tokenizer's output."""
        is_batch = dataclasses.is_dataclass(value) or "atch" in type(value).__name__
        if isinstance(value, (type, nn.Module)) or not is_batch or not hasattr(value, "__dict__"):
            return False
        if self._holds_data(_content(value)):
            self._shells[name] = value
            return True
        return False

    def read(self, namespace: dict[str, Any]) -> dict[str, Any]:
        """The values that the step reads now, in dictionaries, lists and tensors."""
        values = {slot.name: slot.read(namespace) for slot in self.slots}
        for name in self._shells:
            values[name] = _content(values[name])
        return {name: _opened(value) for name, value in values.items()}

    def run(self, values: Mapping[str, Any]) -> Any:
        """The step with these values."""
        namespace = dict(self.made.namespace)
        for slot in self.slots:
            namespace[slot.identifier] = self._closed(slot.name, values[slot.name])
        exec(self.code, namespace)
        return namespace[LOSS]

    def _closed(self, name: str, value: Any) -> Any:
        before = self.made.namespace.get(name)
        if isinstance(before, np.ndarray) and isinstance(value, Tensor):
            return value.numpy()
        if name in self._shells:
            shell = copy.copy(self._shells[name])
            vars(shell).update(value)
            return shell
        if isinstance(before, Mapping) and not isinstance(before, dict):
            return _refilled(before, value)
        return value


def _content(shell: Any) -> dict[str, Any]:
    return {key: value for key, value in vars(shell).items() if tensors_in(value)}


def _opened(value: Any) -> Any:
    """Arrays as tensors, so that they can be cut and replaced like tensors."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return torch.from_numpy(value.copy())
    if isinstance(value, Mapping) and not isinstance(value, dict):
        return dict(value)
    return value


def _refilled(mapping: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    shell = copy.copy(mapping)
    shell.update(values)  # type: ignore[attr-defined]
    return shell


class _Hoist(ast.NodeTransformer):
    """Moves `self.x` and `data[i:i + 32]` out of the step: each becomes a slot."""

    def __init__(self, reading: SlotReading) -> None:
        self._reading = reading
        self._inside = stored(reading.made.tree)
        self._known: dict[str, str] = {}

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
            taken = self._taken(node)
            if taken is not None:
                return ast.copy_location(ast.Name(taken, ast.Load()), node)
        return self.generic_visit(node)

    def _taken(self, node: ast.Attribute | ast.Subscript) -> str | None:
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if not _is_chain(node) or names & self._inside or not names <= set(self._reading.made.namespace):
            return None
        text = ast.unparse(node)
        if text in self._known:
            return self._known[text]
        code = compile(text, "<clew>", "eval")
        if not self._is_data(code, node):
            return None
        self._known[text] = identifier = f"__clew_{len(self._known)}__"
        self._reading.slots.append(StepSlot(text, identifier, code))
        return identifier

    def _is_data(self, code: CodeType, node: ast.Attribute | ast.Subscript) -> bool:
        namespace = self._reading.made.namespace
        try:
            value = eval(code, namespace)
            owner = eval(compile(ast.unparse(node.value), "<clew>", "eval"), namespace)
        except Exception:  # noqa: BLE001 - this is not plain data
            return False
        if isinstance(node, ast.Attribute) and isinstance(owner, (Tensor, nn.Module)):
            return False  # x.T, and what belongs to a model
        if not isinstance(value, Tensor) or value.grad_fn is not None:
            return False
        return not self._reading.is_parameter(value)


def _is_chain(node: ast.AST) -> bool:
    """Names, attributes, and subscripts whose indices only count."""
    calls = (ast.Call, ast.Await, ast.Lambda, ast.NamedExpr, ast.ListComp, ast.GeneratorExp)
    return not any(isinstance(part, calls) for part in ast.walk(node))
