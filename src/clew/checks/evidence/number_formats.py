"""What the 16-bit number formats can hold, and which layers of a run compute in them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from clew.checks.evidence.recorded_facts import rows, text
from clew.checks.run_view import RunView
from clew.checks.series import FloatArray, Series
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
        """Doublings that are left until a value overflows."""
        return np.asarray(math.log2(self.largest) - np.log2(magnitudes), dtype=np.float64)


FORMATS: Mapping[str, Format] = {
    "float16": Format("float16", 65504.0, 2.0**-24, 11),
    "bfloat16": Format("bfloat16", 3.3895313892515355e38, 2.0**-133, 8),
}


def layer_formats(run: RunView) -> dict[LayerKey, Format]:
    """The layers whose outputs were of 16 bits when they were last looked at."""
    known: dict[LayerKey, str] = {}
    for fact in run.facts("precision"):
        for item in rows(fact.data.get("items")):
            key = (text(item.get("root")) or "", text(item.get("module")) or "", text(item.get("op")))
            known[key] = text(item.get("dtype")) or ""
    return {key: FORMATS[name] for key, name in known.items() if name in FORMATS}


def parameter_formats(run: RunView) -> dict[tuple[str, str, str], Format]:
    """The parameters that are themselves kept in 16 bits, by root, module and name."""
    found: dict[tuple[str, str, str], Format] = {}
    for fact in run.facts("model"):
        root = text(fact.data.get("root")) or ""
        for row in rows(fact.data.get("parameters")):
            name = text(row.get("dtype")) or ""
            if name in FORMATS:
                found[root, text(row.get("module")) or "", text(row.get("param")) or ""] = FORMATS[name]
    return found


def histogram(run: RunView, prefix: str, site: Site, top: int) -> Series | None:
    """Share of a tensor's elements other than zero that lie below bin `top`: below 2 ** (top - 24)."""
    total: Series | None = None
    for k in range(top):
        part = run.of_parameter(f"{prefix}.log2hist.{k:02d}", run.key(site))
        if part is None:
            return None
        shares = part.values / 255
        if total is not None and len(total) != len(part):
            return None
        shares = shares if total is None else total.values + shares
        total = Series(f"{prefix}.below", part.site, part.steps, shares)
    return total


def progress(run: RunView, few: int = 5) -> float | None:
    """The last losses over the first ones; None if they can't be compared."""
    for _, series in run.series("loss", "train"):
        finite = series.finite()
        if len(finite) >= 2 * few and finite.first(few).median > 0:
            return finite.last(few).median / finite.first(few).median
    return None
