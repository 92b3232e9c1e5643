"""Checks that no module in src/clew uses a private name of another module.

    python scripts/private_names.py [FOLDER]

A name that begins with one underscore belongs to the module that defines it. Elsewhere `thing._name`,
`getattr(thing, "_name")`, `patches.wrap(Thing, "_name", …)` and `from clew.x import _name` are not allowed:
give the owner a small public method. Torch and Python have some things under such names that we cannot do
without. Those are listed below, each with its owner; a name that is no longer used must leave the list. No
class of ours may have a member with such a name, since its uses elsewhere would pass.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "clew"
OWN = ("self", "cls")
BY_NAME = ("getattr", "setattr", "hasattr", "delattr")
PATCHES = ("wrap", "put")  # the methods of `hooks.entry.patches.Patches`

FOREIGN = {
    "torch.nn.Module": [  # the contents of a module, without the wrappers that `named_*` adds
        "_apply",
        "_backward_hooks",
        "_buffers",
        "_call_impl",
        "_flat_weights",
        "_flat_weights_names",
        "_modules",
        "_non_persistent_buffers_set",
        "_parameters",
        "_reset_parameters",
    ],
    "torch.nn.modules.module": [  # the global hooks: ours must come first, and be removed again
        "_global_backward_hooks",
        "_global_backward_pre_hooks",
        "_global_forward_hooks",
        "_global_forward_hooks_always_called",
        "_global_forward_hooks_with_kwargs",
        "_global_forward_pre_hooks",
        "_has_any_global_hook",
    ],
    "torch.nn": [  # the common base of layers of all dimensions has no public name
        "_BatchNorm",
        "_ConvNd",
        "_DropoutNd",
        "_InstanceNorm",
    ],
    "torch.Tensor": [  # whether it was changed, what it is a view of, where its memory is
        "_base",
        "_cdata",
        "_is_param",
        "_local_tensor",
        "_new_shared",
        "_nnz",
        "_post_accumulate_grad_hooks",
        "_values",
        "_version",
    ],
    "torch.autograd": [  # nodes of the graph: their order, and what they saved
        "_disable_profiler",
        "_engine_run_backward",
        "_forward_cls",
        "_input_metadata",
        "_profiler_enabled",
        "_saved_dim",
        "_saved_self",
        "_saved_self_sym_sizes",
        "_sequence_nr",
    ],
    "torch operators": [
        "_foreach_norm",
        "_overloadname",
        "_overloadpacket",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_schema",
    ],
    "torch._C": [  # modes, the running node and version counters are available only there
        "_C",
        "_EventType",
        "_RecordFunctionFast",
        "_autograd",
        "_current_autograd_node",
        "_disable_current_modes",
        "_functorch",
        "_get_current_function_mode",
        "_get_sequence_nr",
        "_get_tracing_state",
        "_len_torch_dispatch_stack",
        "_len_torch_function_stack",
        "_profiler",
        "_set_grad_enabled",
        "_top_saved_tensors_default_hooks",
        "_unsafe_set_version_counter",
    ],
    "torch.utils.data": [  # which batch an iterator is at, and which samples are in it
        "_BaseDataLoaderIter",
        "_MapDatasetFetcher",
        "_MultiProcessingDataLoaderIter",
        "_SingleProcessDataLoaderIter",
        "_dataset",
        "_get_iterator",
        "_in_order",
        "_index_sampler",
        "_next_data",
        "_next_index",
        "_num_yielded",
        "_prefetch_factor",
        "_rcvd_idx",
        "_send_idx",
        "_shutdown_workers",
        "_worker_info",
        "_workers",
    ],
    "torch.amp": ["_maybe_opt_step", "_scale"],
    "torch.optim.lr_scheduler": ["_is_initial", "_schedulers", "_step_count"],
    "torch.fx, sympy": ["_expr"],
    "Python": [
        "_exit",
        "_fields",
        "_getframe",
        "_handle",
        "_replace",
        "_run_module_as_main",
        "_shutdown",
    ],
    "IPython": ["_repr_html_"],
}
PROTOCOL = frozenset(FOREIGN["IPython"])  # what classes define for others to call
KNOWN = {name for names in FOREIGN.values() for name in names}


def main() -> int:
    """Print every offence; returns 1 if there is one."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE
    used: set[str] = set()
    wrong = [line for path in sorted(folder.rglob("*.py")) for line in offences(path, used)]
    if folder == SOURCE:
        wrong += [f"{__file__}: {name} is listed, and no longer used" for name in sorted(KNOWN - used)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


def offences(path: Path, used: set[str]) -> Iterator[str]:
    """The private names of others that a file uses, one per line; torch's and Python's go into `used`."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for line, name, module in reached_for(tree):
        if module.split(".")[0] != "clew" and name in KNOWN:
            used.add(name)
        else:
            yield f"{path}:{line}: {name} is private to {module or 'another module'}"
    for kind in classes(tree):
        for name in sorted(members(kind) & KNOWN - PROTOCOL):
            yield f"{path}:{kind.lineno}: {kind.name} has its own {name}, a name that is allowed as torch's"


def reached_for(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Line, name and, for an import, the module, of every private name that is not the file's own."""
    own = set(own_uses(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if is_private(node.attr) and not of_self(node) and id(node) not in own:
                yield node.lineno, node.attr, ""
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if is_private(alias.name):
                    yield node.lineno, alias.name, node.module or "clew"
        elif isinstance(node, ast.Call):
            name = named_by_text(node)
            if is_private(name):
                yield node.lineno, name, ""


def named_by_text(call: ast.Call) -> str:
    """The attribute that a call names by text: `getattr(x, "_name")`, `patches.wrap(x, "_name", …)`."""
    by_name = isinstance(call.func, ast.Name) and call.func.id in BY_NAME
    patched = isinstance(call.func, ast.Attribute) and call.func.attr in PATCHES
    name = call.args[1] if (by_name or patched) and len(call.args) > 1 else None
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""


def own_uses(tree: ast.Module) -> Iterator[int]:
    """The ids of the nodes that use a private member of a class of the same file.

    That is `other._name` inside the class, and anywhere for a variable that is annotated as the class.
    """
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_private(node.attr)]
    annotated = annotated_names(tree)
    for kind in classes(tree):
        own, inside = members(kind), {id(node) for node in ast.walk(kind)}
        for use in uses:
            direct = id(use) in inside and not isinstance(use.value, ast.Attribute)
            if use.attr in own and (direct or kind.name in annotated.get(variable(use.value), ())):
                yield id(use)


def classes(tree: ast.Module) -> list[ast.ClassDef]:
    """The classes of a file, outer ones first."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def members(kind: ast.ClassDef) -> set[str]:
    """The private members of a class: methods, fields, and attributes of `self`."""
    found: set[str] = set()
    for node in kind.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    for inner in ast.walk(kind):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and of_self(inner):
            found.add(inner.attr)
    return {name for name in found if is_private(name)}


def annotated_names(tree: ast.Module) -> dict[str, set[str]]:
    """The names in the annotations of each variable and argument."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        annotation = getattr(node, "annotation", None)
        if annotation is not None:
            name = node.arg if isinstance(node, ast.arg) else variable(getattr(node, "target", None))
            found.setdefault(name.lstrip("_"), set()).update(
                inner.id for inner in ast.walk(annotation) if isinstance(inner, ast.Name)
            )
    return found


def variable(node: ast.AST | None) -> str:
    """The name of a variable or an attribute of `self`; `self._x` is taken for the argument `x`."""
    if isinstance(node, ast.Name):
        return node.id.lstrip("_")
    return node.attr.lstrip("_") if isinstance(node, ast.Attribute) and of_self(node) else ""


def of_self(node: ast.Attribute) -> bool:
    """`self.name` or `cls.name`."""
    return isinstance(node.value, ast.Name) and node.value.id in OWN


def is_private(name: str) -> bool:
    """Whether the name begins with one underscore, not two."""
    return name.startswith("_") and not name.startswith("__") and name != "_"


if __name__ == "__main__":
    sys.exit(main())
