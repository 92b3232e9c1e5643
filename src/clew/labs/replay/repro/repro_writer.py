"""Writes a failed step to a repro folder, from which it can be run again on its own.

    repro/step-45/repro.json            what there is, versions, precision, the culprit
                  tensors.safetensors   parameters, buffers, batch, random state
                  repro.py              shows the failure;  test_repro.py fails until it is fixed
                  rebuild.py            makes the objects again, from the program's own source

Nothing is pickled. It is written once per run, and not at all if it would be too large. Before
Clew says that it can be run again, Clew runs it: see `shows_failure`.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from clew.hooks.collect_layers.trained_models import unwrap
from clew.hooks.steps.step_machine import distributed
from clew.labs.replay.replay_alarm import culprit_fact
from clew.labs.replay.repro import rebuilt_step, repro_scripts
from clew.labs.replay.repro.program_names import describe_globals, live
from clew.labs.replay.repro.rebuilt_step import SavedStep
from clew.labs.replay.repro.saved_description import SavedDescription, TooLargeError, unusable
from clew.labs.replay.repro.saved_step import statements_of
from clew.labs.replay.step_replay import ReplayAnswer, recipe_for
from clew.labs.snapshot.inplace_writes import WriteJournal, memory_key
from clew.labs.snapshot.nonfinite_values import NonFiniteStep
from clew.labs.snapshot.op_recorder import OpCall, OpRecorder
from clew.labs.snapshot.snapshot import snapshot
from clew.labs.snapshot.time_limit import first_line
from clew.labs.snapshot.users_step.loss_recipe import Recipe
from clew.labs.snapshot.users_step.program_slice import loaded, stored
from clew.measure.rng import Rng
from clew.records.facts.fact import FactSink
from clew.records.facts.nan_facts import ReproFact

_FINITE = "replayed from the saved state, the values are finite"
LIMIT = 2 * 1024**3  # bytes of tensors


class ReproWriter:
    """Listens to the alarm and saves the first step that was kept."""

    def __init__(self, folder: Path, sink: FactSink, limit: int = LIMIT) -> None:
        self._folder = folder
        self._sink = sink
        self._limit = limit
        self._done = False

    def __call__(self, nonfinite: NonFiniteStep, found: ReplayAnswer) -> None:
        if self._done:
            return
        self._done = True
        self._save(nonfinite, found).write(self._sink, nonfinite.step)

    def _save(self, nonfinite: NonFiniteStep, found: ReplayAnswer) -> ReproFact:
        folder = self._folder / f"step-{nonfinite.step}"
        try:
            return write(folder, nonfinite, found, self._limit)
        except TooLargeError:
            shutil.rmtree(folder, ignore_errors=True)
            return ReproFact(reason=f"it would take more than {self._limit:,} bytes")
        except NothingToRunError as error:
            return ReproFact(reason=str(error))
        except OSError as error:
            return ReproFact(reason=str(error.strerror or error))


class NothingToRunError(Exception):
    """Neither the code of the loss nor a call of a model is known."""


def write(folder: Path, nonfinite: NonFiniteStep, found: ReplayAnswer, limit: int = LIMIT) -> ReproFact:
    """Save a kept step; returns what could not be saved, and whether the copy shows the failure."""
    made, refused = recipe_for(nonfinite)
    description, content = _described(nonfinite, made, limit)
    if content is None:  # the statements need something that JSON can't represent
        made, refused = None, f"{description.missing[0]} could not be saved"
        description, content = _described(nonfinite, None, limit)
    if content is None or (made is None and not nonfinite.calls):
        raise NothingToRunError(f"the code of the loss could not be saved: {refused}")
    circumstances = _circumstances(nonfinite, found)
    recipe_json = None if made is None else _recipe_json(made)
    data = {"format": rebuilt_step.FORMAT, **circumstances, **content, "recipe": recipe_json}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(description.tensors, str(folder / "tensors.safetensors"))
    data["shown"] = shows_failure(folder, data, description.tensors, nonfinite, refused or found.reason)
    (folder / "repro.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    (folder / "rebuild.py").write_text(repro_scripts.bundled(), encoding="utf-8")
    (folder / "repro.py").write_text(repro_scripts.script(data), encoding="utf-8")
    (folder / "test_repro.py").write_text(repro_scripts.test(data), encoding="utf-8")
    seen, reason = data["shown"]["seen"], data["shown"]["reason"]
    return ReproFact(True, str(folder), tuple(description.missing), seen, reason)


def _described(
    nonfinite: NonFiniteStep, made: Recipe | None, limit: int
) -> tuple[SavedDescription, dict[str, Any] | None]:
    """The objects of the step; nothing if the statements can't run with what could be saved."""
    description = SavedDescription(limit)
    names = {} if made is None else _names(made, description)
    if any(unusable(value) for value in names.values()):
        return description, None
    content = {
        "names": names,
        "calls": _calls(nonfinite, description, with_recipe=made is not None),
        "roots": _roots(nonfinite, description),
        "rng": _rng(nonfinite.rng, description),
        "globals": describe_globals(description, made.tree if made is not None else None),
        "missing": description.missing,
    }
    return description, content


def _calls(
    nonfinite: NonFiniteStep, description: SavedDescription, with_recipe: bool
) -> list[dict[str, Any]]:
    """The models' arguments. If the statements are available, these may be incomplete."""
    calls = []
    for call in nonfinite.calls:
        before = len(description.missing)
        described = {
            "model": description.of(call.module, call.name),
            "args": description.of(call.args, f"{call.name}'s arguments"),
            "kwargs": description.of(call.kwargs, f"{call.name}'s arguments"),
        }
        if with_recipe and (unusable(described["args"]) or unusable(described["kwargs"])):
            del description.missing[before:]
        else:
            calls.append(described)
    return calls


def _names(made: Recipe, description: SavedDescription) -> dict[str, Any]:
    """The names that the statements read from outside."""
    described: dict[str, Any] = {}
    sure: set[str] = set()  # already set, with any value
    perhaps: set[str] = set()
    for statement in made.tree.body:
        for name in sorted(loaded(statement) - sure - set(described)):
            if name not in made.namespace:
                continue
            value = description.of(made.namespace[name], name)
            if name not in perhaps | bound_inside(statement) or not unusable(value):
                described[name] = value
        perhaps |= stored(statement)
        if not isinstance(statement, (ast.If, ast.For, ast.While)):
            sure |= stored(statement)
    return described


def bound_inside(statement: ast.stmt) -> set[str]:
    """The names bound in comprehensions: they may not exist outside."""
    return {
        name for n in ast.walk(statement) if isinstance(n, ast.comprehension) for name in stored(n.target)
    }


def _recipe_json(made: Recipe) -> dict[str, Any]:
    lines = [getattr(node, "lineno", 0) for node in ast.walk(made.tree)]
    return {"source": made.source, "file": made.file, "lines": lines}


def _roots(nonfinite: NonFiniteStep, description: SavedDescription) -> dict[str, int]:
    models = {**nonfinite.roots, **{call.name: call.module for call in nonfinite.calls}}
    numbers = {name: description.number_of(unwrap(module)) for name, module in models.items()}
    return {name: number for name, number in numbers.items() if number is not None}


def _rng(rng: Rng, description: SavedDescription) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if rng.torch is not None:
        data["torch"] = description.keep(rng.torch)
    if rng.python is not None:
        version, state, gauss = rng.python
        data["python"] = [version, list(state), gauss]
    if rng.numpy is not None:
        kind, keys, position, has_gauss, cached = rng.numpy
        keys = torch.as_tensor(np.asarray(keys).astype("int64"))
        data["numpy"] = [kind, description.keep(keys), int(position), int(has_gauss), float(cached)]
    return data


def _circumstances(nonfinite: NonFiniteStep, found: ReplayAnswer) -> dict[str, Any]:
    cast = nonfinite.autocast
    culprit = culprit_fact(nonfinite.where, found)
    return {
        "step": nonfinite.step,
        "where": nonfinite.where,
        "culprit": culprit.to_json(),
        "summary": repro_scripts.summary(culprit),
        "autocast": {
            "device": cast.device,
            "enabled": cast.enabled,
            "dtype": str(cast.dtype).removeprefix("torch.") if cast.dtype is not None else None,
        },
        "versions": {
            "torch": str(torch.__version__),
            "numpy": np.__version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
        },
        "script": str(Path(sys.argv[0]).absolute()) if sys.argv and sys.argv[0] else None,
        "paths": _paths(nonfinite),
    }


def _paths(nonfinite: NonFiniteStep) -> list[str]:
    """Where the program's own modules were found."""
    places = [os.path.dirname(nonfinite.backward_at[0] or ""), sys.path[0] if sys.path else "", os.getcwd()]
    return list(dict.fromkeys(os.path.abspath(p) for p in places if p))


def shows_failure(
    folder: Path, data: dict[str, Any], tensors: dict[str, Tensor], nonfinite: NonFiniteStep, before: str
) -> dict[str, Any]:
    """`seen`: did the failure occur again? None: it could not be tried. `reason`: why not.

    Classes and functions are those of the running program, none are executed again: definitions may
    register themselves somewhere. What they change in the program is restored. It costs one forward and
    backward of the step, and consumes `tensors`.
    """
    why_not = _why_not(nonfinite)
    if why_not:
        return {"seen": None, "reason": why_not}
    shown: dict[str, Any] = {"seen": True, "reason": ""}  # so that the run writes nothing to the folder
    plain = {**json.loads(json.dumps(data)), "shown": shown}
    try:
        with snapshot(_owners(nonfinite)) as journal, _Writes(journal, tensors.values()):
            step = SavedStep(folder, data=plain, tensors=tensors, finder=live)
            bad = step.run(statements_of(plain["recipe"])).bad
    except Exception as error:  # noqa: BLE001 - the user's code may fail in any way
        return {"seen": None, "reason": first_line(error)[:200]}
    if bad:
        return shown
    if data["recipe"] is None:
        return {"seen": False, "reason": f"the code of the loss is not in it: {before}"}
    return {"seen": False, "reason": before or _FINITE}


class _Writes(OpRecorder):
    """Records writes to tensors that are neither saved nor created here: a function may use another model."""

    def __init__(self, journal: WriteJournal, own: Iterable[Tensor]) -> None:
        super().__init__(self._outside)
        self._journal = journal
        self._own = {memory_key(tensor) for tensor in own}

    def _outside(self, tensor: Tensor) -> None:
        if memory_key(tensor) not in self._own:
            self._journal.note(tensor)

    def after_op(self, op: OpCall) -> None:
        given = {memory_key(tensor) for tensor in op.inputs}
        self._own.update({memory_key(tensor) for tensor in op.outputs} - given)


def _owners(nonfinite: NonFiniteStep) -> list[nn.Module]:
    """The program's modules that its own code may reach."""
    frame = nonfinite.frame
    tops = [*nonfinite.roots.values(), *(call.module for call in nonfinite.calls)]
    if frame is not None:
        values = (*frame.f_locals.values(), *frame.f_globals.values())
        tops += [value for value in values if isinstance(value, nn.Module)]
    return list({id(module): module for top in tops for module in unwrap(top).modules()}.values())


def _why_not(nonfinite: NonFiniteStep) -> str | None:
    if distributed():
        return "it was one of several processes, and the others would wait"
    if any(p.device.type != "cpu" for p, _ in nonfinite.parameters):
        return "it ran on an accelerator"
    return None
