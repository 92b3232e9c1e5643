"""The line on which a layer was created, found in the source of the class that owns it.

A run records it when the layer is created. A model that is passed to Clew was created earlier.
"""

from __future__ import annotations

import ast
import inspect
import textwrap

from torch import nn

from clew.records.site import Line

Place = Line


def place_of_class(kind: type) -> Place:
    """The file, and the first line of the class."""
    try:
        return inspect.getsourcefile(kind), inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):
        return None, None


def places(model: nn.Module) -> dict[str, Place]:
    """By path of the module: where an attribute of its name is set."""
    found: dict[str, Place] = {"": place_of_class(type(model))}
    by_class: dict[type, dict[str, Place]] = {}
    for path, module in model.named_modules():
        kind = type(module)
        if kind not in by_class:
            by_class[kind] = _assignments(kind)
        for name, _ in module.named_children():
            found[f"{path}.{name}" if path else name] = by_class[kind].get(name, (None, None))
    return found


def place_of_attribute(holder: nn.Module, name: str) -> Place:
    return _assignments(type(holder)).get(name, (None, None))


def _assignments(kind: type) -> dict[str, Place]:
    """Names of attributes, each with the line that first sets it; a class before its base classes."""
    found: dict[str, Place] = {}
    for owner in kind.__mro__:
        if not owner.__module__.startswith("torch.") and owner is not object:
            for name, place in _set_in(owner):
                found.setdefault(name, place)
    return found


def _set_in(kind: type) -> list[tuple[str, Place]]:
    try:
        file = inspect.getsourcefile(kind)
        lines, start = inspect.getsourcelines(kind)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return []
    nodes = [n for n in ast.walk(tree) if isinstance(n, (ast.Assign, ast.AnnAssign))]
    return [
        (part.attr, (file, start + node.lineno - 1))
        for node in sorted(nodes, key=lambda n: n.lineno)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for part in ast.walk(target)
        if isinstance(part, ast.Attribute)
    ]


def named_elsewhere(holder: type, name: str) -> bool:
    """Whether the file of a class reads an attribute of this name; True if that is undecided.

    Another class's `self.name` does not count.
    """
    try:
        tree = ast.parse(inspect.getsource(inspect.getmodule(holder) or holder))
    except (OSError, TypeError, SyntaxError):
        return True
    family = {owner.__name__ for owner in holder.__mro__}
    return any(_reads(part, name, _owns(part, family)) for part in tree.body)


def _owns(part: ast.stmt, family: set[str]) -> bool:
    """Whether `self` there may be the owner; a subclass of it counts too."""
    if not isinstance(part, ast.ClassDef):
        return True
    bases = {node.id for base in part.bases for node in ast.walk(base) if isinstance(node, ast.Name)}
    return part.name in family or bool(bases & (family - {"Module", "object"}))


def _reads(part: ast.stmt, name: str, own: bool) -> bool:
    themselves = {
        f.args.args[0].arg for f in ast.walk(part) if isinstance(f, ast.FunctionDef) and f.args.args
    }
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.ctx, ast.Load)
        and (own or not (isinstance(node.value, ast.Name) and node.value.id in themselves))
        for node in ast.walk(part)
    )
