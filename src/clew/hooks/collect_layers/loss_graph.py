"""Which parameters the loss depends on, and which layers ran on the way to it.

The autograd graph is walked on a few sampled steps, before `backward()` frees it. Only the ids of the
parameters at its leaves are kept.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from clew.hooks.collect_layers.trained_models import ModelBook, Root, strip_wrappers, unwrap
from clew.hooks.entry.sink import Sink
from clew.hooks.entry.user_line import called_by_us, user_line
from clew.measure.readable_tensors import shape_of
from clew.records.facts.loss_facts import LossCutFact
from clew.records.facts.model_facts import CutRow, GraphFact, NormRow, UnregisteredRow
from clew.records.facts.step_facts import BackwardFact
from clew.records.site import Line

FIRST_WALKS = 8  # graphs walked in a row
LATER = 16  # after those, one graph per this many sampled backwards
MOST_NODES = 20_000  # per graph: about a tenth of a second
MOST_NAMES = 200  # per fact
DATA_GETTER = Tensor.data.__get__  # type: ignore[attr-defined]  # what `x.data` calls
CUTTING = {"detach", "detach_", "numpy", "item", "tolist", "__array__", "tensor", "as_tensor"}


@dataclass
class SeenParameter:
    """What is known of one root module's forwards and their graphs."""

    ran: dict[str, bool] = field(default_factory=dict)  # path -> ran with gradients enabled
    norms: dict[str, list[Any]] = field(default_factory=dict)  # path -> class, training, most samples
    strangers: dict[int, Stranger] = field(default_factory=dict)
    cuts: dict[tuple[str, str | None, int | None], None] = field(default_factory=dict)
    members: set[int] = field(default_factory=set)
    walks: int = 0
    fact: Any = None


@dataclass
class Stranger:
    """A module or bare parameter that a model uses without being registered in it."""

    kind: str
    within: str | None
    file: str | None
    line: int | None
    parameters: list[tuple[str, weakref.ref[Tensor]]]


class GraphBook:
    """Reads the forwards and graphs of a few sampled steps."""

    def __init__(self, sink: Sink, models: ModelBook) -> None:
        self._sink = sink
        self._models = models
        self._seen: dict[int, SeenParameter] = {}
        self._reached: dict[int, weakref.ref[Tensor]] = {}
        self._bare: dict[int, weakref.ref[Tensor]] = {}
        self._backwards = 0
        self._losses_cut: set[Any] = set()
        self._ops: set[Any] = set()
        self.is_wanted = True
        self.wants_input_gradients: bool | None = None  # for the last backward, if it was read

    # -- forward --

    def entered(self, root: Root, module: nn.Module, parent: nn.Module | None, args: tuple[Any, ...]) -> None:
        """A module inside a root module is about to run, on a sampled step."""
        seen = self._seen.setdefault(root.index, SeenParameter())
        if not self._is_member(seen, root, module):
            if parent is None or id(parent) not in seen.strangers:
                self._note_stranger(seen, root, module, parent)
            return
        path = root.paths.get(id(module), "")
        seen.ran[path] = seen.ran.get(path, False) or torch.is_grad_enabled()
        if isinstance(module, _BatchNorm) and args and isinstance(args[0], Tensor) and args[0].dim():
            before = seen.norms.get(path, [None, False, 0])
            samples = max(before[2], int(shape_of(args[0])[0]))
            seen.norms[path] = [type(module).__name__, module.training, samples]

    def _is_member(self, seen: SeenParameter, root: Root, module: nn.Module) -> bool:
        if id(module) not in seen.members:
            top = root.module()
            seen.members = set() if top is None else {id(m) for m in top.modules()}
        return id(module) in seen.members

    def _note_stranger(
        self, seen: SeenParameter, root: Root, module: nn.Module, parent: nn.Module | None
    ) -> None:
        if id(module) in seen.strangers or not torch.is_grad_enabled():
            return
        held: list[tuple[str, weakref.ref[Tensor]]] = [
            (name, weakref.ref(p)) for name, p in module.named_parameters() if p.requires_grad
        ]
        if held:
            file, line = self._models.where_made(module)
            within = root.paths.get(id(parent), "") if parent is not None else ""
            seen.strangers[id(module)] = Stranger(type(module).__name__, within, file, line, held)

    def cut(self, root: Root, name: str, args: tuple[Any, ...]) -> None:
        """A tensor with a history was detached from the graph, inside a forward."""
        if args and isinstance(args[0], Tensor) and args[0].requires_grad and torch.is_grad_enabled():
            seen = self._seen.setdefault(root.index, SeenParameter())
            if len(seen.cuts) < 20 and not called_by_us("__torch_function__"):
                file, line = user_line()
                seen.cuts["data" if name == "__get__" else name, file, line] = None

    # -- backward --

    def backward(self, loss: Tensor, roots: list[Root], where: Line, step: int) -> None:
        """`backward()` is about to run on this loss, after forwards of these root modules."""
        wanted, self._backwards = self.is_wanted, self._backwards + 1
        self.is_wanted = self._backwards < FIRST_WALKS or self._backwards % LATER == 0
        self.wants_input_gradients = None
        if loss.grad_fn is None:
            self._loss_without_graph(loss, roots, where, step)
        elif wanted:
            self._note_last_op(loss.grad_fn.name(), where, step)
        leaves = leaves_of(loss) if wanted else None
        if leaves is None:
            return
        self.wants_input_gradients = any(not isinstance(leaf, nn.Parameter) for leaf in leaves)
        for root in roots:
            self._seen.setdefault(root.index, SeenParameter()).walks += 1
        for leaf in leaves:
            self._reached[id(leaf)] = weakref.ref(leaf)
            if isinstance(leaf, nn.Parameter) and self._belongs_nowhere(leaf):
                self._bare[id(leaf)] = weakref.ref(leaf)

    def _note_last_op(self, op: str, where: Line, step: int) -> None:
        """The last operation that computed the loss: a division shows here."""
        file, line = where
        if (op, file, line) not in self._ops and len(self._ops) < 50:
            self._ops.add((op, file, line))
            BackwardFact(op, file, line).write(self._sink, step)

    def _belongs_nowhere(self, parameter: Tensor) -> bool:
        name = self._models.name_of(parameter)
        return name is None or name.root is None

    def _loss_without_graph(self, loss: Tensor, roots: list[Root], where: Line, step: int) -> None:
        file, line = where
        top = roots[-1].module() if roots else None
        fact = LossCutFact(
            requires_grad=loss.requires_grad,
            grad_enabled=torch.is_grad_enabled(),
            forwards=len(roots),
            trainable=top is None or any(p.requires_grad for p in top.parameters()),
            file=file,
            line=line,
        )
        if fact not in self._losses_cut and len(self._losses_cut) < 20:
            self._losses_cut.add(fact)
            fact.write(self._sink, step)

    # -- facts --

    def report(self, step: int, owners: dict[int, int]) -> None:
        """Write what has changed; `owners` maps parameters to the optimizers that have them."""
        for root in self._models.roots:
            seen = self._seen.get(root.index)
            top = root.module()
            if seen is None or top is None or not seen.walks:
                continue
            fact = self._graph_fact(root, seen, unwrap(top), owners)
            if fact != seen.fact:
                seen.fact = fact
                fact.write(self._sink, step)

    def _graph_fact(
        self, root: Root, seen: SeenParameter, module: nn.Module, owners: dict[int, int]
    ) -> GraphFact:
        modules = {strip_wrappers(p): m for p, m in module.named_modules()}
        cut: list[str] = []
        idle: list[str] = []
        asleep: list[str] = []
        for path, parameter in module.named_parameters():
            if not parameter.requires_grad or _is(self._reached, parameter):
                continue
            name = strip_wrappers(path)
            ran = _ran(seen, modules, name.rpartition(".")[0])
            (idle if ran is None else cut if ran else asleep).append(name)
        norms = (NormRow(path, *what) for path, what in seen.norms.items())
        return GraphFact(
            root=root.name,
            reached=sum(_is(self._reached, p) for p in module.parameters()),
            cut=tuple(cut[:MOST_NAMES]),
            cut_by_no_grad=tuple(asleep[:MOST_NAMES]),
            idle=tuple(idle[:MOST_NAMES]),
            cut_rows=tuple(CutRow(op, file, line) for op, file, line in seen.cuts),
            unregistered=(
                *_strangers(seen, owners),
                *(self._bare_parameters(owners) if root.index == 0 else ()),
            ),
            norms=tuple(norms)[:MOST_NAMES],
        )

    def _bare_parameters(self, owners: dict[int, int]) -> list[UnregisteredRow]:
        """Parameters that belong to no module, and that the loss depends on."""
        known = {id(r()) for s in self._seen.values() for m in s.strangers.values() for _, r in m.parameters}
        alive = [p for reference in self._bare.values() if (p := reference()) is not None]
        alive = [p for p in alive if id(p) not in known and self._belongs_nowhere(p)]
        if not alive:
            return []
        shapes = [f"nn.Parameter of shape {tuple(p.shape)}" for p in alive]
        return [
            UnregisteredRow(
                kind="Parameter",
                parameters=tuple(shapes[:20]),
                count=len(alive),
                held=sum(id(p) in owners for p in alive),
                with_grad=sum(p.grad is not None for p in alive),
            )
        ]


def leaves_of(loss: Tensor) -> list[Tensor] | None:
    """The leaf tensors that a loss depends on; None if the graph is too large."""
    if loss.grad_fn is None:
        return []
    waiting, visited, leaves = [loss.grad_fn], {loss.grad_fn}, []
    while waiting:
        node = waiting.pop()
        variable = getattr(node, "variable", None)
        if isinstance(variable, Tensor):
            leaves.append(variable)
        for following, _ in node.next_functions:
            if following is not None and following not in visited:
                visited.add(following)
                waiting.append(following)
        if len(visited) > MOST_NODES:
            return None
    return leaves


def _is(known: dict[int, weakref.ref[Tensor]], tensor: Tensor) -> bool:
    reference = known.get(id(tensor))
    return reference is not None and reference() is tensor


def _ran(seen: SeenParameter, modules: dict[str, nn.Module], path: str) -> bool | None:
    """Whether a layer ran with gradients (True), only without (False), or never as far as is known (None)."""
    owner = modules.get(path)
    if owner is None or not type(owner).__module__.startswith("torch."):
        return None  # a module of the user's may run without using all of its own parameters
    if path in seen.ran:
        return seen.ran[path]
    parent = path.rpartition(".")[0]
    return seen.ran.get(parent) if isinstance(modules.get(parent), nn.MultiheadAttention) else None


def _strangers(seen: SeenParameter, owners: dict[int, int]) -> list[UnregisteredRow]:
    rows = []
    for stranger in seen.strangers.values():
        alive = [(name, p) for name, reference in stranger.parameters if (p := reference()) is not None]
        rows.append(
            UnregisteredRow(
                kind=stranger.kind,
                within=stranger.within,
                file=stranger.file,
                line=stranger.line,
                parameters=tuple([name for name, _ in alive][:20]),
                count=len(alive),
                held=sum(id(p) in owners for _, p in alive),
                with_grad=sum(p.grad is not None for _, p in alive),
            )
        )
    return rows[:50]
