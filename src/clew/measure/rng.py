"""Random generators: read, restore and seed their states.

Two others set states for themselves: `replay/repro`, those saved in a file with a step, and `render.screen`,
which does not know torch, Python's own.

`Rng` is the state of the global generators of torch, numpy, Python and accelerators. A program may also have
generators of its own: `keep_generators`.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

# Types of generators that a program can have.
GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)


class Rng(NamedTuple):
    """The states of the global generators at one moment; None if not needed."""

    torch: Any = None
    numpy: Any = None
    python: Any = None
    accelerators: tuple[tuple[Any, Any], ...] = ()  # modules such as `torch.cuda`, and their states

    @classmethod
    def take(cls) -> Rng:
        """The current state of all generators."""
        return cls(*host_states(), accelerators=_accelerator_states())

    def put(self) -> None:
        """Restore the generators whose state is known."""
        if self.torch is not None:
            torch.default_generator.set_state(self.torch)
        if self.numpy is not None:
            np.random.set_state(self.numpy)
        if self.python is not None:
            random.setstate(self.python)
        for module, state in self.accelerators:
            module.set_rng_state_all(state) if isinstance(state, list) else module.set_rng_state(state)


@contextlib.contextmanager
def keep_rng() -> Iterator[None]:
    """Restore the state of the global generators afterwards."""
    before = Rng.take()
    try:
        yield
    finally:
        before.put()


def host_states(torchs: bool = True, numpys: bool = True, pythons: bool = True) -> tuple[Any, Any, Any]:
    """The requested states of the CPU generators of torch, numpy and Python; None for the others."""
    return (
        torch.default_generator.get_state() if torchs else None,
        np.random.get_state() if numpys else None,
        random.getstate() if pythons else None,
    )


def _accelerator_states() -> tuple[tuple[Any, Any], ...]:
    """Only accelerators in use: asking another one would initialise it."""
    found: list[tuple[Any, Any]] = []
    for name in ("cuda", "xpu"):
        module = getattr(torch, name, None)
        if module is not None and module.is_initialized() and module.is_available():
            found.append((module, module.get_rng_state_all()))
    if torch.backends.mps.is_available():
        found.append((torch.mps, torch.mps.get_rng_state()))
    return tuple(found)


def seed_all(number: int) -> None:
    """Seed all generators, so that what follows gets the same random numbers."""
    # torch.manual_seed takes milliseconds, and queues calls for when CUDA is initialised.
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)
    random.seed(number)
    np.random.seed(number % 2**32)


def generator_state(generator: Any) -> Any:
    """The state of one of the program's own generators."""
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.getstate() if isinstance(generator, random.Random) else generator.get_state()


def set_generator_state(generator: Any, state: Any) -> None:
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.set_state(state)


@contextlib.contextmanager
def keep_generators(generators: Iterable[Any]) -> Iterator[None]:
    """Restore the state of the program's own generators afterwards."""
    states = [(generator, generator_state(generator)) for generator in generators]
    try:
        yield
    finally:
        for generator, state in states:
            set_generator_state(generator, state)
