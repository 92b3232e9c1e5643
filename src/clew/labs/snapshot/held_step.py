"""What is kept of a step so that it can be run again, and what a replay can find.

`HeldStep` keeps references, not copies: it is valid only while the parameters are intact, that is
until the optimizer steps. `clew.labs.replay.step_replay.replay(held)` returns a `Culprit`, or None.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from clew.measure.rng import Rng


@dataclass(frozen=True)
class Autocast:
    """The autocast settings when the forward began."""

    device: str = "cpu"
    enabled: bool = False
    dtype: torch.dtype | None = None


@dataclass(frozen=True)
class RootCall:
    """One call of an outermost model, with its arguments by reference."""

    name: str
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class HeldStep:
    """A failed step, as far as it still exists."""

    step: int
    where: str  # "loss" (seen at backward) or "gradient" (seen before the optimizer's step)
    calls: list[RootCall]  # since the last backward but this one
    roots: dict[str, nn.Module] = field(default_factory=dict)  # all models of the program, by name
    rng: Rng = field(default_factory=Rng)
    autocast: Autocast = field(default_factory=Autocast)
    loss: Tensor | None = None  # that backward() was called on; its graph is freed if where is "gradient"
    loss_value: float | None = None
    frame: FrameType | None = None  # the user's function that calls backward() or has called it
    backward_at: tuple[str | None, int | None] = (None, None)
    micro_batch: tuple[int, int] | None = None  # which backward of the step, and how many so far
    parameters: list[tuple[Tensor, str]] = field(default_factory=list)  # all optimised parameters, by name
    bad_parameters: tuple[str, ...] = ()  # whose gradients are not finite
    optimised: frozenset[int] = frozenset()  # the identities of all parameters of all optimizers
    # Of the sampled steps: the last at which a parameter was finite (True), or the first at which it was not.
    measured: dict[str, tuple[int, bool]] = field(default_factory=dict)
    delivered: Any = None  # the last batch from a loader
    changed: tuple[Tensor, ...] = ()  # arguments of the models that were written to after the call


@dataclass(frozen=True)
class InputStats:
    """One input of the operation to blame."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    min: float  # of the finite elements
    max: float
    nonfinite: int
    count: int


@dataclass(frozen=True)
class Culprit:
    """The first operation that produced a non-finite value from finite ones."""

    phase: str  # "forward", "backward", "batch", "parameter"
    op: str  # "log", "sqrt"
    result: str  # "nan" or "inf": what it produced
    why: str  # a plain sentence
    fix: str
    module: str | None = None
    root: str | None = None
    file: str | None = None
    line: int | None = None
    code: str | None = None
    inputs: tuple[InputStats, ...] = ()
    elements: tuple[tuple[int, ...], ...] = ()  # indices into the input (or result) that are responsible
    element_values: tuple[float, ...] = ()
    elements_of: str = ""  # "input 1 of log"
    bad_count: int = 0  # how many elements of the result are not finite
    element_count: int = 0  # how many elements are responsible, including those not listed
    samples: tuple[int, ...] = ()  # rows of the batch, where the first dimension is the batch
    sample_count: int = 0  # of all of them
    batch: int = 0  # samples in the batch
    call: tuple[int, int] | None = None  # this call of that line among all of the step: (17, 24)
    micro_batch: tuple[int, int] | None = None
    reproduced: bool = True  # the replayed loss equals the original
    by_update: bool = False  # a parameter that an optimizer's update made non-finite
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The fact `culprit`: see docs/signals.md."""
        return asdict(self)

    @property
    def sentence(self) -> str:
        """What happened, in one sentence."""
        place = f" in {self.module}" if self.module else ""
        if self.phase in ("batch", "parameter"):
            return self.why
        direction = "the gradient of " if self.phase == "backward" else ""
        kind = "NaN" if self.result == "nan" else "infinite"
        return f"{direction}{self.op}{place} is {kind}: {self.why}"
