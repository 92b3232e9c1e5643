"""Replays a step with every operation checked, before its parameters change.

The best way is to run the user's own statements that computed the loss (see `recipe`): forward, loss and
backward are then one piece. If that is not possible, the model alone is run again.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from clew.hooks.collect_layers.trained_models import unwrap
from clew.hooks.steps.replay_inputs import DERIVED
from clew.labs.replay.culprits import Mended, Suspect, guilty, suspects
from clew.labs.replay.loss_gradients import gradients
from clew.labs.replay.microscope import BATCH, CONSTANT, PARAMETER, Microscope
from clew.labs.replay.replayed_calls import SameCalls
from clew.labs.replay.tensor_provenance import computed_by, variable_tensors
from clew.labs.snapshot.finite_values import can_be_bad, has_nan, is_bad
from clew.labs.snapshot.held_step import Culprit, HeldStep
from clew.labs.snapshot.snapshot import snapshot
from clew.labs.snapshot.users_step.loss_origin import user_frames
from clew.labs.snapshot.users_step.loss_recipe import Recipe, recipe_to_put_back
from clew.labs.snapshot.users_step.purity import ImpureError
from clew.labs.snapshot.users_step.replay_lines import BOUNDARIES
from clew.measure.nested_tensors import tensors_in

MOST_FRAMES = 4  # functions whose variables may name a tensor
_EAGER = "the compiled model was replayed without the compiler"
_MADE_SO = "check its initialisation, or the loaded values: torch.isfinite(parameter).all()"
_UPDATED = "lower the learning rate or clip the gradient; with Adam keep eps above 0"
_MODEL_ALONE = "only the model was replayed: the code of the loss could not be ({reason})"


@dataclass(frozen=True)
class ReplayAnswer:
    """The result of a replay; without a culprit, why not."""

    culprit: Culprit | None
    reason: str = ""
    computed: bool = False  # the non-finite value is known to be computed by the program, not data


def replay(held: HeldStep) -> Culprit | None:
    """The first operation that produced a non-finite value, or None if the replay shows none."""
    return answer(held).culprit


def answer(held: HeldStep) -> ReplayAnswer:
    """Like `replay`, and why there is no culprit."""
    outside = _bad_from_outside(held)
    if outside is not None:
        return outside
    made, refused = recipe_for(held)
    return _Replay(held, made, refused).answer() if made or held.calls else ReplayAnswer(None, refused)


def recipe_for(held: HeldStep) -> tuple[Recipe | None, str]:
    """The statements that computed the loss; without them, why not."""
    if held.frame is None or held.backward_at[1] is None:
        return None, "the function that called backward() is gone"
    try:
        return recipe_to_put_back(held.frame, held.backward_at[1], held.delivered), ""
    except ImpureError as error:
        return None, str(error)


def _bad_from_outside(held: HeldStep) -> ReplayAnswer | None:
    if any(type(p) not in (Tensor, nn.Parameter) for c in held.calls for p in c.module.parameters()):
        return ReplayAnswer(None, "the parameters are spread over several processes")
    if any(p.device.type != "cpu" for p, _ in held.parameters):
        return ReplayAnswer(None, "on an accelerator a step is not replayed")
    return None


@dataclass(frozen=True)
class FoundCulprit:
    """The result of one run."""

    bad: list[Tensor]
    loss: float | None = None
    reason: str = ""
    drawn: tuple[str, ...] = ()  # generators that gave other numbers than in the step
    suspects: tuple[Suspect, ...] = ()


class _Replay:
    """Replays one step as often as needed to find what is to blame."""

    def __init__(self, held: HeldStep, made: Recipe | None, refused: str) -> None:
        self._held = held
        self._made = made
        self._refused = refused
        self._roots = {name: unwrap(module) for name, module in held.roots.items()}
        self._roots.update({call.name: unwrap(call.module) for call in held.calls})

    def answer(self) -> ReplayAnswer:
        try:
            found = self._once()
            culprit = guilty(found.suspects, lambda mended: bool(self._once(mended).bad))
        except _FailedError as error:
            return ReplayAnswer(None, str(error))
        if culprit is None:
            return ReplayAnswer(None, self._why_nothing(found))
        if culprit.phase == BATCH:
            statement = computed_by(culprit.op, self._held.frame, self._held.backward_at[1], self._made)
            if statement is not None:
                return ReplayAnswer(None, self._not_covered(culprit, statement), computed=True)
        return ReplayAnswer(self._told(culprit, found))

    def _once(self, mended: Mended = frozenset()) -> FoundCulprit:
        """Run the step; `mended` values are made finite on the way."""
        held, made = self._held, self._made
        with snapshot(self._owners(), rng=held.rng, autocast=held.autocast) as journal:
            scope = Microscope(self._roots, journal.note, mended=mended)
            calls = SameCalls(held)
            calls.install()
            _name_tensors(scope, held, made)
            scope.mend_what_is_known()
            names = dict(made.namespace) if made else {}
            try:
                with scope:
                    found = _recipe_again(held, made, scope) if made else _models_again(held, scope)
            except Exception as error:  # the user's code may fail in any way the second time
                raise _FailedError(f"replaying the step failed ({_first_line(error)})") from error
            finally:
                if made:
                    made.namespace.clear()
                    made.namespace.update(names)
            batch = _batch_size(held) or scope.batch
            who = suspects(scope, found.bad, batch) if found.bad and not mended else []
            drawn = calls.drawn_anew()
        if not calls.all_seen and held.rng.torch is not None:
            drawn = ["torch"]
        return replace(found, suspects=tuple(who), drawn=tuple(drawn))

    def _owners(self) -> Iterator[Any]:
        """All objects whose attributes the run may set."""
        frame = self._held.frame
        local = frame.f_locals.values() if frame is not None else ()
        tops = [*self._roots.values(), *(v for v in local if isinstance(v, nn.Module))]
        modules = {id(m): m for top in tops for m in top.modules()}
        yield from modules.values()
        for owner in self._made.owners if self._made else ():
            if id(owner) not in modules:
                yield owner

    # -- in words --

    def _why_nothing(self, found: FoundCulprit) -> str:
        reason = found.reason or "replaying the step gave finite values"
        if self._refused:
            reason = f"{reason}; the code of the loss was not replayed: {self._refused}"
        if self._held.changed:
            return f"{self._changed()}. With the present values, {reason}"
        if found.drawn:
            return f"{reason}: {_drawn(found.drawn)}"
        return reason

    def _not_covered(self, culprit: Culprit, statement: ast.stmt) -> str:
        code = ast.unparse(statement).splitlines()[0]
        return (
            f"{culprit.op} was already non-finite before the replayed part; it is computed on line "
            f"{statement.lineno}, {shortened(code, 100)}"
        )

    def _changed(self) -> str:
        names = dict.fromkeys(_name_of(t, self._held) for t in self._held.changed)
        return f"{', '.join(names)} was changed in place after the model got it"

    def _told(self, culprit: Culprit, found: FoundCulprit) -> Culprit:
        held = self._held
        notes = list(culprit.notes)
        if any(type(c.module).__name__ == "OptimizedModule" for c in held.calls):
            notes.append(_EAGER)
        if self._refused:
            notes.append(_MODEL_ALONE.format(reason=self._refused))
        exactly = found.loss is not None and found.loss == held.loss_value
        same = _same(found.loss, held.loss_value)
        if culprit.phase == PARAMETER:
            culprit = since_when(culprit, held)
        if held.changed and not exactly:
            notes.append(f"{self._changed()}: in the replay, the model got the present values")
            culprit = replace(culprit, samples=(), elements=(), element_values=())
            same = False
        elif found.drawn and not exactly:
            notes.append(f"replayed with different random numbers than in the step: {_drawn(found.drawn)}")
            same = False
        elif not same:
            notes.append(f"in the replay, the loss was {found.loss:.6g} instead of {held.loss_value:.6g}")
        return replace(culprit, notes=tuple(notes), reproduced=same, micro_batch=held.micro_batch)


class _FailedError(Exception):
    """The user's code did not run a second time."""


def _first_line(error: Exception) -> str:
    return shortened((str(error).splitlines() or [type(error).__name__])[0], 200)


def shortened(text: str, most: int) -> str:
    """Cut between words."""
    return text if len(text) <= most else f"{text[:most].rpartition(' ')[0] or text[:most]} …"


def _drawn(generators: Sequence[str]) -> str:
    return f"random numbers of {' and '.join(generators)} were used, whose state was not saved"


def since_when(culprit: Culprit, held: HeldStep) -> Culprit:
    """For a parameter that was not finite when the step began: which update broke it, as far as known."""
    kind = "NaN" if culprit.result == "nan" else "infinite values"
    told = f"the parameter {culprit.op} already contained {kind}"
    seen = held.measured.get(culprit.op)
    if not is_optimised(culprit.op, held):
        why = f"{told}, and no optimizer updates it: it was created or loaded that way"
        return replace(culprit, why=why, fix=_MADE_SO)
    if held.step == 0 or seen == (0, False):
        why = f"the parameter {culprit.op} was non-finite before the first step"
        return replace(culprit, why=why, fix=_MADE_SO)
    if seen is not None:
        finite, when = seen[1], f"an update since step {seen[0]}"
        if not finite:
            when = f"an update before step {seen[0]}"
        elif seen[0] == held.step - 1:
            when = "the last update"
        return replace(culprit, why=f"{told}: {when} produced them", fix=_UPDATED, by_update=True)
    return replace(culprit, why=f"{told} when the step began; it is unknown since when")


def is_optimised(name: str, held: HeldStep) -> bool:
    """Whether a parameter, as the microscope names it, belongs to an optimizer."""
    for root, module in held.roots.items():
        for path, parameter in unwrap(module).named_parameters():
            if name in (path, f"{root}.{path}") and id(parameter) in held.optimised:
                return True
    return False


def _recipe_again(held: HeldStep, made: Recipe, scope: Microscope) -> FoundCulprit:
    loss = made.run()
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        return FoundCulprit([], reason="the loss is not a single number")
    value = float(loss.detach())
    if is_bad(loss):
        return FoundCulprit([loss], value)
    if held.where == "loss":
        return FoundCulprit([], value, "replaying the step gave a finite loss")
    return FoundCulprit(_bad_gradients(loss, held, made), value)


def _bad_gradients(loss: Tensor, held: HeldStep, made: Recipe) -> list[Tensor]:
    known = {id(p): p for p, _ in held.parameters if p.requires_grad}
    for module in [*(c.module for c in held.calls), *held.roots.values()]:
        known.update((id(p), p) for p in module.parameters() if p.requires_grad)
    others = [t for t in made.namespace.values() if isinstance(t, Tensor) and t.requires_grad]
    others += [p for m in made.namespace.values() if isinstance(m, nn.Module) for p in m.parameters()]
    return [g for g in gradients(loss, list(known.values()), others) if is_bad(g)]


def _models_again(held: HeldStep, scope: Microscope) -> FoundCulprit:
    bad: list[Tensor] = []
    for call in held.calls:
        if any(leaf is DERIVED for leaf in tree_leaves((call.args, call.kwargs))):
            continue  # its input was made by another model
        output = unwrap(call.module)(*call.args, **call.kwargs)
        bad += [t for t in tensors_in(output) if is_bad(t)]
    return FoundCulprit(bad, reason="" if bad else "the model's own forward is finite in the replay")


BOUNDARIES.update((_recipe_again.__code__, _models_again.__code__))


def _name_tensors(scope: Microscope, held: HeldStep, made: Recipe | None) -> None:
    """Name the batch's tensors for the microscope: by argument, or by the user's variable."""
    given = [t for call in held.calls for t in tensors_in((call.args, call.kwargs))]
    named = [(_name_of(t, held), t) for t in given if t.grad_fn is None]
    named += [(n, t) for n, t in _variables(held) if t.grad_fn is None and not t.requires_grad]
    if made is not None:
        named += [
            (n, t) for n, t in variable_tensors(made.namespace) if t.grad_fn is None and not t.requires_grad
        ]
    for name, tensor in named:
        if can_be_bad(tensor) and is_bad(tensor) and not scope.knows(tensor):
            scope.name_tensors(CONSTANT if is_mask(tensor) else BATCH, [(name, tensor)])


def _variables(held: HeldStep) -> list[tuple[str, Tensor]]:
    """The variables of the function that calls `backward()`, then of its callers."""
    frames = itertools.islice(user_frames(held.frame), MOST_FRAMES)
    return [pair for frame in frames for pair in variable_tensors(frame.f_locals)]


def _name_of(tensor: Tensor, held: HeldStep) -> str:
    """The user's name for it, or for the tensor it was cut from; else its position in the arguments."""
    variables = _variables(held)
    same = [name for name, other in variables if other is tensor]
    same += [name for name, other in variables if other is tensor._base]
    for call in held.calls:
        given = enumerate(tensors_in((call.args, call.kwargs)))
        same += [f"input[{number}]" for number, other in given if other is tensor]
    return same[0] if same else "a tensor"


def is_mask(tensor: Tensor) -> bool:
    """Only zeros and -infinities: written on purpose, to be added to scores."""
    return not has_nan(tensor) and bool(((tensor == 0) | torch.isneginf(tensor)).all())


def _batch_size(held: HeldStep) -> int | None:
    first = next((t for c in held.calls for t in tensors_in((c.args, c.kwargs)) if t.dim()), None)
    return int(first.shape[0]) if first is not None else None


def _same(again: float | None, before: float | None) -> bool:
    if again is None or before is None or again == before:
        return True
    return not math.isfinite(again) and not math.isfinite(before)
