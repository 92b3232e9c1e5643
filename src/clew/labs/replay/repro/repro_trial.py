"""A step that was saved is run from what was saved, before anybody is told that it can be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from clew.hooks.steps.trained_models import unwrap
from clew.labs.replay.repro.importable_names import live
from clew.labs.replay.repro.rebuilt_step import SavedStep
from clew.labs.replay.repro.saved_step import statements_of
from clew.labs.snapshot.held_step import HeldStep
from clew.labs.snapshot.inplace_writes import WriteJournal
from clew.labs.snapshot.op_recorder import OpCall, OpRecorder
from clew.labs.snapshot.snapshot import snapshot

_FINITE = "replayed from the saved state, the values are finite"


def tried(
    folder: Path, data: dict[str, Any], tensors: dict[str, Tensor], held: HeldStep, before: str
) -> dict[str, Any]:
    """`seen`: was the failure there again? None: it could not be tried. `reason`: why not.

    Classes and functions are those of the running program, none are executed again: definitions may
    register themselves somewhere. What they change of the program is put back. It costs one forward and
    backward of the step. `tensors` are used up.
    """
    why_not = _why_not(held)
    if why_not:
        return {"seen": None, "reason": why_not}
    shown: dict[str, Any] = {"seen": True, "reason": ""}  # nothing is to be noted in the folder
    plain = {**json.loads(json.dumps(data)), "shown": shown}
    try:
        with snapshot(_owners(held)) as journal, _Writes(journal, tensors.values()):
            step = SavedStep(folder, data=plain, tensors=tensors, finder=live)
            bad = step.run(statements_of(plain["recipe"])).bad
    except Exception as error:  # noqa: BLE001 - the user's code may fail in any way
        told = (str(error).splitlines() or [type(error).__name__])[0]
        return {"seen": None, "reason": told[:200]}
    if bad:
        return shown
    if data["recipe"] is None:
        return {"seen": False, "reason": f"the code of the loss is not in it: {before}"}
    return {"seen": False, "reason": before or _FINITE}


class _Writes(OpRecorder):
    """Notes writes to what is neither saved nor made here: a function may use a model of the program's."""

    def __init__(self, journal: WriteJournal, own: Iterable[Tensor]) -> None:
        super().__init__(self._outside)
        self._journal = journal
        self._own = {_storage(tensor) for tensor in own}

    def _outside(self, tensor: Tensor) -> None:
        if _storage(tensor) not in self._own:
            self._journal.note(tensor)

    def after_op(self, op: OpCall) -> None:
        given = {_storage(tensor) for tensor in op.inputs}
        self._own.update({_storage(tensor) for tensor in op.outputs} - given)


def _storage(tensor: Tensor) -> int:
    if tensor.layout != torch.strided:
        return -id(tensor)
    return int(tensor.untyped_storage()._cdata)


def _owners(held: HeldStep) -> Iterator[nn.Module]:
    """The modules of the program that code of its own may reach."""
    frame = held.frame
    values = [*held.roots.values(), *(call.module for call in held.calls)]
    if frame is not None:
        values += [
            v for v in (*frame.f_locals.values(), *frame.f_globals.values()) if isinstance(v, nn.Module)
        ]
    seen: set[int] = set()
    for module in (part for top in values for part in unwrap(top).modules()):
        if id(module) not in seen:
            seen.add(id(module))
            yield module


def _why_not(held: HeldStep) -> str | None:
    from clew.hooks.steps.pause import distributed

    if distributed():
        return "it was one of several processes, and the others would wait"
    if any(p.device.type != "cpu" for p, _ in held.parameters):
        return "it ran on an accelerator"
    return None
