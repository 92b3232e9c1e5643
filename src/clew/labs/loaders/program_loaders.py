"""Finds the loaders of a running program: those it creates and iterates, and what its models get.

A `Collector` observes the first steps (as an observer of the watcher, and a wrapper around
`DataLoader.__init__`); `find_loaders` then returns what it found.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler

from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.entry.patches import Patches
from clew.hooks.entry.user_line import line_of_creation, names_in_callers
from clew.hooks.seams.loader_seam import Indices
from clew.labs.loaders.readable_loader import EVAL, MODEL, TRAIN, ReadableLoader, of_loader
from clew.labs.snapshot.dataset_copy import owned
from clew.measure.loss_arguments import loss_arguments
from clew.measure.nested_tensors import tensors_in
from clew.records.data_names import says_held_out
from clew.records.errors import CannotRead
from clew.records.site import Line

if TYPE_CHECKING:
    from clew.hooks.steps.watcher import Watcher

STEPS = 4  # training steps that are observed
MOST_SECONDS = 20.0  # of them, once there is one
MOST_BYTES = 256 * 2**20  # of batches that are kept
MOST_LOADERS = 16

Place = Line


@dataclass
class MadeLoader:
    """A loader that the program created."""

    loader: weakref.ref[Any]
    place: Place


@dataclass
class DeliveredBatch:
    """One training batch: as the loader delivered it, and as the model got it."""

    loader: int | None  # its number; None: it came from no loader
    batch: Any
    inputs: Any  # (args, kwargs)
    targets: list[Tensor] = field(default_factory=list)
    indices: list[int] | None = None  # of its samples


class Collector:
    """An observer; every method called on the program's thread is cheap and runs under a guard."""

    def __init__(self, watcher: Watcher, indices: Indices | None = None, steps: int = STEPS) -> None:
        self._watcher = watcher
        self._indices = indices
        self._steps = steps
        self._patches = Patches()
        self.made: list[MadeLoader] = []
        self.delivered: list[DeliveredBatch] = []
        self._targets: list[Tensor] = []
        self._inputs: Any = None
        self._bytes = 0
        self._began = 0.0
        self.backwards = 0
        self._release_loaders = watcher.feeding.keep_loaders()
        watcher.sampler.always(range(steps + 2))

    def install(self, safely: Callable[[Callable[..., None]], Callable[..., None]]) -> None:
        """Start observing the creation of loaders."""
        noted = safely(self._made)

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(loader: Any, *args: Any, **kwargs: Any) -> None:
                original(loader, *args, **kwargs)
                noted(loader)

            return wrapper

        self._patches.wrap(DataLoader, "__init__", wrap)

    def release(self) -> None:
        """Enough was observed: keep no further samples."""
        self._release_loaders()

    def remove(self) -> None:
        """Unwrap what `install` has wrapped; what was wrapped later must be unwrapped by then."""
        self._patches.remove()

    def _made(self, loader: Any) -> None:
        if len(self.made) < MOST_LOADERS:
            self.made.append(MadeLoader(weakref.ref(loader), line_of_creation(loader)))

    @property
    def finished(self) -> bool:
        """Whether enough has been observed."""
        slow = self.backwards > 0 and perf_counter() - self._began > MOST_SECONDS
        return self.backwards >= self._steps or slow

    # -- an observer of the watcher --

    def forward(self, root: Root, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """A model returned, with gradients."""
        if self._inputs is None and not self.finished:
            self._inputs = (args, kwargs if isinstance(kwargs, dict) else {})

    def loss(self, kind: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """A torch loss function returned."""
        target = loss_arguments(args, kwargs).target
        if isinstance(target, Tensor) and not self._targets:
            self._targets = [target]

    def backward(self, loss: Tensor, where: Line) -> None:
        """A batch has been used."""
        if self.finished:
            return
        self._began = self._began or perf_counter()
        self.backwards += 1
        inputs, self._inputs = self._inputs, None
        targets, self._targets = self._targets, []
        feeding = self._watcher.feeding
        if inputs is not None and self._bytes < MOST_BYTES:
            batch = owned(feeding.batch) if feeding.batch is not None else None
            indices = self._indices.last(feeding.source) if self._indices is not None else None
            made = DeliveredBatch(feeding.loader, batch, owned(inputs), owned(targets), indices)
            self._bytes += sum(t.nbytes for t in tensors_in((batch, made.inputs)))
            self.delivered.append(made)


def find_loaders(watcher: Watcher, collector: Collector) -> list[ReadableLoader]:
    """All loaders of the program that still exist, training loaders first; without a loader that
    trains, what the models got. Called on the training thread: the names are those of its variables."""
    existing = watcher.feeding.existing_loaders()
    found = [_iterated(watcher, number, loader) for number, loader in existing.items()]
    for made in collector.made:
        loader = made.loader()
        if loader is None:
            continue
        same = next((p for p in found if p.loader is loader), None)
        if same is not None:
            same.file, same.line = made.place if made.place[0] is not None else (same.file, same.line)
        elif names := _names(loader):  # one without a name is about to be released
            found.append(of_loader(loader, names=names))
            found[-1].file, found[-1].line = made.place
    _assign_batches(found, collector.delivered)
    _assign_roles(watcher, found)
    scope = _script_globals()
    for readable in found:
        readable.scope = scope
    if not any(p.delivered for p in found) and collector.delivered:
        found.insert(0, _of_model(collector.delivered, scope))
    return sorted(_distinct(found), key=lambda p: p.role == EVAL)


def select_loaders(found: list[ReadableLoader], wanted: str) -> list[ReadableLoader]:
    """Those of that name or number (from 1, as listed); all if nothing is requested.

    Raises CannotRead if there is none; the message lists the loaders that exist.
    """
    if not wanted:
        return found
    taken = [p for n, p in enumerate(found, 1) if wanted in (str(n), *p.names, p.role)]
    if not taken:
        there = ", ".join(f"{n} {p.name}" for n, p in enumerate(found, 1)) or "none"
        raise CannotRead(f"loader {wanted!r} is unknown; available: {there}")
    return taken


def _iterated(watcher: Watcher, number: int, loader: Any) -> ReadableLoader:
    names = [*watcher.feeding.names.get(number, []), *_names(loader)]
    readable = of_loader(loader, names=tuple(dict.fromkeys(names)))
    readable.number = number
    return readable


def _names(loader: Any) -> tuple[str, ...]:
    """Meaningful names; `self` in a torch function's frame is not one."""
    names = tuple(names_in_callers(loader))
    return tuple(name for name in names if name not in ("loader", "self")) or names


def _assign_batches(found: list[ReadableLoader], delivered: list[DeliveredBatch]) -> None:
    for one in delivered:
        for readable in found:
            if readable.number is not None and readable.number == one.loader and one.batch is not None:
                readable.delivered.append(one.batch)
                readable.inputs.append(one.inputs)
                readable.drawn.append(one.indices)
                break


def _assign_roles(watcher: Watcher, found: list[ReadableLoader]) -> None:
    """By the phase in which it was iterated; else by its name; else by whether it shuffles."""
    fed = watcher.feeding.phases()
    trains = any(p.delivered for p in found)
    for readable in found:
        if readable.delivered:
            readable.role = TRAIN
        elif readable.number is not None and fed.get(readable.number):
            readable.role = TRAIN if fed[readable.number] == "train" else EVAL
        else:
            readable.role = _likely_role(readable, trains)


def _likely_role(readable: ReadableLoader, others_train: bool) -> str:
    if any(map(says_held_out, readable.names)):
        return EVAL
    if any("train" in name.lower() for name in readable.names) or isinstance(readable.sampler, RandomSampler):
        return TRAIN
    return EVAL if others_train else ""


def _distinct(found: list[ReadableLoader]) -> list[ReadableLoader]:
    """A loader that is iterated on two lines has two numbers but is one object."""
    seen: dict[int, ReadableLoader] = {}
    for readable in found:
        known = seen.setdefault(id(readable.loader) if readable.loader is not None else 0, readable)
        if known is not readable and readable.delivered and not known.delivered:
            seen[id(readable.loader)] = readable
    return list(seen.values())


def _of_model(delivered: list[DeliveredBatch], scope: dict[str, Any]) -> ReadableLoader:
    """The model's inputs, with the targets of the loss."""
    batches = []
    for one in delivered:
        args, kwargs = one.inputs
        values = {f"input[{n}]" if len(args) > 1 else "input": a for n, a in enumerate(args)}
        batches.append({**values, **kwargs, **({"target": one.targets[0]} if one.targets else {})})
    return ReadableLoader(
        MODEL, delivered=batches, inputs=[one.inputs for one in delivered], role=TRAIN, scope=scope
    )


def _script_globals() -> dict[str, Any]:
    """The globals of the script, which may include a tokenizer."""
    main = sys.modules.get("__main__")
    return dict(vars(main)) if main is not None else {}
