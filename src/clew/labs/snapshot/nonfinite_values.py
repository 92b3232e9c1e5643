"""Non-finite values: which elements of a tensor they are, the step they appeared in, and what produced them.

Looking for them leaves no trace in the program. `NonFiniteStep` keeps references, not copies: it is valid
only while the parameters are intact, that is until the optimizer steps.
`clew.labs.replay.step_replay.answer(step)` runs it again and finds a `Culprit`, or says why not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from clew.labs.snapshot.snapshot import Autocast
from clew.measure.readable_tensors import readable
from clew.measure.rng import Rng
from clew.records.site import Line

MOST_ELEMENTS = 8  # indices that are named


@dataclass(frozen=True)
class RootCall:
    """One call of an outermost model, with its arguments by reference."""

    name: str
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class NonFiniteStep:
    """A failed step, as far as it still exists."""

    step: int
    where: str  # "loss" (seen at backward) or "gradient" (seen before the optimizer's step)
    calls: list[RootCall]  # since the last backward but this one
    roots: dict[str, nn.Module] = field(default_factory=dict)  # all models of the program, by name
    rng: Rng = field(default_factory=Rng)
    autocast: Autocast = field(default_factory=Autocast)
    loss_value: float | None = None
    frame: FrameType | None = None  # the user's function that calls backward() or has called it
    backward_at: Line = (None, None)
    micro_batch: tuple[int, int] | None = None  # which backward of the step, and how many so far
    parameters: list[tuple[Tensor, str]] = field(default_factory=list)  # all optimised parameters, by name
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

    @property
    def sentence(self) -> str:
        """What happened, in one sentence."""
        place = f" in {self.module}" if self.module else ""
        if self.phase in ("batch", "parameter"):
            return self.why
        direction = "the gradient of " if self.phase == "backward" else ""
        kind = "NaN" if self.result == "nan" else "infinite"
        return f"{direction}{self.op}{place} is {kind}: {self.why}"


def can_be_bad(tensor: Tensor) -> bool:
    return (tensor.is_floating_point() or tensor.is_complex()) and tensor.device.type != "meta"


def dense(tensor: Tensor) -> Tensor:
    """The values of a tensor of any layout."""
    tensor = tensor.detach()
    if tensor.is_nested:
        return tensor.values()
    if tensor.layout is not torch.strided:
        values = readable(tensor)
        return tensor if values is None else values
    eight_bits = tensor.element_size() == 1 and tensor.is_floating_point()
    return tensor.float() if eight_bits else tensor  # few operations support those


def is_bad(tensor: Tensor) -> bool:
    """Whether any element is NaN or infinite."""
    if not can_be_bad(tensor) or tensor.numel() == 0:
        return False
    values = dense(tensor)
    if bool(torch.isfinite(values.sum())):
        return False
    return not bool(torch.isfinite(values).all())  # a sum may overflow where no element does


def has_nan(tensor: Tensor) -> bool:
    return can_be_bad(tensor) and bool(torch.isnan(dense(tensor)).any())


def result_kind(tensor: Tensor) -> str:
    return "nan" if has_nan(tensor) else "inf"


def kind_in_words(result: str) -> str:
    """`nan` or `inf` for a reader: "contains …"."""
    return "NaN" if result == "nan" else "infinite values"


def bad_indices(tensor: Tensor) -> tuple[tuple[tuple[int, ...], ...], int]:
    """The first elements that are not finite, and how many there are."""
    where = (~torch.isfinite(dense(tensor))).nonzero()
    return tuple(tuple(int(i) for i in row) for row in where[:MOST_ELEMENTS]), len(where)


def bad_rows(tensor: Tensor) -> tuple[int, ...]:
    """Indices along the first dimension that contain anything non-finite."""
    values = dense(tensor)
    if values.dim() == 0:
        return ()
    rows = (~torch.isfinite(values)).flatten(1).any(1) if values.dim() > 1 else ~torch.isfinite(values)
    return tuple(int(i) for i in rows.nonzero().flatten()[:MOST_ELEMENTS])


def stats_of(name: str, tensor: Tensor) -> InputStats:
    """The statistics of one input for the report."""
    values = dense(tensor)
    low = high = float("nan")
    bad = 0
    if values.numel() and not values.is_complex():
        finite = values[torch.isfinite(values)] if values.is_floating_point() else values
        bad = values.numel() - finite.numel()
        if finite.numel():
            low, high = float(finite.min()), float(finite.max())
    return InputStats(
        name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), low, high, bad, values.numel()
    )


def element(tensor: Tensor, index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The index into an input that was broadcast to `shape`, given an index into the result."""
    if tensor.dim() > len(shape):
        return None
    own = index[len(shape) - tensor.dim() :]
    sizes = shape[len(shape) - tensor.dim() :]
    if any(size not in (1, full) for size, full in zip(tensor.shape, sizes, strict=True)):
        return None
    return tuple(0 if size == 1 else i for size, i in zip(tensor.shape, own, strict=True))
