"""A step that went wrong, written to a folder from which it can be run again, alone.

    repro/step-45/repro.json            what there is, versions, precision, the culprit
                  tensors.safetensors   parameters, buffers, batch, random state
                  repro.py              shows the failure;  test_repro.py fails until it is fixed
                  rebuild.py            makes the objects again, from the program's own source

Nothing is pickled. It is written once in a run, and not at all if it would be too large. Before
anybody is told that it can be run again, it is: see `trying`.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from clew.hooks.steps.trained_models import unwrap
from clew.labs.replay.repro import rebuilt_step, repro_scripts
from clew.labs.replay.repro.global_variables import describe_globals
from clew.labs.replay.repro.repro_trial import tried
from clew.labs.replay.repro.saved_description import Description, TooLargeError, unusable
from clew.labs.replay.step_replay import Answer, recipe_for
from clew.labs.snapshot.held_step import HeldStep
from clew.labs.snapshot.users_step.loss_recipe import Recipe
from clew.labs.snapshot.users_step.purity import loaded, stored
from clew.measure.rng import Rng

LIMIT = 2 * 1024**3  # bytes of tensors
Note = Callable[[dict[str, Any]], None]


class ReproWriter:
    """Listens to the alarm and saves the first step that was held."""

    def __init__(self, folder: Path, note: Note, limit: int = LIMIT) -> None:
        self._folder = folder
        self._note = note
        self._limit = limit
        self._done = False

    def __call__(self, held: HeldStep, found: Answer) -> None:
        if self._done:
            return
        self._done = True
        folder = self._folder / f"step-{held.step}"
        try:
            self._note({"written": True, "path": str(folder), **write(folder, held, found, self._limit)})
        except TooLargeError:
            shutil.rmtree(folder, ignore_errors=True)
            self._note({"written": False, "reason": f"it would take more than {self._limit:,} bytes"})
        except NothingToRunError as error:
            self._note({"written": False, "reason": str(error)})
        except OSError as error:
            self._note({"written": False, "reason": str(error.strerror or error)})


class NothingToRunError(Exception):
    """Neither the code of the loss nor a call of a model is known."""


def write(folder: Path, held: HeldStep, found: Answer, limit: int = LIMIT) -> dict[str, Any]:
    """Save a held step; gives what could not be saved of it, and whether it shows the failure."""
    made, refused = recipe_for(held)
    description, content = _described(held, made, limit)
    if content is None:  # the statements need something that has no place in JSON
        made, refused = None, f"{description.missing[0]} could not be saved"
        description, content = _described(held, None, limit)
    if content is None or (made is None and not held.calls):
        raise NothingToRunError(f"the code of the loss could not be saved: {refused}")
    circumstances = _circumstances(held, found)
    recipe_json = None if made is None else _recipe_json(made, held)
    data = {"format": rebuilt_step.FORMAT, **circumstances, **content, "recipe": recipe_json}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(description.tensors, str(folder / "tensors.safetensors"))
    data["shown"] = tried(folder, data, description.tensors, held, refused or found.reason)
    (folder / "repro.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    (folder / "rebuild.py").write_text(repro_scripts.bundled(), encoding="utf-8")
    (folder / "repro.py").write_text(repro_scripts.script(data), encoding="utf-8")
    (folder / "test_repro.py").write_text(repro_scripts.test(data), encoding="utf-8")
    return {"missing": description.missing, "shown": data["shown"]["seen"], "reason": data["shown"]["reason"]}


def _described(held: HeldStep, made: Recipe | None, limit: int) -> tuple[Description, dict[str, Any] | None]:
    """The objects of the step; nothing if the statements can't be run with what is left of them."""
    description = Description(limit)
    names = {} if made is None else _names(made, description)
    if any(unusable(value) for value in names.values()):
        return description, None
    content = {
        "names": names,
        "calls": _calls(held, description, with_recipe=made is not None),
        "roots": _roots(held, description),
        "rng": _rng(held.rng, description),
        "globals": describe_globals(description, made.tree if made is not None else None),
        "missing": description.missing,
    }
    return description, content


def _calls(held: HeldStep, description: Description, with_recipe: bool) -> list[dict[str, Any]]:
    """What the models were given. With the statements at hand, that may be incomplete."""
    calls = []
    for call in held.calls:
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


def _names(made: Recipe, description: Description) -> dict[str, Any]:
    """What the statements read from outside themselves."""
    described: dict[str, Any] = {}
    sure: set[str] = set()  # set by now, whatever the values are
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
    """The names of comprehensions: they may be of no use outside."""
    return {
        name for n in ast.walk(statement) if isinstance(n, ast.comprehension) for name in stored(n.target)
    }


def _recipe_json(made: Recipe, held: HeldStep) -> dict[str, Any]:
    lines = [getattr(node, "lineno", 0) for node in ast.walk(made.tree)]
    return {"source": made.source, "file": made.file, "lines": lines}


def _roots(held: HeldStep, description: Description) -> dict[str, int]:
    models = {**held.roots, **{call.name: call.module for call in held.calls}}
    numbers = {name: description.number_of(unwrap(module)) for name, module in models.items()}
    return {name: number for name, number in numbers.items() if number is not None}


def _rng(rng: Rng, description: Description) -> dict[str, Any]:
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


def _circumstances(held: HeldStep, found: Answer) -> dict[str, Any]:
    from clew.labs.replay.replay_alarm import to_fact

    cast = held.autocast
    culprit = to_fact(held.where, found)
    return {
        "step": held.step,
        "where": held.where,
        "culprit": culprit,
        "summary": repro_scripts.summary(held.where, culprit),
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
        "paths": _paths(held),
    }


def _paths(held: HeldStep) -> list[str]:
    """Where the program's own modules were found."""
    places = [os.path.dirname(held.backward_at[0] or ""), sys.path[0] if sys.path else "", os.getcwd()]
    return list(dict.fromkeys(os.path.abspath(p) for p in places if p))
