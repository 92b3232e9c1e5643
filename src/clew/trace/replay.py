"""A step run again with every operation checked, before its parameters change.

Best is to run the statements of the user's own that made the loss (see `recipe`): forward, loss and
backward are then one piece. Where that is not possible, the model alone is run again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from clew.attach.holding import DERIVED
from clew.attach.models import unwrap
from clew.trace.calls import SameCalls
from clew.trace.culprits import culprit_of
from clew.trace.held import Culprit, HeldStep
from clew.trace.lines import BOUNDARIES
from clew.trace.microscope import BATCH, CONSTANT, Microscope
from clew.trace.purity import ImpureError
from clew.trace.recipe import Recipe, recipe
from clew.trace.sight import can_be_bad, has_nan, is_bad, tensors_of
from clew.trace.undisturbed import undisturbed

_EAGER = "the compiled model was run again as it is written, without the compiler"
_MODEL_ALONE = "the model alone was run again: the code of the loss could not be ({reason})"


@dataclass(frozen=True)
class Answer:
    """What a replay found; without a culprit, why not."""

    culprit: Culprit | None
    reason: str = ""


def replay(held: HeldStep) -> Culprit | None:
    """The first operation that made a non-finite value, or None if running it again shows none."""
    return answer(held).culprit


def answer(held: HeldStep) -> Answer:
    """Like `replay`, and why there is no culprit."""
    outside = _bad_from_outside(held)
    if outside is not None:
        return outside
    refused = "the frame that called backward() is gone"
    if held.frame is not None and held.backward_at[1] is not None:
        try:
            made = recipe(held.frame, held.backward_at[1])
        except ImpureError as error:
            refused = str(error)
        else:
            return _run(held, made, "")
    return _run(held, None, refused) if held.calls else Answer(None, refused)


def _bad_from_outside(held: HeldStep) -> Answer | None:
    if any(type(p) not in (Tensor, nn.Parameter) for c in held.calls for p in c.module.parameters()):
        return Answer(None, "the parameters are spread over several processes")
    if any(p.device.type != "cpu" for p, _ in held.parameters):
        return Answer(None, "on an accelerator a step is not run again")
    return None


def _run(held: HeldStep, made: Recipe | None, refused: str) -> Answer:
    roots = {name: unwrap(module) for name, module in held.roots.items()}
    roots.update({call.name: unwrap(call.module) for call in held.calls})
    with undisturbed(_owners(held, roots), held.rng, held.autocast) as journal:
        scope = Microscope(roots, journal.note)
        calls = SameCalls(held)
        calls.install()
        _name_tensors(scope, held)
        try:
            with scope:
                found = _recipe_again(held, made, scope) if made else _models_again(held, scope)
        except Exception as error:  # noqa: BLE001 - the user's code may fail in any way the second time
            told = (str(error).splitlines() or [type(error).__name__])[0]
            return Answer(None, f"running the step again failed ({told[:200]})")
        culprit = culprit_of(scope, found.bad, _batch_size(held)) if found.bad else None
    if culprit is None:
        reason = found.reason or "running the step again gave finite values"
        return Answer(None, f"{reason}; the code of the loss was not run: {refused}" if refused else reason)
    if not calls.all_seen and held.rng.torch is not None:
        found = replace(found, other=True)
    return Answer(_with_notes(culprit, held, found, refused))


@dataclass(frozen=True)
class Found:
    """What came out of the second run."""

    bad: list[Tensor]
    loss: float | None = None
    reason: str = ""
    other: bool = False  # the models were not called as they had been


def _recipe_again(held: HeldStep, made: Recipe, scope: Microscope) -> Found:
    loss = made.run()
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        return Found([], reason="the loss is not a single number")
    value = float(loss.detach())
    if is_bad(loss):
        return Found([loss], value)
    if held.where == "loss":
        return Found([], value, "running the step again gave a finite loss")
    return Found(_bad_gradients(loss, held), value)


def _bad_gradients(loss: Tensor, held: HeldStep) -> list[Tensor]:
    parameters = [p for p, _ in held.parameters if p.requires_grad]
    known = {id(p) for p in parameters}
    parameters += [
        p for c in held.calls for p in c.module.parameters() if p.requires_grad and id(p) not in known
    ]
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    return [g for g in gradients if g is not None and is_bad(g)]


def _models_again(held: HeldStep, scope: Microscope) -> Found:
    bad: list[Tensor] = []
    for call in held.calls:
        if any(leaf is DERIVED for leaf in tree_leaves((call.args, call.kwargs))):
            continue  # its input was made by another model
        output = unwrap(call.module)(*call.args, **call.kwargs)
        bad += [t for t in tensors_of(output) if is_bad(t)]
    return Found(bad, reason="" if bad else "the model's own forward is finite when run again")


BOUNDARIES.update((_recipe_again.__code__, _models_again.__code__))


def _name_tensors(scope: Microscope, held: HeldStep) -> None:
    """Tell the microscope what the batch is, by argument or by the name of the user's variable."""
    named: list[tuple[str, Tensor]] = []
    if held.frame is not None:
        for name, value in list(held.frame.f_locals.items()):
            if isinstance(value, Tensor) and value.grad_fn is None and not value.requires_grad:
                named.append((name, value))
    known = {id(t) for _, t in named}
    for call in held.calls:
        for number, tensor in enumerate(tensors_of((call.args, call.kwargs))):
            if id(tensor) not in known and tensor.grad_fn is None:
                named.append((f"input[{number}]", tensor))
    for name, tensor in named:
        if can_be_bad(tensor) and is_bad(tensor):
            scope.name_tensors(CONSTANT if is_mask(tensor) else BATCH, [(name, tensor)])


def is_mask(tensor: Tensor) -> bool:
    """Zeros and -infinities and nothing else: written on purpose, to be added to scores."""
    return not has_nan(tensor) and bool(((tensor == 0) | torch.isneginf(tensor)).all())


def _owners(held: HeldStep, roots: dict[str, nn.Module]) -> Iterator[Any]:
    seen: set[int] = set()
    frame = held.frame
    candidates: Sequence[Any] = [
        *roots.values(),
        *(v for v in (frame.f_locals.values() if frame is not None else ()) if isinstance(v, nn.Module)),
    ]
    for top in candidates:
        for module in top.modules():
            if id(module) not in seen:
                seen.add(id(module))
                yield module


def _batch_size(held: HeldStep) -> int | None:
    first = next((t for c in held.calls for t in tensors_of((c.args, c.kwargs)) if t.dim()), None)
    return int(first.shape[0]) if first is not None else None


def _with_notes(culprit: Culprit, held: HeldStep, found: Found, refused: str) -> Culprit:
    notes = list(culprit.notes)
    if any(type(c.module).__name__ == "OptimizedModule" for c in held.calls):
        notes.append(_EAGER)
    if refused:
        notes.append(_MODEL_ALONE.format(reason=refused))
    same = _same(found.loss, held.loss_value) and not found.other
    if culprit.phase == "parameter" and held.step == 0:
        culprit = replace(
            culprit,
            why=f"the parameter {culprit.op} was not finite before the first step",
            fix="look at its initialisation, or at the checkpoint that was loaded into it",
        )
    if found.other:
        notes.append("run again with other random numbers than the step had drawn")
    elif not same:
        notes.append(f"run again, the loss was {found.loss:.6g} instead of {held.loss_value:.6g}")
    return replace(culprit, notes=tuple(notes), reproduced=same, micro_batch=held.micro_batch)


def _same(again: float | None, before: float | None) -> bool:
    if again is None or before is None or again == before:
        return True
    return not math.isfinite(again) and not math.isfinite(before)
