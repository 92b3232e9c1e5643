"""Modules that the user wrote, each with the arguments it got in a step."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from clew.hooks.entry.user_line import USER, kind_of
from clew.labs.experiments.tools.autograd_functions import source_of
from clew.labs.snapshot.step_batch import Batch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.model_calls import ModelCall, model_calls
from clew.measure.nested_tensors import map_tensors

MOST = 24  # modules that are tried; the layers of a deep net are alike


@dataclass(frozen=True)
class OwnModule:
    """One of them, as it was first called."""

    root: str
    path: str
    call: ModelCall

    @property
    def module(self) -> nn.Module:
        return self.call.module

    @property
    def kind(self) -> str:
        return type(self.module).__name__

    def place(self) -> dict[str, Any]:
        """The line of its forward."""
        file, line = source_of(type(self.module).forward)
        return {"root": self.root, "module": self.path, "op": None, "file": file, "line": line}


def own_modules(subject: Subject, snapshot: StepSnapshot, batch: Batch) -> list[OwnModule]:
    """One of each class, the innermost first: what is broken inside is not the fault of what is around it."""
    wanted = {
        id(m): (root, path)
        for root, top in subject.models.items()
        for path, m in top.named_modules()
        if _is_users(m)
    }
    found: dict[int, OwnModule] = {}
    handles = [
        m.register_forward_hook(_noting(found, wanted), with_kwargs=True)
        for top in subject.models.values()
        for m in top.modules()
        if id(m) in wanted
    ]
    try:
        model_calls(subject, snapshot, batch)
    finally:
        for handle in handles:
            handle.remove()
    by_kind: dict[type[nn.Module], OwnModule] = {}
    for own in found.values():  # in the order in which their forwards ended
        by_kind.setdefault(type(own.module), own)
    return list(by_kind.values())[:MOST]


def _is_users(module: nn.Module) -> bool:
    try:
        file = inspect.getfile(type(module).forward)
    except (TypeError, OSError):
        return False
    return kind_of(file) == USER


def _noting(found: dict[int, OwnModule], wanted: dict[int, tuple[str, str]]) -> Callable[..., None]:
    def noted(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if id(module) not in found:
            root, path = wanted[id(module)]
            own = map_tensors((args, kwargs), lambda t: t.detach())
            found[id(module)] = OwnModule(root, path, ModelCall(root, module, own[0], own[1], output))

    return noted
