"""Random generators: how their states are read, set again, and seeded; the one place where that is done.

`Rng` is the state of the global generators of torch, numpy, Python and of accelerators. A program may
also hold generators of its own: `keep_generators`.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

# Kinds of generators that a program can hold.
GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)


class Rng(NamedTuple):
    """The states of the global generators at one moment; None: was not needed."""

    torch: Any = None
    numpy: Any = None
    python: Any = None
    accelerators: tuple[tuple[Any, Any], ...] = ()  # modules such as `torch.cuda`, and their states

    @classmethod
    def take(cls) -> Rng:
        """All generators as they are now."""
        return cls(*host_states(), accelerators=_accelerator_states())

    def put(self) -> None:
        """Set the generators whose state is known."""
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
    """The global generators go on from where they were."""
    before = Rng.take()
    try:
        yield
    finally:
        before.put()


def host_states(torchs: bool = True, numpys: bool = True, pythons: bool = True) -> tuple[Any, Any, Any]:
    """Of the generators on the CPU, of torch, numpy and Python, those that are asked for; else None."""
    return (
        torch.default_generator.get_state() if torchs else None,
        np.random.get_state() if numpys else None,
        random.getstate() if pythons else None,
    )


def _accelerator_states() -> tuple[tuple[Any, Any], ...]:
    """Of those that are in use: asking another would start it."""
    found: list[tuple[Any, Any]] = []
    for name in ("cuda", "xpu"):
        module = getattr(torch, name, None)
        if module is not None and module.is_initialized() and module.is_available():
            found.append((module, module.get_rng_state_all()))
    if torch.backends.mps.is_available():
        found.append((torch.mps, torch.mps.get_rng_state()))
    return tuple(found)


def seed_all(number: int) -> None:
    """The same random numbers for what follows."""
    # torch.manual_seed takes milliseconds, and queues calls for when CUDA starts.
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)
    random.seed(number)
    np.random.seed(number % 2**32)


def generator_state(generator: Any) -> Any:
    """Of one generator that the program holds."""
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
    """Generators that the program holds go on from where they were."""
    states = [(generator, generator_state(generator)) for generator in generators]
    try:
        yield
    finally:
        for generator, state in states:
            set_generator_state(generator, state)
