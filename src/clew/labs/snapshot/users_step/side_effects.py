"""Can a piece of the user's code be run a second time? Only if it does nothing but compute.

The source may contain only known operations: arithmetic, torch, numpy and math functions, modules,
methods of tensors, and the user's own functions for which the same holds. Anything else
(printing, appending to one of the program's lists) is rejected: `CannotRerun`. Attributes of plain objects
may be set only if the caller restores them (`puts_back`): a trainer stores its last loss, say.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import textwrap
import types
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clew.labs.snapshot.module_state import CONTAINERS
from clew.labs.snapshot.users_step.program_slice import attributes_set, stored

UNKNOWN = object()
DEPTH = 6  # of nested calls that are checked
_NAMES = """abs all any bool dict divmod enumerate float frozenset int isinstance len list map max min pow
range reversed round set slice sorted str sum tuple zip"""
_BUILTINS = {getattr(builtins, name) for name in _NAMES.split()}
_PACKAGES = {"torch", "math", "numpy", "einops", "torchvision", "scipy", "itertools", "operator", "cmath"}
_DENIED = {"save", "load", "manual_seed", "seed", "distributed", "compile", "input", "savetxt", "fromfile"}
_CONTAINER_READS = {"items", "keys", "values", "get", "copy", "index", "count", "split", "format", "lower"}
_OTHER_METHODS = {"log_prob", "rsample", "sample", "entropy", "cdf", "icdf"}  # of distributions
_TENSOR_METHODS = {
    name
    for name in dir(Tensor)
    if not name.startswith("_")
    and not name.startswith("register")
    and name not in {"backward", "retain_grad", "share_memory_", "set_", "resize_", "tofile"}
}
_MODULE_READS = {"parameters", "named_parameters", "buffers", "modules", "named_modules", "children"}
_WRAPPERS = {"DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"}
_UNCHANGING = (int, float, complex, str, bool, tuple, type(None))
_EXPRESSIONS = (
    ast.Constant,
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Slice,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.Starred,
    ast.ListComp,
    ast.GeneratorExp,
    ast.DictComp,
    ast.SetComp,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.comprehension,
    ast.keyword,
    ast.expr_context,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)


class CannotRerun(Exception):  # noqa: N818 - reads as what it is
    """This code can't be run again; the text says why."""


class SideEffectChecker:
    """Checks statements in the scope they would run in."""

    def __init__(self, scope: dict[str, Any], depth: int = 0, *, puts_back: bool = False) -> None:
        self._scope = scope
        self._depth = depth
        self._puts_back = puts_back
        self.owners: dict[int, Any] = {}  # objects whose attributes this code sets
        self._set: set[str] = set()  # names of attributes that it sets: their values are not known in advance
        self.fresh: set[str] = set()  # names that this code sets
        self._made: set[str] = set()  # those of them that are new containers and tensors
        self.calls_module = False

    def statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.fresh |= stored(statement)
            self._set |= attributes_set(statement)
        self._made = made_here(body)
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                self._target(target, changes=isinstance(node, ast.AugAssign))
            if node.value is not None:
                self.expression(node.value)
        elif isinstance(node, ast.Expr):
            self._expression_statement(node.value)
        elif isinstance(node, (ast.Return, ast.Assert)):
            value = node.value if isinstance(node, ast.Return) else node.test
            if value is not None:
                self.expression(value)
        elif isinstance(node, (ast.If, ast.While)):
            self.expression(node.test)
            self._bodies(node.body, node.orelse)
        elif isinstance(node, ast.For):
            self._target(node.target)
            self.expression(node.iter)
            self._bodies(node.body, node.orelse)
        elif isinstance(node, ast.With):
            for item in node.items:
                self.expression(item.context_expr)
            self._bodies(node.body)
        elif not isinstance(node, (ast.Pass, ast.Break, ast.Continue, ast.Raise)):
            raise CannotRerun(f"a {type(node).__name__} statement on line {node.lineno}")

    def _bodies(self, *bodies: list[ast.stmt]) -> None:
        for body in bodies:
            for statement in body:
                self._statement(statement)

    def _target(self, node: ast.expr, changes: bool = False) -> None:
        if isinstance(node, (ast.Tuple, ast.List)):
            for item in node.elts:
                self._target(item)
        elif isinstance(node, ast.Starred):
            self._target(node.value)
        elif isinstance(node, ast.Subscript):
            if not self._is_made(node.value) and not self._keeps_contents(node.value):
                raise CannotRerun(f"line {node.lineno} modifies an existing object")
            self.expression(node.slice)
        elif isinstance(node, ast.Attribute):
            if not self._keeps_attribute(node, changes):
                raise CannotRerun(f"line {node.lineno} sets an attribute")
        elif not isinstance(node, ast.Name):
            raise CannotRerun(f"line {node.lineno} sets an attribute")

    def _keeps_attribute(self, node: ast.Attribute, changes: bool) -> bool:
        """Whether a set attribute can be restored: one of a plain object that is known by name."""
        owner = self.resolve(node.value) if isinstance(node.value, ast.Name) else UNKNOWN
        if not self._puts_back or not can_be_put_back(owner, node.attr):
            return False
        if changes and not isinstance(vars(owner).get(node.attr), (*_UNCHANGING, Tensor)):
            return False  # `+=` changes it in place; only in-place writes to tensors are undone
        self.owners[id(owner)] = owner
        return True

    def _keeps_contents(self, node: ast.expr) -> bool:
        """The same for a list or dictionary in such an object: `self.losses.append(loss)`."""
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            return False
        owner = self.resolve(node.value)
        known = self._puts_back and node.attr not in self._set and can_be_put_back(owner, node.attr)
        if not known or type(vars(owner).get(node.attr)) not in CONTAINERS:
            return False
        self.owners[id(owner)] = owner
        return True

    def _expression_statement(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):
            return
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "extend", "update")
            and (self._is_made(node.func.value) or self._keeps_contents(node.func.value))
        ):
            self._arguments(node)
            return
        raise CannotRerun(f"line {node.lineno} has a side effect")

    def _is_made(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self._made

    def expression(self, node: ast.AST) -> None:
        """Raise unless evaluating this does nothing but compute."""
        if isinstance(node, ast.Call):
            self._call(node)
            return
        if not isinstance(node, _EXPRESSIONS):
            raise CannotRerun(f"a {type(node).__name__} on line {getattr(node, 'lineno', '?')}")
        if isinstance(node, (ast.Name, ast.Attribute)) and _is_consumed(self.resolve(node)):
            raise CannotRerun(f"line {node.lineno} reads from an iterator or loader")
        for child in ast.iter_child_nodes(node):
            self.expression(child)

    def _arguments(self, node: ast.Call) -> None:
        for child in [*node.args, *(k.value for k in node.keywords)]:
            self.expression(child)

    def _call(self, node: ast.Call) -> None:
        self._arguments(node)
        target = self.resolve(node.func)
        if target is UNKNOWN:
            known = _TENSOR_METHODS | _CONTAINER_READS | _OTHER_METHODS
            if isinstance(node.func, ast.Attribute) and node.func.attr in known:
                self.expression(node.func.value)
                return
            raise CannotRerun(f"what line {node.lineno} calls is unknown before it runs")
        self._object(target, node)

    def _object(self, target: Any, node: ast.Call) -> None:
        if isinstance(target, nn.Module):
            if type(target).__name__ in _WRAPPERS:
                raise CannotRerun("a wrapped model communicates with other processes")
            self.calls_module |= next(target.parameters(), None) is not None
            return
        if isinstance(target, functools.partial):
            self._object(target.func, node)
            return
        owner = getattr(target, "__self__", None)
        if isinstance(owner, nn.Module) and getattr(target, "__name__", "") in _MODULE_READS:
            return
        if isinstance(owner, Tensor):
            if getattr(target, "__name__", "") not in _TENSOR_METHODS:
                raise CannotRerun(f"line {node.lineno} changes a tensor's properties")
            return
        if _is_safe(target, owner):
            return
        if isinstance(target, (types.FunctionType, types.MethodType)):
            self._function(target, node)
            return
        raise CannotRerun(f"line {node.lineno} calls {getattr(target, '__name__', target)!r}")

    def _function(self, target: Any, node: ast.Call) -> None:
        """One of the user's own functions: all of it must be pure."""
        if self._depth >= DEPTH:
            raise CannotRerun("too deep")
        function = inspect.unwrap(target.__func__ if isinstance(target, types.MethodType) else target)
        definition = definition_of(function)
        scope = self.scope_of(function, target, definition, node)
        inner = SideEffectChecker(scope, self._depth + 1, puts_back=self._puts_back)
        inner.owners, inner._set = self.owners, self._set
        inner.statements(definition.body)
        self.calls_module |= inner.calls_module

    def scope_of(
        self, function: Any, target: Any, definition: ast.FunctionDef, node: ast.Call
    ) -> dict[str, Any]:
        """The values of a function's names in this call; UNKNOWN where only running it can tell."""
        scope = dict(function.__globals__)
        if function.__closure__:
            for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
                scope[name] = cell.cell_contents
        names = [a.arg for a in definition.args.posonlyargs + definition.args.args]
        given: list[Any] = [target.__self__] if isinstance(target, types.MethodType) else []
        given += [self.resolve(a) for a in node.args]
        scope.update(dict.fromkeys([*names, *(a.arg for a in definition.args.kwonlyargs)], UNKNOWN))
        scope.update(zip(names, given, strict=False))
        scope.update({k.arg: self.resolve(k.value) for k in node.keywords if k.arg})
        return scope

    def resolve(self, node: ast.AST) -> Any:
        """The object that an expression refers to, if known without running anything."""
        if isinstance(node, ast.Name):
            if node.id in self.fresh:
                return UNKNOWN
            return self._scope.get(node.id, getattr(builtins, node.id, UNKNOWN))
        if isinstance(node, ast.Attribute):
            owner = UNKNOWN if node.attr in self._set else self.resolve(node.value)
            if owner is UNKNOWN or isinstance(inspect.getattr_static(owner, node.attr, None), property):
                return UNKNOWN
            return getattr(owner, node.attr, UNKNOWN)
        if isinstance(node, ast.Subscript):
            return self._item(self.resolve(node.value), node.slice)
        return UNKNOWN

    @staticmethod
    def _item(owner: Any, index: ast.expr) -> Any:
        """`self.models["a"]`, `model[:3]`: containers of modules with a literal index."""
        if not isinstance(owner, (dict, list, tuple, nn.Sequential, nn.ModuleList, nn.ModuleDict)):
            return UNKNOWN
        try:
            parts = [index.lower, index.upper, index.step] if isinstance(index, ast.Slice) else [index]
            values = [None if part is None else ast.literal_eval(part) for part in parts]
            key: Any = slice(*values) if isinstance(index, ast.Slice) else values[0]
            return owner[key]
        except (ValueError, KeyError, IndexError, TypeError):
            return UNKNOWN


def can_be_put_back(owner: Any, attribute: str) -> bool:
    """Whether setting an attribute of this object only changes an entry in its dictionary."""
    kind = type(owner)
    if (
        owner is UNKNOWN
        or isinstance(owner, (type, types.ModuleType, Tensor))
        or not hasattr(owner, "__dict__")
    ):
        return False
    setting: Any = kind.__setattr__
    plain = setting in (object.__setattr__, nn.Module.__setattr__)
    return plain and not hasattr(inspect.getattr_static(kind, attribute, None), "__set__")


def _is_consumed(value: Any) -> bool:
    """Whether iterating over it uses it up."""
    return hasattr(type(value), "__next__") or isinstance(value, torch.utils.data.DataLoader)


def _is_safe(target: Any, owner: Any) -> bool:
    name = str(getattr(target, "__name__", ""))
    if name in _DENIED or name.startswith("set_"):
        return False
    try:
        if target in _BUILTINS:
            return True
    except TypeError:
        return False
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function) and name == "apply":
        return True
    if isinstance(owner, (dict, list, tuple, str)):
        return name in _CONTAINER_READS
    if isinstance(target, np.ufunc):
        return True
    if owner is not None and not isinstance(owner, (types.ModuleType, type)):
        return name in _OTHER_METHODS or type(owner).__module__.startswith("torch._ops")
    module = str(getattr(target, "__module__", None) or "torch")  # torch's builtins have none
    if "distributed" in module or (name.endswith("_") and not module.startswith("torch")):
        return False
    return module.partition(".")[0] in _PACKAGES or module.startswith(("torch.", "_VariableFunctions"))


def definition_of(function: Any) -> ast.FunctionDef:
    """The source of a function."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError) as error:
        raise CannotRerun(f"the source of {function!r} can't be read") from error
    definition = tree.body[0] if tree.body else None
    if not isinstance(definition, ast.FunctionDef):
        raise CannotRerun("not a plain function")
    ast.increment_lineno(definition, function.__code__.co_firstlineno - 1)  # as in its file
    return definition


def made_here(body: list[ast.stmt]) -> set[str]:
    """Names that are only ever set to something new: `parts = []`, `grid = torch.zeros(3)`."""
    new: dict[str, bool] = {}
    for node in (part for statement in body for part in ast.walk(statement)):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    new[target.id] = new.get(target.id, True) and _is_new(node.value)
    return {name for name, always in new.items() if always}


def _is_new(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):  # one of the user's functions may return an existing object
        called = ast.unparse(value.func)
        method = isinstance(value.func, ast.Attribute) and value.func.attr in _TENSOR_METHODS
        return method or called in ("list", "dict", "set") or called.startswith(("torch.", "F.", "np."))
    return isinstance(
        value, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.BinOp)
    )
