"""Rebuilds the objects of a saved step (models, batch, random state) and runs it. Loads no pickle.

Every repro folder contains a copy of this (with `nested_tensors`, `saved_sources`, `saved_values` and
`loss_gradients` in the same file) that runs where Clew is not installed: it needs only the standard library,
torch and safetensors.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import platform
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from clew.labs.replay.loss_gradients import each_gradient
from clew.labs.replay.repro.saved_sources import (
    CannotRebuild,
    define_again,
    definitions,
    find,
    find_modules_in,
    why_undefined,
)
from clew.labs.replay.repro.saved_values import DERIVED, SavedValues
from clew.measure.nested_tensors import merge_nested, tensors_in

FORMAT = 2
STILL_WRONG, CANNOT_RUN, NOT_COVERED = 1, 2, 3  # exit codes


class SavedStep:
    """A step as it was before it went wrong."""

    def __init__(
        self,
        folder: Path,
        models: dict[str, nn.Module] | None = None,
        *,
        data: dict[str, Any] | None = None,
        tensors: dict[str, Tensor] | None = None,
        finder: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.folder = folder
        self.data = _read(folder) if data is None else data
        numbers = self.data["roots"]
        given = {numbers[name]: model for name, model in (models or {}).items()}
        self.values = SavedValues(_load(folder) if tensors is None else tensors, finder or find, given)
        self.values.know([self.data[part] for part in ("names", "calls", "globals") if part in self.data])
        if finder is None:
            find_modules_in(self.data.get("paths", []))
            for file, values in self.data.get("globals", {}).items():
                self._set_globals(file, values)
        build = self.values.build
        self.names: dict[str, Any] = {name: build(value) for name, value in self.data["names"].items()}
        self.calls = [
            (build(call["model"]), build(call["args"]), build(call["kwargs"])) for call in self.data["calls"]
        ]

    @property
    def models(self) -> dict[str, nn.Module]:
        """The models of the step by their names."""
        made = self.values.objects
        return {name: made[number] for name, number in self.data["roots"].items() if number in made}

    @property
    def dropped(self) -> list[str]:
        """Attributes and variables that could not be saved."""
        return self.values.dropped

    def run(self, compute: Callable[..., Tensor] | None = None) -> RerunResult:
        """The loss and its gradients; the models' outputs if the code of the loss could not be saved."""
        try:
            with self.conditions(), torch.enable_grad():
                if compute is None:
                    return RerunResult(self, self.outputs())
                loss = compute(**self._arguments(compute))
                gradients = self.gradients(loss) if torch.isfinite(loss).all() else {}
                return RerunResult(self, {"loss": loss, **gradients})
        except Exception as error:
            raise CannotRebuild(self._why(error)) from error

    def _why(self, error: Exception) -> str:
        """The program's own code has failed, perhaps because something could not be saved."""
        undefined = why_undefined(error.name) if isinstance(error, NameError) else None
        first = next(iter(str(error).splitlines()), "")
        text = f"the step could not be run: {undefined or f'{type(error).__name__}: {first}'}"
        lost = ", ".join(self.dropped[:3])
        return f"{text}; {lost} could not be saved" if lost else text

    def _arguments(self, compute: Callable[..., Tensor]) -> dict[str, Any]:
        """All names, or those that it asks for: a generated script imports what is installed itself."""
        wanted = inspect.signature(compute).parameters.values()
        every = any(parameter.kind is parameter.VAR_KEYWORD for parameter in wanted)
        return self.names if every else {parameter.name: self.names[parameter.name] for parameter in wanted}

    def outputs(self) -> dict[str, Tensor]:
        """The outputs of the models with their saved arguments, except those called with another's output."""
        known = [c for c in self.calls if not any(given is DERIVED for given in (*c[1], *c[2].values()))]
        made = tensors_in([model(*args, **kwargs) for model, args, kwargs in known])
        floats = [t for t in made if t.is_floating_point() or t.is_complex()]
        return {f"output {number}": tensor for number, tensor in enumerate(floats)}

    @contextlib.contextmanager
    def conditions(self) -> Iterator[None]:
        """The saved random state and precision; the models get their saved arguments."""
        self._restore_rng()
        cast = self.data["autocast"]
        with contextlib.ExitStack() as stack:
            if cast["enabled"]:
                dtype = getattr(torch, cast["dtype"])
                stack.enter_context(torch.autocast(cast["device"], dtype, cache_enabled=False))
            waiting = list(self.calls) if self.data["recipe"] else []
            for module in {id(model): model for model, _, _ in waiting}.values():
                called = functools.partial(self._saved_arguments, waiting, len(waiting))
                stack.callback(module.register_forward_pre_hook(called, with_kwargs=True).remove)
            yield

    def _saved_arguments(
        self, waiting: list[Any], all_calls: int, model: nn.Module, args: Any, kwargs: Any
    ) -> Any:
        """A script may draw its batch in the statement that calls the model: use the saved batch instead."""
        call = next((c for c in waiting if c[0] is model), None)
        if call is None:
            return None
        if len(waiting) == all_calls:
            self._restore_rng()
        waiting.remove(call)
        return merge_nested(call[1:], (args, kwargs), lambda kept, given: given if kept is DERIVED else kept)

    def gradients(self, loss: Tensor) -> dict[str, Tensor]:
        """The gradient of every parameter that the loss depends on."""
        named: dict[str, Tensor] = {}
        named |= {f"{m}.{n}": p for m, model in self.models.items() for n, p in model.named_parameters()}
        named |= {n: t for n, t in self.names.items() if isinstance(t, Tensor) and t.is_leaf}
        known = {id(p) for p in named.values()}
        named |= {key: t for key, t in self.values.made.items() if id(t) not in known}
        trained = {name: p for name, p in named.items() if p.requires_grad}
        if not trained or not loss.requires_grad:
            return {}
        found = each_gradient(loss, list(trained.values()))
        return {name: g for name, g in zip(trained, found, strict=True) if g is not None}

    def remember_shown(self) -> None:
        """It was not tried when it was saved: from now on, finite values mean that it is fixed."""
        if self.data["shown"]["seen"] is not None:
            return
        self.data["shown"] = {"seen": True, "reason": ""}
        with contextlib.suppress(OSError):
            (self.folder / "repro.json").write_text(json.dumps(self.data, indent=1), encoding="utf-8")

    @property
    def other_versions(self) -> str | None:
        """A line if torch or Python differ from those that it was saved with."""
        now = {"torch": str(torch.__version__), "python": platform.python_version()}
        saved = {name: str(self.data.get("versions", {}).get(name, "")) for name in now}
        if all(not saved[n] or saved[n].split(".")[:2] == now[n].split(".")[:2] for n in now):
            return None
        then = f"torch {saved['torch']} and Python {saved['python']}"
        return f"saved with {then}, run with torch {now['torch']} and Python {now['python']}"

    def _set_globals(self, file: str, values: dict[str, Any]) -> None:
        """The variables of a script that its functions read, and that its definitions do not set."""
        if not Path(file).is_file():
            return  # reported when something is needed from it
        module = definitions(file)[0]
        self.values.set_attributes(module.__dict__, values)
        define_again(file)

    def _restore_rng(self) -> None:
        rng = self.data["rng"]
        if rng.get("torch"):
            torch.set_rng_state(self.values.tensors[rng["torch"]])
        if rng.get("python"):
            version, state, gauss = rng["python"]
            random.setstate((version, tuple(state), gauss))
        if rng.get("numpy"):
            kind, key, position, has_gauss, cached = rng["numpy"]
            keys = self.values.tensors[key].numpy().astype("uint32")
            importlib.import_module("numpy").random.set_state((kind, keys, position, has_gauss, cached))


class RerunResult:
    """The result of running the saved step again."""

    def __init__(self, step: SavedStep, results: dict[str, Tensor]) -> None:
        self.step = step
        self.results = results
        self.bad = [name for name, tensor in results.items() if not torch.isfinite(_values(tensor)).all()]
        if self.bad:
            step.remember_shown()

    @property
    def problem(self) -> str | None:
        """What is wrong; None if the failure is fixed."""
        if self.bad:
            return f"not finite: {', '.join(self.bad[:5])}{', …' if len(self.bad) > 5 else ''}"
        return not_shown(self.step.data)


def not_shown(data: dict[str, Any]) -> str | None:
    """Why finite values do not mean that anything is fixed; None if they do."""
    shown = data["shown"]
    if shown["seen"]:
        return None
    then = (
        "it is unknown whether they were non-finite before"
        if shown["seen"] is None
        else "as when it was saved"
    )
    return f"not reproduced: the values are finite here, {then} ({shown['reason']})"


def main(run: Callable[[], RerunResult]) -> int:
    """Run a step again and print the result; returns the exit code."""
    try:
        again = run()
    except CannotRebuild as error:
        print(f"can't be run: {error}")
        return CANNOT_RUN
    data = again.step.data
    if again.step.other_versions:
        print(again.step.other_versions)
    for name, tensor in again.results.items():
        if name == "loss" or name in again.bad[:5]:
            print(f"{name}: {tensor.item() if tensor.numel() == 1 else tuple(tensor.shape)}")
    print(again.problem or f"step {data['step']} is finite now")
    if again.bad and data["culprit"].get("sentence"):
        print(f"when it was saved: {data['summary']}")
    return exit_code(again)


def exit_code(again: RerunResult) -> int:
    """0 if the step is fixed."""
    if again.bad:
        return STILL_WRONG
    return 0 if again.problem is None else NOT_COVERED


def _values(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return tensor if tensor.layout == torch.strided else tensor.to_dense()


# -- files --


def _read(folder: Path) -> dict[str, Any]:
    file = folder / "repro.json"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotRebuild(f"{file} can't be read: {error.strerror or error}") from error
    except ValueError as error:
        raise CannotRebuild(f"{file} is damaged: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("format"), int):
        raise CannotRebuild(f"{file} does not describe a step")
    if data["format"] != FORMAT:
        age = "a newer" if data["format"] > FORMAT else "an older"
        raise CannotRebuild(f"{file} was written by {age} Clew")
    return data


def _load(folder: Path) -> dict[str, Tensor]:
    file = folder / "tensors.safetensors"
    try:
        return load_file(str(file))
    except Exception as error:
        raise CannotRebuild(f"{file} can't be read: {str(error).splitlines()[0]}") from error
