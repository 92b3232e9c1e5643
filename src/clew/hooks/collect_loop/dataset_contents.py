"""Contents of a loader's dataset, read from outside: draws no sample and runs none of its code.

Arrays that the dataset keeps are compared between epochs, because an in-place transform changes the data
itself. Random generators that it keeps are copied into every worker.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, RandomSampler

from clew.hooks.entry.sink import Sink
from clew.hooks.entry.user_line import USER, kind_of
from clew.measure.readable_tensors import has_values
from clew.measure.rng import GENERATORS
from clew.records.facts.step_facts import DatasetChangedFact, LoaderFact

ELEMENTS_READ = 1 << 18  # evenly spaced elements of an array
MOST_ITEMS = 32  # of a list of arrays
MOST_NAMES = 1000  # that reading a dataset uses
EPOCHS = 8  # epochs in which arrays are compared; later those whose number is a power of two
RANDOM_CALLS = {
    "rand", "randn", "randint", "rand_like", "randn_like", "randperm", "normal", "uniform", "choice",
    "random", "standard_normal", "bernoulli", "shuffle", "permutation", "integers",
}  # fmt: skip
SEEDERS = {"seed", "manual_seed", "default_rng", "RandomState"}
OWN_STATE = {"initial_seed", "get_worker_info", "seed_all", "SeedSequence", "urandom", "time", "getpid"}


class DatasetWatch:
    """Describes datasets once, and compares their arrays at the start of every epoch."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._numbers: dict[int, int] = {}
        self._epochs: dict[int, int] = {}
        self._states: dict[int, dict[str, tuple[int, float, float]]] = {}
        self._changed: set[tuple[int, str]] = set()

    def describe(self, loader: DataLoader[Any]) -> dict[str, Any]:
        """More fields of the `loader` fact."""
        dataset = innermost(loader.dataset)
        init = loader.worker_init_fn
        return {
            "dataset_number": self._numbers.setdefault(id(loader.dataset), len(self._numbers)),
            "generator": held_generator(dataset),
            "random": draws(dataset),
            "worker_init": None if init is None else ("constant" if seeds_alike(init) else "given"),
        }

    def epoch_began(self, loader: DataLoader[Any], index: int, step: int) -> None:
        """Compare the dataset's arrays with those at the start of the previous epoch."""
        dataset = innermost(loader.dataset)
        # By the dataset: a program may create a new loader for every epoch.
        number = self._numbers.setdefault(id(loader.dataset), len(self._numbers))
        epoch = self._epochs[number] = self._epochs.get(number, -1) + 1
        if epoch >= EPOCHS and epoch & (epoch - 1):
            return
        found = [(name, array) for name, array in arrays_of(dataset) if not is_per_sample(array, dataset)]
        now = {name: summary(array) for name, array in found}
        before, self._states[number] = self._states.get(number, {}), now
        for name, state in now.items():
            if name in before and before[name][0] == state[0] and differs(before[name], state):
                (_, mean, std, *_), (_, mean_now, std_now, *_) = before[name], state
                fact = DatasetChangedFact(index, name, epoch, mean, std, mean_now, std_now)
                fact.write(self._sink, step)


def innermost(dataset: Any) -> Any:
    """The dataset inside Subsets."""
    for _ in range(4):
        inner = vars(dataset).get("dataset") if hasattr(dataset, "__dict__") else None
        if inner is None or not hasattr(inner, "__dict__"):
            return dataset
        dataset = inner
    return dataset


def arrays_of(dataset: Any) -> Iterator[tuple[str, Any]]:
    """Float arrays that a dataset keeps as attributes, or in lists."""
    for name, value in list(vars(dataset).items()) if hasattr(dataset, "__dict__") else ():
        if is_array(value):
            yield name, value
        elif isinstance(value, (list, tuple)):
            for position, item in enumerate(value[:MOST_ITEMS]):
                parts = item if isinstance(item, (list, tuple)) else (item,)
                for part, array in enumerate(parts[:2]):
                    if is_array(array):
                        yield f"{name}[{position}]" + (f"[{part}]" if parts is item else ""), array


def is_array(value: Any) -> bool:
    if type(value) is Tensor:
        ordinary = value.is_cpu and has_values(value)
        return ordinary and value.is_floating_point() and value.numel() > 0
    return type(value) is np.ndarray and value.dtype.kind == "f" and value.size > 0


def is_per_sample(array: Any, dataset: Any) -> bool:
    """Whether there is one number per sample: a weight or a target, which programs may rightly refine."""
    try:
        return array.ndim == 1 and len(array) == len(dataset)
    except (TypeError, NotImplementedError):
        return False


def summary(array: Any) -> tuple[int, float, float]:
    """Id, mean and standard deviation of an array: reordering the samples changes none of them."""
    flat = array.detach().reshape(-1) if isinstance(array, Tensor) else array.reshape(-1)
    flat = flat[:: max(len(flat) // ELEMENTS_READ, 1)]
    values = flat.double().numpy() if isinstance(flat, Tensor) else flat.astype(np.float64)
    finite = values[np.isfinite(values)]
    if not len(finite):
        return id(array), 0.0, 0.0
    return id(array), float(finite.mean()), float(finite.std())


def differs(before: tuple[int, float, float], now: tuple[int, float, float]) -> bool:
    """Whether the difference is larger than rounding or reordering would cause."""
    scale = max(abs(before[1]), before[2], 1e-12)
    return abs(now[1] - before[1]) > 0.01 * scale or abs(now[2] - before[2]) > 0.01 * scale


def names_used(dataset: Any, entries: Iterable[str] = ("__getitem__",)) -> set[str]:
    """Names that these methods of a dataset use, including the methods that they call."""
    found: set[str] = set()
    queue = list(entries)
    while queue and len(found) < MOST_NAMES:
        code = getattr(getattr(type(dataset), queue.pop(), None), "__code__", None)
        if isinstance(code, types.CodeType):
            new = set(code.co_names) - found
            found |= new
            queue += [name for name in new if name in vars(type(dataset)) or is_users_method(dataset, name)]
    return found


def is_users_method(dataset: Any, name: str) -> bool:
    """A method of the user's class, or of a base class of the user's."""
    if name.startswith("__"):
        return False
    function = getattr(type(dataset), name, None)
    return isinstance(function, types.FunctionType) and kind_of(function.__code__.co_filename) == USER


def held_generator(dataset: Any) -> str | None:
    """The attribute of a dataset with a random generator that `__getitem__` uses."""
    if not hasattr(dataset, "__dict__"):
        return None
    used = names_used(dataset)
    held = (n for n, value in vars(dataset).items() if isinstance(value, GENERATORS) and n in used)
    return next(held, None)


def draws(dataset: Any) -> bool:
    """Whether `__getitem__` draws random numbers, and nothing that it reads is switched off."""
    if not hasattr(dataset, "__dict__"):
        return False
    used = names_used(dataset)
    off = any(name in used and is_off(value) for name, value in vars(dataset).items())
    return bool(used & RANDOM_CALLS) and not off


def is_off(value: Any) -> bool:
    return value is None or (isinstance(value, (bool, int, float)) and value == 0)


def seeds_alike(init: Any) -> bool:
    """Whether a `worker_init_fn` sets a seed that does not depend on the worker."""
    code = getattr(init, "__code__", None)
    if not isinstance(code, types.CodeType) or not code.co_argcount:
        return False
    names = set(code.co_names)
    if not names & SEEDERS or names & OWN_STATE or code.co_freevars or code.co_cellvars:
        return False
    return code.co_varnames[0] not in arguments_read(code)


def arguments_read(code: types.CodeType) -> set[str]:
    """Local names that a function loads; newer interpreters load two at once."""
    loads = [i.argval for i in dis.get_instructions(code) if i.opname.startswith("LOAD_FAST")]
    return {str(name) for load in loads for name in (load if isinstance(load, tuple) else (load,))}


def loader_fact(loader: DataLoader[Any], index: int, file: str | None, line: int | None) -> LoaderFact:
    """The `loader` fact (docs/signals.md). Nothing here may draw a sample or a random number."""
    sampler = getattr(loader, "sampler", None)
    iterable = isinstance(loader.dataset, IterableDataset)
    return LoaderFact(
        index=index,
        file=file,
        line=line,
        batch_size=loader.batch_size,
        workers=loader.num_workers,
        shuffle=None if iterable else isinstance(sampler, RandomSampler),
        sampler=type(sampler).__name__,
        dataset=type(loader.dataset).__name__,
        length=None if iterable else _length(loader.dataset),
        drop_last=bool(loader.drop_last),
        pin_memory=bool(loader.pin_memory),
        persistent_workers=bool(loader.persistent_workers),
        prefetch_factor=loader.prefetch_factor,
    )


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None
