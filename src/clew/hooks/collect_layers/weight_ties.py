"""Weight ties: weights that two layers share, and whether they still do; partly loaded checkpoints."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from clew.hooks.collect_layers.trained_models import ModelBook, Root, strip_wrappers, unwrap
from clew.hooks.entry.sink import Sink
from clew.hooks.entry.user_line import user_line
from clew.measure.readable_tensors import has_values
from clew.records.facts.model_facts import StateLoadedFact, UntiedFact

MOST_KEYS = 40  # keys of a checkpoint that are listed
MOST_COMPARED = 65_536  # elements of two weights that are compared once, before the first forward


@dataclass(frozen=True)
class TiedPlace:
    """A parameter's name in a module."""

    module: weakref.ref[nn.Module]
    name: str

    def now(self) -> Tensor | None:
        """The parameter under this name now."""
        module = self.module()
        return module._parameters.get(self.name) if module is not None else None


@dataclass(frozen=True)
class Tie:
    first: TiedPlace
    second: TiedPlace
    shape: tuple[int, ...]
    file: str | None
    line: int | None


class Ties:
    """Follows parameters that were registered in two modules."""

    def __init__(self, sink: Sink, models: ModelBook) -> None:
        self._sink = sink
        self._models = models
        self._places: dict[int, tuple[weakref.ref[Tensor], list[TiedPlace]]] = {}
        self._ties: list[Tie] = []
        self._searched: set[int] = set()
        self._sent: set[Any] = set()

    def registered(self, module: nn.Module, name: str, parameter: Tensor | None) -> None:
        """`module.name = parameter`: check whether another module already has it."""
        if parameter is None:
            return
        known = self._places.get(id(parameter))
        if known is None or known[0]() is not parameter:
            known = self._places[id(parameter)] = (weakref.ref(parameter), [])
        place = TiedPlace(weakref.ref(module), name)
        for other in known[1]:
            if other.module() not in (None, module) and other.now() is parameter:
                self._ties.append(Tie(other, place, tuple(parameter.shape), *user_line()))
        known[1].append(place)

    def state_loaded(self, result: Any, module: nn.Module, step: int) -> None:
        """`load_state_dict` returned: check whether all keys were used."""
        missing = list(getattr(result, "missing_keys", ()))
        unexpected = list(getattr(result, "unexpected_keys", ()))
        if missing or unexpected:
            file, line = user_line()
            own = len(module.state_dict(keep_vars=True))
            fact = StateLoadedFact(
                kind=type(module).__name__,
                file=file,
                line=line,
                keys=own,
                missing_count=len(missing),
                unexpected_count=len(unexpected),
                missing=tuple(missing[:MOST_KEYS]),
                unexpected=tuple(unexpected[:MOST_KEYS]),
                parameters=len(list(module.parameters())),
            )
            fact.write(self._sink, step)

    def find_copies(self, root: Root, step: int) -> None:
        """Before a root module's first training forward: find an output layer that copies the embedding."""
        top = root.module()
        if top is None or root.index in self._searched:
            return
        self._searched.add(root.index)
        for a, b in copied_embeddings(unwrap(top)):
            self._send(step, root, a, b, "copied", (None, None))

    def report(self, step: int) -> None:
        """Report ties that are broken in the models in use."""
        for root in self._models.roots:
            top = root.module()
            if top is not None and self._ties:
                self._report_root(step, root, unwrap(top))

    def _report_root(self, step: int, root: Root, top: nn.Module) -> None:
        paths = {id(m): strip_wrappers(p) for p, m in top.named_modules()}
        for tie in self._ties:
            first, second = tie.first.module(), tie.second.module()
            in_first, in_second = id(first) in paths, id(second) in paths
            now = tie.first.now(), tie.second.now()
            if (in_first and in_second) and now[0] is not now[1] and None not in now:
                names = _full(paths[id(first)], tie.first.name), _full(paths[id(second)], tie.second.name)
                self._send(step, root, *names, "assigned", (tie.file, tie.line))
            elif in_first != in_second:
                self._replaced(step, root, top, tie, paths, stays=in_first)

    def _replaced(
        self, step: int, root: Root, top: nn.Module, tie: Tie, paths: dict[int, str], *, stays: bool
    ) -> None:
        """One of the two layers has left the model: check whether another of its shape replaced it."""
        place, gone = (tie.first, tie.second) if stays else (tie.second, tie.first)
        owner, value = place.module(), place.now()
        if value is None or tuple(value.shape) != tie.shape:
            return
        gone_kind = type(gone.module()).__name__
        for path, module in top.named_modules():
            weight = module._parameters.get(gone.name)
            if isinstance(weight, Tensor) and weight is not value and tuple(weight.shape) == tie.shape:
                if gone.module() is None and not isinstance(module, (nn.Embedding, nn.Linear)):
                    continue
                if gone.module() is not None and type(module).__name__ != gone_kind:
                    continue
                names = _full(paths[id(owner)], place.name), _full(strip_wrappers(path), gone.name)
                self._send(step, root, *names, "replaced", (tie.file, tie.line))

    def _send(self, step: int, root: Root, a: str, b: str, how: str, where: Any) -> None:
        key = (root.name, a, b, how)
        if key not in self._sent and len(self._sent) < 50:
            self._sent.add(key)
            UntiedFact(root.name, a, b, how, *where).write(self._sink, step)


def _full(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def copied_embeddings(top: nn.Module) -> Iterator[tuple[str, str]]:
    """An embedding and a linear layer that have equal values, but not the same parameter."""
    kinds = [
        (strip_wrappers(p), m) for p, m in top.named_modules() if isinstance(m, (nn.Embedding, nn.Linear))
    ]
    embeddings = [(p, m) for p, m in kinds if isinstance(m, nn.Embedding)]
    for path, embedding in embeddings:
        for other, linear in kinds:
            if isinstance(linear, nn.Linear) and _equal(embedding.weight, linear.weight):
                yield f"{path}.weight", f"{other}.weight"


def _equal(a: Tensor, b: Tensor) -> bool:
    if a is b or not all(t.is_cpu and has_values(t) for t in (a, b)):
        return False
    if a.shape != b.shape or a.data_ptr() == b.data_ptr():
        return False
    rows = max(1, MOST_COMPARED // max(a.shape[-1], 1))
    left, right = a.detach()[:rows], b.detach()[:rows]
    return bool(torch.equal(left, right)) and bool((left != left.flatten()[0]).any())
