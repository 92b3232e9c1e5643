"""Replays a step with every operation checked, before its parameters change.

The best way is to run the user's own statements that computed the loss (see `recipe`): forward, loss and
backward are then one piece. If that is not possible, the model alone is run again.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from clew.hooks.collect_layers.trained_models import unwrap
from clew.hooks.steps.replay_inputs import DERIVED, has_graph, same_state
from clew.labs.replay.culprits import Mended, Suspect, find_suspects, pick_culprit
from clew.labs.replay.loss_gradients import each_gradient
from clew.labs.replay.microscope import BATCH, PARAMETER, Microscope, batch_size
from clew.labs.replay.tensor_provenance import computed_by, name_of, named_inputs
from clew.labs.snapshot.nonfinite_values import Culprit, NonFiniteStep, is_bad, kind_in_words
from clew.labs.snapshot.snapshot import snapshot
from clew.labs.snapshot.time_limit import first_line
from clew.labs.snapshot.users_step.loss_recipe import Recipe, recipe_to_put_back
from clew.labs.snapshot.users_step.replay_lines import BOUNDARIES
from clew.labs.snapshot.users_step.side_effects import CannotRerun
from clew.measure.nested_tensors import merge_nested, tensors_in
from clew.measure.rng import Rng

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


def answer(nonfinite: NonFiniteStep) -> ReplayAnswer:
    """The first operation that produced a non-finite value; if the replay shows none, why."""
    obstacle = _obstacle(nonfinite)
    if obstacle:
        return ReplayAnswer(None, obstacle)
    made, refused = recipe_for(nonfinite)
    return (
        _Replay(nonfinite, made, refused).answer() if made or nonfinite.calls else ReplayAnswer(None, refused)
    )


def recipe_for(nonfinite: NonFiniteStep) -> tuple[Recipe | None, str]:
    """The statements that computed the loss; without them, why not."""
    if nonfinite.frame is None or nonfinite.backward_at[1] is None:
        return None, "the function that called backward() has returned"
    try:
        return recipe_to_put_back(nonfinite.frame, nonfinite.backward_at[1], nonfinite.delivered), ""
    except CannotRerun as error:
        return None, str(error)


def _obstacle(nonfinite: NonFiniteStep) -> str:
    """Why such a step is never replayed; empty if it can be tried."""
    if any(type(p) not in (Tensor, nn.Parameter) for c in nonfinite.calls for p in c.module.parameters()):
        return "the parameters are spread over several processes"
    if any(p.device.type != "cpu" for p, _ in nonfinite.parameters):
        return "steps are not replayed on an accelerator"
    return ""


@dataclass(frozen=True)
class ReplayRun:
    """The result of replaying the step once."""

    bad: list[Tensor]
    loss: float | None = None
    reason: str = ""
    drawn: tuple[str, ...] = ()  # generators that gave other numbers than in the step
    suspects: tuple[Suspect, ...] = ()


class _Replay:
    """Replays one step as often as needed to find what is to blame."""

    def __init__(self, nonfinite: NonFiniteStep, made: Recipe | None, refused: str) -> None:
        self._nonfinite = nonfinite
        self._made = made
        self._refused = refused
        self._roots = {name: unwrap(module) for name, module in nonfinite.roots.items()}
        self._roots.update({call.name: unwrap(call.module) for call in nonfinite.calls})

    def answer(self) -> ReplayAnswer:
        try:
            found = self._once()
            culprit = pick_culprit(found.suspects, lambda mended: bool(self._once(mended).bad))
        except _FailedError as error:
            return ReplayAnswer(None, str(error))
        if culprit is None:
            return ReplayAnswer(None, self._why_nothing(found))
        if culprit.phase == BATCH:
            statement = computed_by(
                culprit.op, self._nonfinite.frame, self._nonfinite.backward_at[1], self._made
            )
            if statement is not None:
                return ReplayAnswer(None, self._not_covered(culprit, statement), computed=True)
        return ReplayAnswer(self._with_notes(culprit, found))

    def _once(self, mended: Mended = frozenset()) -> ReplayRun:
        """Run the step; `mended` values are made finite on the way."""
        nonfinite, made = self._nonfinite, self._made
        with snapshot(self._owners(), rng=nonfinite.rng, autocast=nonfinite.autocast) as journal:
            scope = Microscope(self._roots, journal.note, mended=mended)
            calls = SameCalls(nonfinite)
            calls.install()
            scope.name_batch(named_inputs(nonfinite, made))
            scope.mend_what_is_known()
            names = dict(made.namespace) if made else {}
            try:
                with scope:
                    found = _recipe_again(nonfinite, made) if made else _models_again(nonfinite)
            except Exception as error:  # the user's code may fail in any way the second time
                reason = shortened(first_line(error), 200)
                raise _FailedError(f"replaying the step failed ({reason})") from error
            finally:
                if made:
                    made.namespace.clear()
                    made.namespace.update(names)
            batch = batch_size([(c.args, c.kwargs) for c in nonfinite.calls]) or scope.batch
            who = find_suspects(scope, found.bad, batch) if found.bad and not mended else []
            drawn = calls.drawn_anew()
        if not calls.all_seen and nonfinite.rng.torch is not None:
            drawn = ["torch"]
        return replace(found, suspects=tuple(who), drawn=tuple(drawn))

    def _owners(self) -> Iterator[Any]:
        """All objects whose attributes the run may set."""
        frame = self._nonfinite.frame
        local = frame.f_locals.values() if frame is not None else ()
        tops = [*self._roots.values(), *(v for v in local if isinstance(v, nn.Module))]
        modules = {id(m): m for top in tops for m in top.modules()}
        yield from modules.values()
        for owner in self._made.owners if self._made else ():
            if id(owner) not in modules:
                yield owner

    # -- in words --

    def _why_nothing(self, found: ReplayRun) -> str:
        reason = found.reason or "replaying the step gave finite values"
        if self._refused:
            reason = f"{reason}; the code of the loss was not replayed: {self._refused}"
        if self._nonfinite.changed:
            return f"{self._changed()}. With the current values, {reason}"
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
        names = dict.fromkeys(name_of(t, self._nonfinite) for t in self._nonfinite.changed)
        return f"{', '.join(names)} was changed in place after the model got it"

    def _with_notes(self, culprit: Culprit, found: ReplayRun) -> Culprit:
        nonfinite = self._nonfinite
        notes = list(culprit.notes)
        if any(type(c.module).__name__ == "OptimizedModule" for c in nonfinite.calls):
            notes.append(_EAGER)
        if self._refused:
            notes.append(_MODEL_ALONE.format(reason=self._refused))
        exactly = found.loss is not None and found.loss == nonfinite.loss_value
        same = _same(found.loss, nonfinite.loss_value)
        if culprit.phase == PARAMETER:
            culprit = since_when(culprit, nonfinite)
        if nonfinite.changed and not exactly:
            notes.append(f"{self._changed()}: in the replay, the model got the current values")
            culprit = replace(culprit, samples=(), elements=(), element_values=())
            same = False
        elif found.drawn and not exactly:
            notes.append(f"replayed with different random numbers than in the step: {_drawn(found.drawn)}")
            same = False
        elif not same:
            notes.append(
                f"in the replay, the loss was {found.loss:.6g} instead of {nonfinite.loss_value:.6g}"
            )
        return replace(culprit, notes=tuple(notes), reproduced=same, micro_batch=nonfinite.micro_batch)


class _FailedError(Exception):
    """The user's code did not run a second time."""


def shortened(text: str, most: int) -> str:
    """The text, cut between words if it has more than `most` characters."""
    return text if len(text) <= most else f"{text[:most].rpartition(' ')[0] or text[:most]} …"


def _drawn(generators: Sequence[str]) -> str:
    return f"random numbers of {' and '.join(generators)} were used, whose state was not saved"


def since_when(culprit: Culprit, nonfinite: NonFiniteStep) -> Culprit:
    """For a parameter that was not finite when the step began: which update broke it, as far as known."""
    known = f"the parameter {culprit.op} already contained {kind_in_words(culprit.result)}"
    seen = nonfinite.measured.get(culprit.op)
    if not is_optimised(culprit.op, nonfinite):
        why = f"{known}, and no optimizer updates it: it was created or loaded that way"
        return replace(culprit, why=why, fix=_MADE_SO)
    if nonfinite.step == 0 or seen == (0, False):
        why = f"the parameter {culprit.op} was non-finite before the first step"
        return replace(culprit, why=why, fix=_MADE_SO)
    if seen is not None:
        finite, when = seen[1], f"an update since step {seen[0]}"
        if not finite:
            when = f"an update before step {seen[0]}"
        elif seen[0] == nonfinite.step - 1:
            when = "the last update"
        return replace(culprit, why=f"{known}: {when} produced them", fix=_UPDATED, by_update=True)
    return replace(culprit, why=f"{known} when the step began; it is unknown since when")


def is_optimised(name: str, nonfinite: NonFiniteStep) -> bool:
    """Whether a parameter, as the microscope names it, belongs to an optimizer."""
    for root, module in nonfinite.roots.items():
        for path, parameter in unwrap(module).named_parameters():
            if name in (path, f"{root}.{path}") and id(parameter) in nonfinite.optimised:
                return True
    return False


def _recipe_again(nonfinite: NonFiniteStep, made: Recipe) -> ReplayRun:
    loss = made.run()
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        return ReplayRun([], reason="the loss is not a single number")
    value = float(loss.detach())
    if is_bad(loss):
        return ReplayRun([loss], value)
    if nonfinite.where == "loss":
        return ReplayRun([], value, "replaying the step gave a finite loss")
    return ReplayRun(_bad_gradients(loss, nonfinite, made), value)


def _bad_gradients(loss: Tensor, nonfinite: NonFiniteStep, made: Recipe) -> list[Tensor]:
    known = {id(p): p for p, _ in nonfinite.parameters if p.requires_grad}
    for module in [*(c.module for c in nonfinite.calls), *nonfinite.roots.values()]:
        known.update((id(p), p) for p in module.parameters() if p.requires_grad)
    others = [t for t in made.namespace.values() if isinstance(t, Tensor) and t.requires_grad]
    others += [p for m in made.namespace.values() if isinstance(m, nn.Module) for p in m.parameters()]
    found = each_gradient(loss, list(known.values()), others)
    return [gradient for gradient in found if gradient is not None and is_bad(gradient)]


def _models_again(nonfinite: NonFiniteStep) -> ReplayRun:
    bad: list[Tensor] = []
    for call in nonfinite.calls:
        if any(given is DERIVED for given in (*call.args, *call.kwargs.values())):
            continue  # its input was made by another model
        output = unwrap(call.module)(*call.args, **call.kwargs)
        bad += [t for t in tensors_in(output) if is_bad(t)]
    return ReplayRun(bad, reason="" if bad else "the model's own forward is finite in the replay")


BOUNDARIES.update((_recipe_again.__code__, _models_again.__code__))


def _same(again: float | None, before: float | None) -> bool:
    if again is None or before is None or again == before:
        return True
    return not math.isfinite(again) and not math.isfinite(before)


class SameCalls:
    """Calls the models of a replay with the arguments and random state of the original calls.

    A script may draw its batch in the same statement that calls the model. Run again, that would be
    another batch, so the model's original arguments are kept. `all_seen` is set once each model was
    called as often as originally.
    """

    def __init__(self, nonfinite: NonFiniteStep) -> None:
        self._nonfinite = nonfinite
        self._waiting = list(nonfinite.calls)
        self._since: Rng | None = None  # state of the generators when the first model was called

    def install(self) -> None:
        """The snapshot that keeps the modules' attributes removes the hooks."""
        for module in {id(c.module): unwrap(c.module) for c in self._nonfinite.calls}.values():
            module.register_forward_pre_hook(self._called, with_kwargs=True)

    @property
    def all_seen(self) -> bool:
        return not self._waiting

    def drawn_anew(self) -> list[str]:
        """The generators that were drawn from although their state in the step is not known."""
        if self._since is None:
            return []
        now = Rng.take()
        pairs = (
            (name, getattr(self._since, name), getattr(now, name)) for name in ("torch", "numpy", "python")
        )
        drawn = [name for name, old, new in pairs if old is not None and not same_state(old, new)]
        return [name for name in drawn if getattr(self._nonfinite.rng, name) is None]

    def _called(self, module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        call = next((c for c in self._waiting if unwrap(c.module) is module), None)
        if call is None:
            return None
        self._waiting.remove(call)
        if self._since is None:
            self._nonfinite.rng.put()
            self._since = Rng.take()
        same: tuple[Any, Any] = merged((call.args, call.kwargs), (args, kwargs))
        return same


def merged(held: Any, given: Any) -> Any:
    """The kept arguments, except for tensors that this run computed itself: they carry its graph or NaN."""

    def choose(old: Any, new: Any) -> Any:
        return new if old is DERIVED or has_graph((old,)) or _is_the_same(old, new) else old

    return merge_nested(held, given, choose)


def _is_the_same(old: Any, new: Any) -> bool:
    """Whether this run has computed exactly the same values."""
    if not isinstance(old, Tensor) or not isinstance(new, Tensor) or old is new:
        return False
    alike = old.shape == new.shape and old.dtype == new.dtype and old.layout == new.layout == torch.strided
    if not alike or old.requires_grad != new.requires_grad:
        return False
    with _disable_current_modes(), torch.no_grad():
        return bool(((old == new) | ((old != old) & (new != new))).all())
