"""Records one forward op by op: what is kept of each result, and the module and line it came from.

Two tapes of the same forward with something changed show where the change first appears.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from clew.labs.snapshot.op_recorder import ModulePaths, OpCall, OpRecorder, op_name
from clew.labs.snapshot.users_step.replay_lines import BOUNDARIES, line_now
from clew.measure.nested_tensors import tensors_in
from clew.records.facts.experiment_facts import CodePlace

if TYPE_CHECKING:
    from clew.labs.snapshot.step_snapshot import StepSnapshot
    from clew.labs.snapshot.users_step.model_calls import ModelCall

SEED = 11  # of repeated calls
Keep = Callable[[Tensor], Tensor | None]  # what is compared of a result
_WRITTEN = {
    "_unsafe_view": "reshape",
    "_reshape_alias": "reshape",
    "mkldnn_rnn_layer": "rnn",
    "lift_fresh": "tensor",
}  # by users


@dataclass(frozen=True)
class TapeEntry:
    """One op, and what was kept of its results."""

    place: CodePlace
    kept: tuple[Tensor | None, ...]


class Tape(OpRecorder):
    """Records the ops that run inside it; `keep` extracts from a result what is to be compared."""

    def __init__(self, models: Mapping[str, nn.Module], keep: Keep) -> None:
        super().__init__()
        self.entries: list[TapeEntry] = []
        self._keep = keep
        self._paths = ModulePaths(models)

    @property
    def here(self) -> tuple[str | None, str | None]:
        """The innermost running module: its root and path."""
        return self._paths.innermost(self.modules)

    def after_op(self, op: OpCall) -> None:
        kept = tuple(self._kept(tensor) for tensor in op.outputs)
        root, module = self.here
        name = op_name(op.func)
        self.entries.append(TapeEntry(CodePlace(_WRITTEN.get(name, name), root, module, *line_now()), kept))

    def _kept(self, tensor: Tensor) -> Tensor | None:
        if tensor.layout is not torch.strided:
            return None
        kept = self._keep(tensor.detach())
        return None if kept is None else kept.clone()


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Disable attention's fused inference path, whose ops no tape sees."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def taped(models: Mapping[str, nn.Module], keep: Keep, run: Callable[[], Any]) -> tuple[Any, list[TapeEntry]]:
    """The result of `run`, and its ops."""
    tape = Tape(models, keep)
    with plain_kernels(), tape:
        result = run()
    return result, tape.entries


BOUNDARIES.add(taped.__code__)  # the program's lines further down the stack are not the model's


class RepeatedCall:
    """One model call, repeated with the same random numbers; subclasses say which outputs are compared."""

    def __init__(self, snapshot: StepSnapshot, call: ModelCall) -> None:
        self._snapshot = snapshot
        self.call = call

    @cached_property
    def base(self) -> list[Tensor]:
        """The outputs of the call as it was."""
        return self.outputs()

    def outputs(self) -> list[Tensor]:
        return self.results(self.call.again)

    def results(self, run: Callable[[], Any], seed: int = SEED) -> list[Tensor]:
        """The floating-point tensors that this returns."""
        self._snapshot.seed(seed)
        with plain_kernels():
            return [t.detach() for t in tensors_in(run()) if t.is_floating_point()]

    def steady(self) -> bool:
        """Whether the same call gives the same result twice."""
        again = self.outputs()
        return len(again) == len(self.base) and all(map(torch.equal, self.base, again))

    def first_change(
        self,
        keep: Keep,
        other: Callable[[], Any],
        *,
        run: Callable[[], Any] | None = None,
        keep_other: Keep | None = None,
        tolerance: float = 1e-6,
    ) -> CodePlace | None:
        """The first op whose result, or what is kept of it, differs between `run` (the call) and `other`."""
        before = self._taped(keep, run or self.call.again)
        after = self._taped(keep_other or keep, other)
        return first_difference(before, after, tolerance)

    def _taped(self, keep: Keep, run: Callable[[], Any]) -> list[TapeEntry]:
        self._snapshot.seed(SEED)
        return taped({self.call.name: self.call.module}, keep, run)[1]


def first_difference(
    before: list[TapeEntry], after: list[TapeEntry], tolerance: float = 0.0
) -> CodePlace | None:
    """The first op with a different result; None if there is none, or the two took different paths."""
    for one, other in zip(before, after, strict=False):
        if one.place.op != other.place.op or len(one.kept) != len(other.kept):
            return None
        pairs = zip(one.kept, other.kept, strict=True)
        if any(differ(a, b, tolerance) for a, b in pairs):
            return other.place
    return None


def differ(one: Tensor | None, other: Tensor | None, tolerance: float = 0.0) -> bool:
    """Whether two results differ by more than `tolerance` of their size; NaN equals NaN."""
    if one is None or other is None or one.shape != other.shape:
        return False
    if torch.equal(one, other):
        return False
    gap, size = distance(one, other)
    return gap > tolerance * size


def distance(one: Tensor, other: Tensor) -> tuple[float, float]:
    """The largest difference of two tensors where both are finite, and their largest value."""
    a, b = (t.detach().to(torch.float64) if not t.is_complex() else t.detach().abs() for t in (one, other))
    fine = torch.isfinite(a) & torch.isfinite(b)
    if not bool(fine.any()):
        return 0.0, 0.0
    gap = float((a - b)[fine].abs().max())
    return gap, float(torch.maximum(a[fine].abs(), b[fine].abs()).max())


def relative_change(one: Tensor, other: Tensor, whole: Tensor) -> float:
    """The largest difference of two tensors, relative to the size of the tensor that `one` is part of."""
    if one.shape != other.shape or not one.numel():
        return 0.0
    size = float(whole.to(torch.float64).abs().nan_to_num().max())
    return distance(one, other)[0] / size if size > 0 else 0.0
