"""Per-layer statistics of a sampled step: activations while it runs, parameters around the update."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from clew.attach.function_calls import NAMES as OTHER_CALLS
from clew.attach.graph import CUTTING, DATA_GETTER
from clew.attach.histograms import Histograms
from clew.attach.late import Late, on_host
from clew.attach.models import ModelBook, ParameterName, Root
from clew.attach.precision import Precision
from clew.attach.sink import Sink
from clew.capture.addresses import Addresses
from clew.capture.readable import has_values, stored_values
from clew.capture.stats import (
    STAT_NAMES,
    dead_fraction,
    resolve,
    tensor_stats_async,
    tensor_stats_at,
)
from clew.capture.values import UNREADABLE
from clew.records import Site

BINS = 32
HIST_NAMES = tuple(f"log2hist.{k:02d}" for k in range(BINS))
ACTIVATION_NAMES = (*STAT_NAMES, "dead_fraction", "saturated")
DEAD = len(STAT_NAMES)  # index of the dead share in such a row; the saturated share follows

# Activation functions whose units can die, and the flat ends of those that saturate. An end
# is where the slope is below a twentieth of its maximum: sigmoid 0.25, tanh 1.
_INF, _NAN = float("inf"), float("nan")
_RELU_LIKE = {"relu", "relu_", "relu6", "threshold", "threshold_"}
_FLAT_ENDS = {
    "sigmoid": (0.0125, 0.9875),
    "sigmoid_": (0.0125, 0.9875),
    "tanh": (-0.975, 0.975),
    "tanh_": (-0.975, 0.975),
    "hardtanh": (-1.0, 1.0),
    "hardsigmoid": (0.0, 1.0),
}
WATCHED = _RELU_LIKE | set(_FLAT_ENDS)
_UNKNOWN = (-1, "")

# Layers that only move or drop values: their statistics are their input's.
_PASSIVE = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.Identity, nn.Flatten)


Named = list[tuple[Tensor, ParameterName]]


class Slots:
    """The rows of some parameters."""

    def __init__(self, named: Named, slots: list[int]) -> None:
        self.named = named
        self.numbers = np.array(slots, np.int64)
        self.address = self.numbers.ctypes.data
        self.filled = dict.fromkeys(slots)


class Rows:
    """A growing matrix of one row per site, of which each step fills some."""

    def __init__(self, sink: Sink, late: Late, prefix: str, names: Sequence[str]) -> None:
        self._sink = sink
        self._late = late
        self._signals = [f"{prefix}.{name}" for name in names]
        self._hist_signals = [f"{prefix}.{name}" for name in HIST_NAMES]
        self._slots: dict[Any, int] = {}
        self._sites: list[int] = []
        self._filled: dict[int, None] = {}
        self._tables: dict[tuple[int, ...], tuple[int, int]] = {}
        self._together: weakref.WeakKeyDictionary[Addresses, Slots] = weakref.WeakKeyDictionary()
        self.histograms = True  # whether this step's are taken
        self._use(np.full((16, len(names)), np.nan), np.zeros((16, BINS), dtype=np.uint8))

    def _use(self, values: np.ndarray[Any, Any], hist: np.ndarray[Any, Any]) -> None:
        self.values, self._hist = values, hist
        self._address, self._stride = values.ctypes.data, values.strides[0]
        self._hist_address = hist.ctypes.data

    def slot(self, key: Any, site: Callable[[], Site]) -> int:
        """The row of a site, which will be written this step."""
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = len(self._slots)
            self._sites.append(self._sink.site(site()))
            if slot >= len(self.values):
                more = np.full_like(self.values, np.nan), np.zeros_like(self._hist)
                self._late.resolve()  # what is on its way belongs into the arrays of now
                self._use(np.concatenate([self.values, more[0]]), np.concatenate([self._hist, more[1]]))
        self._filled[slot] = None
        return slot

    def __contains__(self, key: Any) -> bool:
        return key in self._slots

    def sites_above_zero(self, column: int) -> list[Any]:
        """The keys of the rows that have a positive number there."""
        above = self.values[: len(self._slots), column] > 0
        return [key for key, slot in self._slots.items() if above[slot]] if above.any() else []

    def measure(
        self, slot: int, tensor: Tensor, lo: float = -_INF, hi: float = _INF, unit_dim: int | None = None
    ) -> None:
        """Fill a row; one that has room for them gets the shares of dead units and of saturated values."""
        if on_host(tensor):
            address = self._address + slot * self._stride
            hist_address = self._hist_address + slot * BINS if self.histograms else None
            saturated = tensor_stats_at(tensor, address, hist_address, lo, hi)
            if self.values.shape[1] > DEAD + 1:
                dead = _NAN if unit_dim is None else dead_fraction(tensor, unit_dim)
                self.values[slot, DEAD:] = dead, saturated
            return
        row, hist = self.values[slot], self._hist[slot] if self.histograms else None

        def fill(values: Tensor) -> None:
            saturated, dead = resolve(values, row, hist)
            if len(row) > DEAD + 1:
                row[DEAD:] = dead, saturated

        values = tensor_stats_async(tensor, hist=self.histograms, lo=lo, hi=hi, unit_dim=unit_dim)
        self._late.add(values, fill)

    def measure_again(self, slot: int, tensor: Tensor) -> None:
        """Fill a row that has been filled in the same way before, by a tensor of the CPU; no histogram."""
        self._filled[slot] = None
        tensor_stats_at(tensor, self._address + slot * self._stride)

    def measure_together(self, named: Named, at: Addresses) -> Slots | None:
        """Fill the rows of many tensors in one call of the kernel; None: they must go one by one."""
        try:
            if at.kernel is None or not at.find():
                return None
        except UNREADABLE:
            return None
        slots = self._together.get(at)
        if slots is None or slots.named is not named:
            slots = self._together[at] = Slots(named, [self.slot(name, name.site) for _, name in named])
        hist = self._hist_address if self.histograms else None
        at.kernel.stats_list(*at.arrays, at.count, slots.address, self._address, self._stride, hist)
        self._filled.update(slots.filled)
        return slots

    def commit(self, step: int) -> None:
        """Hand the filled rows to the sink and begin anew."""
        slots = tuple(sorted(self._filled))
        self._filled = {}
        if not slots:
            return
        tables = self._tables.get(slots)
        if tables is None:
            sites = [self._sites[slot] for slot in slots]
            tables = self._tables[slots] = (
                self._sink.table(self._signals, sites, "f4"),
                self._sink.table(self._hist_signals, sites, "u1"),
            )
        hist = self._hist if self.histograms else None
        self._late.then(partial(self._write, step, tables, self.values, hist, list(slots)))
        if self._late.is_waiting:  # for what goes into these very arrays
            self._use(self.values.copy(), self._hist.copy())

    def _write(self, step: int, tables: tuple[int, int], values: Any, hist: Any, slots: list[int]) -> None:
        self._sink.row(tables[0], step, values[slots].ravel())
        if hist is not None:
            self._sink.row(tables[1], step, hist[slots].ravel())

    def discard(self) -> None:
        self._filled = {}


class Activations:
    """What modules and activation functions put out in the training forward of a sampled step."""

    def __init__(self, sink: Sink, models: ModelBook, late: Late, histograms: Histograms) -> None:
        self._models = models
        self._histograms = histograms
        self._rows = Rows(sink, late, "activation", ACTIVATION_NAMES)
        self._precision = Precision(sink)
        self._last = ""  # path of the layer that returned last

    def module_output(self, root: Root, module: nn.Module, output: Any) -> None:
        """A module inside the root returned."""
        path = self._models.path_of(root, module) or ""
        tensor = first_tensor(output)
        if tensor is None or isinstance(module, _PASSIVE):
            return
        if module._modules and not isinstance(module, nn.MultiheadAttention):
            root.rows[id(module)] = None
            return  # a container: its last layer says the same
        root.order[path] = None
        if type(module).__name__.lower() in WATCHED:
            return  # seen as a function call, with what it does to units
        self._last = path
        key = (root.name, path, None)
        self._measure(key, tensor, lambda: Site(path, None, phase="train", root=root.name))
        root.rows[id(module)] = (self._rows.slot(key, Site), path)

    def known_output(self, root: Root, module: nn.Module, output: Any) -> None:
        """The same on the shortest way, for a layer that has been measured before."""
        row = root.rows.get(id(module), _UNKNOWN)
        if row is None:
            return
        if row is _UNKNOWN or type(output) is not Tensor or not output.is_cpu:
            self.module_output(root, module, output)
        else:
            self._last = row[1]
            self._rows.measure_again(row[0], output)

    def function_output(self, root: Root, enclosing: nn.Module, name: str, output: Any) -> None:
        """An activation function was called; the layer that ran before it is the one to name."""
        if not isinstance(output, Tensor):
            return
        root.functional = True
        path = self._last if enclosing._modules else self._models.path_of(root, enclosing) or ""
        name = name.rstrip("_")
        counts_units = name in _RELU_LIKE and output.dim() >= 2
        self._measure(
            (root.name, path, name),
            output,
            lambda: Site(path, name, phase="train", root=root.name),
            *_FLAT_ENDS.get(name, (-_INF, _INF)),
            unit_dim=unit_axis(enclosing, output) if counts_units else None,
        )

    def _measure(
        self,
        key: Any,
        tensor: Tensor,
        site: Callable[[], Site],
        lo: float = -_INF,
        hi: float = _INF,
        unit_dim: int | None = None,
    ) -> None:
        self._rows.measure(self._rows.slot(key, site), tensor, lo, hi, unit_dim)
        if self._histograms.wanted:
            self._histograms.seen("activation", key, site, tensor)
        self._precision.seen(key, tensor.dtype)

    def prepare(self, in_full: bool) -> None:
        """What the step that begins now is to be measured for."""
        self._rows.histograms = in_full

    def commit(self, step: int) -> None:
        self._rows.commit(step)
        self._precision.commit(step)

    def discard(self) -> None:
        """The forward led to no update: an evaluation without `no_grad`."""
        self._rows.discard()
        self._histograms.discard("activation")


class ActivationMode(TorchFunctionMode):
    """Sees activation functions that are called as functions: `F.relu(self.fc1(x))`.

    Active only inside a sampled training forward. Some torch layers take another (fused) path
    when no mode is active, but only where no gradient is needed: `Root.tracing_is_safe` and the
    caller keep it away from those.
    """

    def __init__(
        self,
        seen: Callable[[str, Any], None],
        dropped: Callable[[Any, Any, Any], None] | None = None,
        others: Callable[[str, Any, Any, Any], None] | None = None,
        cut: Callable[[str, Any], None] | None = None,
    ) -> None:
        super().__init__()
        self._seen = seen
        self._dropped = dropped
        self._others = others
        self._cut = cut

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name in WATCHED:
            self._seen(name, result)
        elif name == "dropout" and self._dropped is not None:
            self._dropped(args, kwargs or {}, result)
        elif self._others is not None and name in OTHER_CALLS:
            self._others(name, args, kwargs or {}, result)
        elif self._cut is not None and (name in CUTTING or func == DATA_GETTER):
            self._cut(name, args)
        return result


class ParameterStats:
    """Gradients and weights before a sampled update, and what the update changed."""

    BLOCKS = 256  # evenly spaced pieces of a parameter that are kept to see the change
    BLOCK = 64  # elements of each: a few cache lines, so that copying them is cheap

    def __init__(self, sink: Sink, late: Late, histograms: Histograms) -> None:
        self._late = late
        self._histograms = histograms
        self._gradients = Rows(sink, late, "gradient", STAT_NAMES)
        self._weights = Rows(sink, late, "weight", STAT_NAMES)
        self._updates = Rows(sink, late, "update", (*STAT_NAMES, "ratio"))
        self._in_full = True
        self._before: list[tuple[Tensor, ParameterName, Tensor, float]] = []
        self._measured = -1  # the last step whose weights were measured
        self._bad_since: dict[ParameterName, int] = {}  # the first of them at which these were not finite

    def prepare(self, in_full: bool) -> None:
        """What the step that begins now is to be measured for."""
        self._in_full = in_full
        for rows in (self._gradients, self._weights, self._updates):
            rows.histograms = in_full

    def before_step(self, named: Named, at: Addresses) -> None:
        """Measure weights, and keep a sample of each if the change is to be measured, too."""
        self._before = []
        together = self._weights.measure_together(named, at)
        if together is not None and not self._in_full and not self._histograms.wanted:
            return
        for parameter, name in named:
            value = parameter.detach()
            if not has_values(value):
                continue
            if together is None:
                self._weights.measure(self._weights.slot(name, name.site), value)
            if self._histograms.wanted:
                self._histograms.seen("weight", name, name.site, value)
            if not self._in_full:
                continue
            before = thinned(value, self.BLOCKS, self.BLOCK).clone()
            self._before.append((parameter, name, before, value.numel() / max(before.numel(), 1)))

    def gradients(self, named: Named, at: Addresses) -> float | None:
        """Measure the gradients that the optimizer uses; their common norm, if all are finite and at hand."""
        together = self._gradients.measure_together(named, at)
        if together is not None and not self._histograms.wanted:
            rows = self._gradients.values[together.numbers]
            return None if rows[:, 6].any() else _root(float(np.square(rows[:, 4]).sum()))
        square = 0.0
        for parameter, name in named:
            gradient = parameter.grad
            if gradient is None:
                continue
            dense = stored_values(gradient)
            if dense is None:
                square = _NAN
                continue
            slot = self._gradients.slot(name, name.site)
            if together is None:
                self._gradients.measure(slot, dense)
            if self._histograms.wanted:
                self._histograms.seen("gradient", name, name.site, dense)
            row = self._gradients.values[slot]
            square += row[4] ** 2 if on_host(dense) and row[6] == 0 else _NAN
        return _root(square)

    def after_step(self) -> None:
        """Measure what the optimizer changed."""
        for parameter, name, before, scale in self._before:
            change = thinned(parameter.detach(), self.BLOCKS, self.BLOCK) - before
            slot = self._updates.slot(name, name.site)
            self._updates.measure(slot, change)
            weight = self._weights.values[self._weights.slot(name, name.site)]
            self._late.then(partial(_relate, self._updates.values[slot], weight, scale))
        self._before = []

    def commit(self, step: int) -> None:
        self._measured = step
        self._late.then(partial(self._note_bad, step))
        for rows in (self._gradients, self._weights, self._updates):
            rows.commit(step)

    def seen(self, name: ParameterName) -> tuple[int, bool] | None:
        """Whether a parameter was finite when last measured before an update, and at which step.

        If it was not, the step is the first of those at which it was found so.
        """
        if self._measured < 0 or name not in self._weights:
            return None
        since = self._bad_since.get(name)
        return (self._measured, True) if since is None else (since, False)

    def _note_bad(self, step: int) -> None:
        bad = self._weights.sites_above_zero(STAT_NAMES.index("nonfinite"))
        self._bad_since = {name: self._bad_since.get(name, step) for name in bad}


def _root(square: float) -> float | None:
    """The norm of finite gradients; None if it can't be told from the sum of their squares."""
    return math.sqrt(square) if square - square == 0.0 else None


def _relate(change: Any, weight: Any, scale: float) -> None:
    """The size of a change, scaled up from the sample to the whole, and relative to what was changed."""
    change[4] *= scale**0.5
    size = weight[4]
    change[7] = change[4] / size if size > 0 else (0.0 if change[4] == 0 else _INF)


def thinned(tensor: Tensor, blocks: int, block: int) -> Tensor:
    """A parameter's values, flat; of a large one evenly spaced blocks."""
    flat = tensor.reshape(-1)
    if flat.numel() <= blocks * block:
        return flat
    span = flat.numel() // blocks
    return flat[: span * blocks].view(blocks, span)[:, :block]


def first_tensor(value: Any) -> Tensor | None:
    """The tensor in a module's output: itself, or the first in a tuple, dict or dataclass."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, dict):
        value = list(value.values())
    elif hasattr(value, "__dataclass_fields__"):
        value = list(vars(value).values())
    if isinstance(value, (tuple, list)):
        return next((t for t in (first_tensor(v) for v in value[:4]) if t is not None), None)
    return None


def unit_axis(enclosing: nn.Module, output: Tensor) -> int:
    """Which axis counts units: channels of an image-like tensor, else features, the last one."""
    if output.dim() == 4:
        return 1
    if output.dim() == 3 and _works_on_channels(enclosing):
        return 1
    return output.dim() - 1


def _works_on_channels(module: nn.Module) -> bool:
    return any(isinstance(m, (nn.Conv1d, nn.BatchNorm1d, nn.ConvTranspose1d)) for m in module.modules())
