"""What the 16-bit number formats can hold, and which layers of a run compute in them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from clew.checks.run_view import RunView
from clew.checks.series import FloatArray, Series
from clew.records import signals
from clew.records.facts.model_facts import ModelFact, PrecisionFact
from clew.records.signal_types import TensorSignals
from clew.records.site import Site

LayerKey = tuple[str, str, str | None]  # root, module, function


@dataclass(frozen=True)
class Format:
    """IEEE 754 binary16, or the upper half of a float32."""

    name: str
    largest: float
    smallest: float  # above zero, with gradual underflow
    precision: int  # bits of the significand, with the hidden one

    def headroom(self, magnitudes: FloatArray) -> FloatArray:
        """How many times a value can double before it overflows."""
        return np.asarray(math.log2(self.largest) - np.log2(magnitudes), dtype=np.float64)


FORMATS: Mapping[str, Format] = {
    "float16": Format("float16", 65504.0, 2.0**-24, 11),
    "bfloat16": Format("bfloat16", 3.3895313892515355e38, 2.0**-133, 8),
}


def layer_formats(run: RunView) -> dict[LayerKey, Format]:
    """The layers whose outputs had 16 bits in the last sample."""
    known: dict[LayerKey, str] = {}
    for fact in run.known(PrecisionFact):
        known |= {(item.root, item.module, item.op): item.dtype for item in fact.items}
    return {key: FORMATS[name] for key, name in known.items() if name in FORMATS}


def parameter_formats(run: RunView) -> dict[tuple[str, str, str], Format]:
    """The parameters that are themselves kept in 16 bits, by root, module and name."""
    return {
        (model.root, row.module, row.param): FORMATS[row.dtype]
        for model in run.known(ModelFact)
        for row in model.parameters
        if row.dtype in FORMATS
    }


def share_below_bin(run: RunView, measured: TensorSignals, site: Site, top: int) -> Series | None:
    """Share of a tensor's nonzero elements that lie below bin `top`: below 2 ** (top - 24)."""
    total: Series | None = None
    for number in range(top):
        part = run.of_parameter(measured.log2hist_name(number), run.key(site))
        if part is None:
            return None
        shares = part.values / 255
        if total is not None and len(total) != len(part):
            return None
        shares = shares if total is None else total.values + shares
        total = Series(f"{measured.prefix}.below", part.site, part.steps, shares)
    return total


def progress(run: RunView, few: int = 5) -> float | None:
    """The last losses divided by the first ones; None if they can't be compared."""
    for _, series in run.series(signals.LOSS, "train"):
        finite = series.finite()
        if len(finite) >= 2 * few and finite.first(few).median > 0:
            return finite.last(few).median / finite.first(few).median
    return None
