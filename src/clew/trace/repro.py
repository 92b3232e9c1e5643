"""A step that went wrong, written to a folder from which it can be run again, alone.

    repro/step-45/repro.json            what there is, versions, precision, the culprit
                  tensors.safetensors   parameters, buffers, batch, random state
                  repro.py              shows the failure;  test_repro.py fails until it is fixed
                  rebuild.py            makes the objects again, from the program's own source

Nothing is pickled. It is written once in a run, and not at all if it would be too large.
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

from clew.trace import rebuild, scripts
from clew.trace.describing import Description, TooLargeError
from clew.trace.held import HeldStep, Rng
from clew.trace.purity import loaded, stored
from clew.trace.recipe import Recipe
from clew.trace.replay import Answer, recipe_for

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
        if self._done or not held.calls:
            return
        self._done = True
        folder = self._folder / f"step-{held.step}"
        try:
            missing = write(folder, held, found, self._limit)
        except TooLargeError:
            shutil.rmtree(folder, ignore_errors=True)
            self._note({"written": False, "reason": f"it would hold more than {self._limit:,} bytes"})
        except OSError as error:
            self._note({"written": False, "reason": str(error.strerror or error)})
        else:
            self._note({"written": True, "path": str(folder), "missing": missing})


def write(folder: Path, held: HeldStep, found: Answer, limit: int = LIMIT) -> list[str]:
    """Save a held step; gives what could not be saved of it."""
    description = Description(limit)
    made = _recipe(held)
    names = {} if made is None else _names(made, description)
    if any(isinstance(v, dict) and v["kind"] == "missing" for v in names.values()):
        made, names = None, {}  # the models' calls are still there
    calls = [
        {
            "model": description.of(call.module, call.name),
            "args": description.of(call.args, f"{call.name}'s arguments"),
            "kwargs": description.of(call.kwargs, f"{call.name}'s arguments"),
        }
        for call in held.calls
    ]
    data = {
        "format": rebuild.FORMAT,
        **_circumstances(held, found),
        "roots": _roots(held, description),
        "names": names,
        "calls": calls,
        "recipe": None if made is None else _recipe_json(made, held),
        "rng": _rng(held.rng, description),
        "missing": description.missing,
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file(description.tensors, str(folder / "tensors.safetensors"))
    (folder / "repro.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    (folder / "rebuild.py").write_text(Path(rebuild.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "repro.py").write_text(scripts.script(data), encoding="utf-8")
    (folder / "test_repro.py").write_text(scripts.test(data), encoding="utf-8")
    return description.missing


def _recipe(held: HeldStep) -> Recipe | None:
    return recipe_for(held)[0]


def _names(made: Recipe, description: Description) -> dict[str, Any]:
    """What the statements read from outside themselves."""
    needed: dict[str, None] = {}
    own: set[str] = set()
    for statement in made.tree.body:
        for name in sorted(loaded(statement) - own):
            if name in made.namespace:
                needed[name] = None
        own |= stored(statement)
    return {name: description.of(made.namespace[name], name) for name in needed}


def _recipe_json(made: Recipe, held: HeldStep) -> dict[str, Any]:
    lines = [getattr(node, "lineno", 0) for node in ast.walk(made.tree)]
    return {"source": made.source, "file": made.file, "lines": lines}


def _roots(held: HeldStep, description: Description) -> dict[str, int]:
    from clew.attach.models import unwrap

    numbers = {call.name: description.number_of(unwrap(call.module)) for call in held.calls}
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
    from clew.trace.alarm import to_fact

    cast = held.autocast
    return {
        "step": held.step,
        "where": held.where,
        "culprit": to_fact(held.where, found),
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
